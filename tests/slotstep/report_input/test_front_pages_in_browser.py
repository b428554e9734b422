"""Every kind of page in a real browser: on a desk, on a phone and in the dark, without a message and readable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import check_layout, chromium, messages
from command_line import code_of

from slotstep.runs import result

pytestmark = pytest.mark.slow

EVIL = "<b>a_tenant_with_a_long_name_without_a_place_to_break_it</b>"
SCENARIO = {
    "name": "a_scenario_with_a_long_name_without_a_place_to_break_it",
    "workload": {
        "synthetic": {
            "requests": 120,
            "tenants": {
                name: {
                    "arrivals": {"poisson": {"rate": 60}},
                    "prompt": {"fixed": 50},
                    "output": {"lognormal": {"mean": 30, "cv": 1}},
                }
                for name in (EVIL, "quiet")
            },
        }
    },
    "cluster": {"replicas": 2},
    "engine": {"slots": 16, "token_budget": 256, "pages": 60},
    "cost": {"affine": {"base": "5ms", "per_sequence": "1ms"}},
    "objectives": {"ttft": "500ms"},
}
GRID = {
    "scenario": "mine.yaml",
    "grid": {"policy": ["fcfs", "sjf"], "engine.slots": [4, 8]},
    "seeds": 2,
}
KINDS: dict[str, tuple[str, ...]] = {
    "run": ("run", "mine.yaml", "--set", "engine.slots=400"),
    "compare": ("compare", "mine.yaml", "--policies", "fcfs,sjf,fair"),
    "replications": ("compare", "mine.yaml", "--policies", "fcfs,sjf", "--seeds", "3", "--jobs", "1"),
    "sweep": ("sweep", "grid.yaml", "--jobs", "1"),
    "capacity": (
        "capacity",
        "mine.yaml",
        "--slo",
        "p95 ttft < 1s",
        "--seeds",
        "4",
        "--tolerance",
        "0.5",
        "--jobs",
        "1",
    ),
    "plan": ("plan", "log.csv", "--model", "llama-3.1-8b", "--gpus", "h100", "--slo", "p99 ttft < 1s", "--jobs", "1"),
}


@pytest.fixture(scope="module", params=KINDS)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of what a command wrote."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "mine.yaml").write_text(json.dumps(SCENARIO))
    (folder / "grid.yaml").write_text(json.dumps(GRID))
    rows = [f"{1760000000 + n * 0.5:.3f},{200 + n},{20 + n % 7}" for n in range(40)]
    (folder / "log.csv").write_text("\n".join(["ts,tok_in,tok_out", *rows]) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(result, "draw", lambda results, folder: [])  # the figures are tested where they are drawn
        assert code_of(*KINDS[request.param], "--out", "out") == 0
        assert code_of("report", "out", "--out", "page.html") == 0
    return folder / "page.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.mark.parametrize(("width", "look"), [(1280, "light"), (380, "light"), (1280, "dark")])
def test_a_page_opens_without_a_message_fits_and_can_be_read(page: Path, browser: Any, width: int, look: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=look)
    tab = context.new_page()
    said = messages(tab)
    tab.goto(page.as_uri())
    tab.locator("details").evaluate_all("all => all.forEach((one) => (one.open = true))")
    check_layout(tab, width)
    check_labels(tab)
    assert said == []
    context.close()


def check_labels(tab: Any) -> None:
    """No two labels of a figure overlap."""
    assert tab.evaluate(OVERPRINTED) == []


OVERPRINTED = """
() => {
  const found = [];
  for (const figure of document.querySelectorAll("svg.figure")) {
    const all = [...figure.querySelectorAll("text")].map((one) => [one.textContent, one.getBoundingClientRect()]);
    all.forEach(([text, a], place) => {
      for (const [other, b] of all.slice(place + 1)) {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 1 && high > 3) found.push(`${figure.getAttribute("aria-label")}: ${text} / ${other}`);
      }
    });
  }
  return found;
}
"""
