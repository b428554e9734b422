"""Labels of ticks never overlap in a file."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from reports.figures import style
from reports.figures.capacity import capacity_figure
from reports.figures.png import write_figure
from reports.figures.sweep import Line, Panel, Point, sweep_figure


def shown(axis):
    """The labels of an axis that are drawn, with their boxes."""
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    labels = [tick.label1 for tick in ticks if low <= tick.get_loc() <= high]
    return [(each.get_text(), each.get_window_extent()) for each in labels if each.get_visible() and each.get_text()]


def overprinted(figure: Figure) -> list[tuple[str, str]]:
    figure.draw_without_rendering()
    axes = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    pairs = (pair for axis in axes for pair in combinations(shown(axis), 2))
    return [(one, other) for (one, a), (other, b) in pairs if a.overlaps(b)]


def swept(*places: float) -> Figure:
    points = [Point(at, 1.0 + at, -np.inf, np.inf, 1) for at in places]
    return sweep_figure([Panel("p99 wait", "s", "cv", [Line("fcfs", points)])])


def searched(*values: float) -> Figure:
    """The curve of an objective at rates from 1."""
    points = [
        {"at": at, "objectives": [{"value": value, "late": None, "limit": 1.0}]} for at, value in enumerate(values, 1)
    ]
    answer = {
        "curve": points,
        "knee": None,
        "at": 1,
        "policy": "fcfs",
        "profile": None,
        "slots": 8,
        "token_budget": 9,
    }
    return capacity_figure({"objectives": ["p99 ttft < 1s"], "find": "rate", "answers": [answer]})


def crowded() -> Figure:
    figure = style.figure(3, 3)
    axes = figure.subplots()
    axes.set_xticks(range(20), labels=[f"{number:,}" for number in range(10_000, 30_000, 1000)])
    return figure


@pytest.mark.parametrize(
    "figure",
    [swept(1, 2, 3, 4, 1000), swept(0, 0.1, 0.2, 8192), searched(0.01, 0.1, 1, 10, 100), searched(1, 2), crowded()],
)
def test_no_label_of_a_tick_is_printed_over_another(figure: Figure, tmp_path: Path):
    write_figure(figure, tmp_path / "figure.png")
    assert overprinted(figure) == []


def test_labels_that_have_room_all_stay(tmp_path: Path):
    figure = swept(1, 2, 3)
    write_figure(figure, tmp_path / "figure.png")
    assert [text for text, _ in shown(figure.axes[0].xaxis)] == ["1", "2", "3"]


def test_long_names_of_an_axis_are_aslant_and_all_there():
    names = [f"a policy with a long name {number}" for number in range(8)]
    lines = [Line("16 slots", [Point(name, 1.0, -np.inf, np.inf, 1) for name in names])]
    figure = sweep_figure([Panel("p99 wait", "s", "policy", lines)])
    labels = figure.axes[0].get_xticklabels()
    assert [label.get_text() for label in labels] == names
    assert {label.get_rotation() for label in labels} == {25}
