"""`slotstep report`: a comparison's folder as one page in a real browser; what is said of folders that are none."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, messages

import slotstep
from reports.page.html import LARGEST
from slotstep.cli import app
from slotstep.runs import result

EVIL = "<img src=x onerror=alert(1)>"
POLICIES = ["fcfs", "sjf", "fair"]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of three policies that `--out` wrote, one tenant of which bears an awkward name."""
    folder = tmp_path_factory.mktemp("compared")
    law = {
        "arrivals": {"poisson": {"rate": 60}},
        "prompt": {"fixed": 50},
        "output": {"lognormal": {"mean": 30, "cv": 1}},
    }
    scenario = slotstep.parse(
        {
            "name": "three policies",
            "workload": {"synthetic": {"requests": 300, "tenants": {EVIL: law, "quiet": law}}},
            "engine": {"slots": 16, "token_budget": 256, "pages": 200},
            "cost": {"affine": {"base": "5ms", "per_sequence": "1ms"}},
            "objectives": {"ttft": "500ms"},
        }
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result, "draw", lambda results, folder: [])  # the figures are tested where they are drawn
        result.save_all(slotstep.compare(scenario, POLICIES), folder)
    return folder


@pytest.fixture(scope="module")
def page(compared: Path) -> Path:
    """The page of that comparison."""
    with pytest.raises(SystemExit) as left:
        app.main(["report", str(compared)])
    assert left.value.code == 0
    return compared / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


def test_the_page_opens_in_a_browser_and_does_what_it_promises(page: Path, browser: Any) -> None:
    asked: list[str] = []
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    said = messages(tab)
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())
    assert asked == [page.as_uri()]

    figures = tab.locator("svg.figure")
    boxes = [figures.nth(place).bounding_box() for place in range(figures.count())]
    assert len(boxes) == 1 + 3 + 3 + 4 + 3
    assert all(box is not None and box["width"] > 100 and box["height"] > 60 for box in boxes)

    assert tab.locator("td", has_text=EVIL).first.inner_text() == EVIL
    assert tab.locator("main img").count() == 0

    table = tab.get_by_role("table", name="Tenants", exact=True)
    column = table.locator("tbody tr td:nth-child(9)")
    for order in ("ascending", "descending"):
        table.get_by_role("button", name="worst wait").click()
        found = [float(cell.get_attribute("data-key")) for cell in column.all()]
        assert found == sorted(found, reverse=order == "descending")
        assert len(set(found)) > 1
        assert table.locator(f"th[aria-sort={order}]").count() == 1
    table.get_by_role("button", name="tenant").click()
    names = table.locator("tbody tr td:first-child").all_inner_texts()
    assert names == [EVIL] * 3 + ["quiet"] * 3

    times = tab.locator("svg.timeline .times text")
    whole = times.all_text_contents()
    tab.get_by_role("button", name="Zoom in").click()
    tab.get_by_role("button", name="Later").click()
    views = tab.locator("svg.timeline .bars").evaluate_all("all => all.map(one => one.getAttribute('viewBox'))")
    assert len(views) == 3
    for view in views:
        assert [float(part) for part in view.split()] == pytest.approx([1e6 * 5 / 12, 0, 5e5, 16])
    assert whole[0] == "0 s"
    assert times.all_text_contents() != whole
    assert " to " in tab.locator(".zoom output").inner_text()
    tab.get_by_role("button", name="All").click()
    assert times.all_text_contents() == whole

    assert said == []
    assert asked == [page.as_uri()]
    tab.close()


@pytest.mark.parametrize("look", ["phone", "dark", "print"])
def test_the_page_fits_a_phone_a_dark_room_and_paper(page: Path, browser: Any, look: str) -> None:
    size = {"width": 390, "height": 844} if look == "phone" else {"width": 1280, "height": 900}
    context = browser.new_context(viewport=size, color_scheme="dark" if look != "phone" else "light")
    tab = context.new_page()
    tab.goto(page.as_uri())
    if look == "print":
        tab.emulate_media(media="print")
    assert tab.evaluate("document.documentElement.scrollWidth") <= size["width"]
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    red = int(ground.split("(")[1].split(",")[0])
    assert (red < 60) is (look == "dark")
    context.close()


def test_without_scripts_every_figure_and_table_is_there(page: Path, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page.as_uri())
    assert tab.locator("svg.figure").count() == 14
    assert tab.locator("svg.timeline .times text").count() > 6
    assert not tab.locator(".zoom").is_visible()
    context.close()


def test_the_page_is_small_and_the_same_every_time(page: Path, tmp_path: Path) -> None:
    assert page.stat().st_size < LARGEST
    again = tmp_path / "again.html"
    with pytest.raises(SystemExit):
        app.main(["report", str(page.parent), "--out", str(again)])
    assert again.read_bytes() == page.read_bytes()


def test_runs_stand_in_the_order_of_the_command_and_no_other_is_there(compared: Path, page: Path) -> None:
    shutil.copytree(compared / "fair", compared / "of an earlier command", dirs_exist_ok=True)
    with pytest.raises(SystemExit):
        app.main(["report", str(compared), "--out", str(compared / "again.html")])
    shown = (compared / "again.html").read_text()
    assert shown == page.read_text()
    places = [shown.index(f"{name}: 1") for name in POLICIES]
    assert places == sorted(places)
    assert socket.gethostname() not in shown


def complaint(capsys: pytest.CaptureFixture[str], folder: Path) -> str:
    with pytest.raises(SystemExit) as left:
        app.main(["report", str(folder)])
    assert left.value.code == 2
    return capsys.readouterr().err.strip()


def test_a_folder_without_results_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(capsys, tmp_path / "none").endswith("none: no such folder; expected one that --out wrote")
    assert "neither summary.json nor comparison.json in it" in complaint(capsys, tmp_path)
    (tmp_path / "summary.json").write_text("{")
    assert "summary.json: invalid JSON" in complaint(capsys, tmp_path)
    (tmp_path / "summary.json").write_text("{}")
    assert "expected the summary of a run, with the key slot_steps" in complaint(capsys, tmp_path)
    (tmp_path / "comparison.json").write_text('{"runs": []}')
    assert complaint(capsys, tmp_path).endswith("comparison.json: runs: expected a list of folders")
    (tmp_path / "comparison.json").write_text('{"runs": ["gone"]}')
    assert complaint(capsys, tmp_path).endswith("gone/summary.json: no such file; write the run again with --out")


def test_a_damaged_result_is_refused_by_the_file_that_is_damaged(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = compared / "fcfs"
    for name in ("requests.parquet", "steps.parquet", "slots.parquet", "scenario.yaml"):
        folder = tmp_path / name
        shutil.copytree(whole, folder)
        (folder / name).unlink()
        assert complaint(capsys, folder) == f"error: {folder / name}: no such file; write the run again with --out"
        if name.endswith("parquet"):
            (folder / name).write_bytes((whole / name).read_bytes()[:100])
            assert complaint(capsys, folder).startswith(f"error: {folder / name}: cannot be read: ")
    assert not list(tmp_path.rglob("report.html"))
