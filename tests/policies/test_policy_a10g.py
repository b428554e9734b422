"""Schedulers measured on an A10G: what docs/a10g.md shows, which another test holds to what the script prints."""

from __future__ import annotations

import pytest
from repository import ROOT

PAGE = ROOT / "docs" / "a10g.md"


@pytest.fixture(scope="module")
def runs():
    """The first table's rows by run: the cells after the name."""
    table = PAGE.read_text().partition("<!-- end -->")[0]
    lines = [line for line in table.splitlines() if line.startswith(("| real_", "| on_off"))]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: cells for name, *cells in rows}


def seconds(cell):
    return float(cell.removesuffix(" s"))


def test_all_runs_are_there(runs):
    assert len(runs) == 8


@pytest.mark.parametrize(("measured", "predicted"), [(2, 3), (6, 7)])
def test_the_order_of_the_schedulers_is_right(runs, measured, predicted):
    real = {name: cells for name, cells in runs.items() if name.startswith("real")}
    order = sorted(real, key=lambda name: seconds(real[name][measured]))
    assert order == sorted(real, key=lambda name: seconds(real[name][predicted]))


@pytest.mark.parametrize(("measured", "predicted", "error"), [(2, 3, 5), (6, 7, 9)])
def test_every_figure_is_within_a_quarter(runs, measured, predicted, error):
    for name, cells in runs.items():
        off = int(cells[error].removesuffix("%")) / 100
        assert abs(off) <= 0.25, name
        assert seconds(cells[predicted]) == pytest.approx(seconds(cells[measured]) * (1 + off), abs=0.02, rel=0.01)


def test_as_many_are_turned_away(runs):
    for name, cells in runs.items():
        served, predicted = (int(cell.replace(",", "")) for cell in cells[:2])
        assert predicted == pytest.approx(served, rel=0.01), name
