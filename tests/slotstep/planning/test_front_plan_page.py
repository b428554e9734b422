"""The page of a plan in a real browser: on a desk, on a phone and on A4, without a message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, messages
from command_line import code_of

EVIL = "<img src=x onerror=alert(1)>"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `plan --out` writes for a log whose name is awkward."""
    folder = tmp_path_factory.mktemp("planned")
    log = folder / f"{EVIL.replace('/', '')}.csv"
    rows = [f"{1760000000 + n * 0.5:.3f},{200 + n},{20 + n % 7}" for n in range(60)]
    log.write_text("\n".join(["ts,tok_in,tok_out", *rows]) + "\n")
    (folder / "prices.yaml").write_text("currency: USD\ngpu_hour: {h100: 3}\n")
    command = ("plan", log, "--model", "llama-3.1-8b", "--gpus", "h100", "--slo", "p99 ttft < 1s")
    command += ("--slo", "p95 tpot < 50ms", "--growth", "1,40", "--tensor-parallel", "1,2", "--jobs", "1")
    assert code_of(*command, "--prices", folder / "prices.yaml", "--out", folder / "out") == 0
    return folder / "out"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.mark.parametrize(("width", "media"), [(1280, "screen"), (380, "screen"), (794, "print")])
def test_the_page_of_a_plan_opens_without_a_message_and_fits(
    planned: Path, browser: Any, width: int, media: str
) -> None:
    page, asked = planned / "plan.html", []
    tab = browser.new_page(viewport={"width": width, "height": 900})
    said = messages(tab)
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())
    tab.emulate_media(media=media)
    assert asked == [page.as_uri()]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    heads = tab.locator("main h3").all_inner_texts()
    for wanted in (
        "GPUs, of which kind, and how sure",
        "Demand over time against capacity",
        "Latencies against the rate",
        "Cost",
        "What it was made of",
    ):
        assert wanted in heads
    first = tab.locator("main p").first.inner_text()
    assert first.startswith("60 requests in ")
    assert tab.locator("svg.figure").count() == 3
    boxes = [figure.bounding_box() for figure in tab.locator("svg.figure").all()]
    assert all(box is not None and box["width"] > 100 and box["height"] > 60 for box in boxes)
    assert tab.locator("main img").count() == 0
    assert said == []
    tab.close()


def test_report_makes_the_same_page_again(planned: Path, tmp_path: Path) -> None:
    assert code_of("report", planned, "--out", tmp_path / "again.html") == 0
    assert (tmp_path / "again.html").read_bytes() == (planned / "plan.html").read_bytes()
