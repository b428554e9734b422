"""`slotstep plot`: metrics of a sweep over an axis, with means worked by hand, and the figure that is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import code_of, complaint

from reports.figures.sweep import sweep_figure
from slotstep.experiments.sweeps import curves, grid
from slotstep.experiments.sweeps.store import Store
from slotstep.experiments.sweeps.sweep import sweep
from slotstep.report_input.results import sweep as report

PLAN: dict[str, Any] = {
    "scenario": {
        "workload": {"synthetic": {"requests": 6, "arrivals": "at_once", "output": 4}},
        "engine": {"slots": 2},
        "cost": {"unit": "5ms"},
    },
    "grid": {
        "workload.synthetic.output": {"short $": 2, "long": 8},
        "engine.slots": [1, 2, 6],
    },
    "seeds": 2,
}
"""Six requests at once: 6 x 2 / slots steps, or 6 x 8 / slots, in every seed."""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return sweep(grid.read(PLAN), tmp_path_factory.mktemp("sweep"), jobs=1)


def drawn(
    store: Store, *metrics: str, x: str | None = None, by: tuple[str, ...] = (), where: str | None = None
) -> Any:
    """The lines of each panel: name, and (x, mean, number of runs) of each point."""
    found = curves.panels(store, curves.choose(store, x, by, metrics), where)
    return [
        {line.name: [(point.at, point.value, point.n) for point in line.points] for line in panel.lines}
        for panel in found
    ]


def test_a_line_for_each_name_over_the_axis_of_numbers(swept: Store) -> None:
    assert drawn(swept, "steps") == [
        {"long": [(1, 48, 2), (2, 24, 2), (6, 8, 2)], "short $": [(1, 12, 2), (2, 6, 2), (6, 2, 2)]}
    ]


def test_an_axis_is_named_by_the_end_of_its_key(swept: Store) -> None:
    steps, waits = drawn(swept, "steps", "tenants.default.wait_s.max", x="output", by=("slots",))
    assert steps["slots 2"] == [("long", 24, 2), ("short $", 6, 2)]
    # In two slots the last two wait for two pairs before them: 16 or 4 steps of 5 ms.
    assert waits["slots 2"] == [("long", pytest.approx(0.08), 2), ("short $", pytest.approx(0.02), 2)]


def test_a_condition_leaves_out_rows(swept: Store) -> None:
    (steps,) = drawn(swept, "steps", x="slots", by=("seed",), where="workload_synthetic_output = 'long'")
    assert list(steps) == ["seed 0", "seed 1"]


def test_metrics_without_a_value_have_no_point(swept: Store) -> None:
    assert drawn(swept, "attainment") == [{}]
    assert drawn(swept, "attainment", x="output") == [{}]
    sweep_figure(curves.panels(swept, curves.choose(swept, None, (), ("attainment",))))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--x", "slotz"), "--x slotz: no axis of this sweep; did you mean engine.slots?"),
        (("--by", "policy"), "--by policy: no axis of this sweep"),
        (("--y", "wait_s.p98"), "--y wait_s.p98: no such metric; did you mean wait_s.p99?"),
        (("--y", "log_sha256"), "--y log_sha256: is text; expected a number"),
        (("--where", "slots >"), "--where: Parser Error"),
        (("--where", "engine_slots = 7"), "no run that ended has engine_slots = 7"),
        (("--x", "slots", "--by", "seed"), "its runs differ in workload_synthetic_output too"),
        (("--out", "figure.jpg"), "--out figure.jpg: expected a name that ends in .png, .svg or .pdf"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(
    swept: Store, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], words: str
) -> None:
    assert words in complaint(capsys, "plot", swept.folder, *options)


def test_the_figure_has_the_names_the_unit_and_the_intervals(swept: Store) -> None:
    (panel, over_names) = (
        curves.panels(swept, curves.choose(swept, x, (), ("makespan_s",)))[0] for x in ("slots", "output")
    )
    figure = sweep_figure([panel, over_names])
    numbers, names = figure.axes
    assert [text.get_text() for text in names.get_xticklabels()] == ["long", "short $"]
    assert [text.get_text() for text in numbers.get_xticklabels()] == ["1", "2", "6"]
    assert numbers.get_xlabel() == "engine.slots"
    assert numbers.get_ylabel() == "s, logarithmic"
    assert numbers.get_yscale() == "log"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["long", "short $", "slots 1", "slots 2", "slots 6"]


@pytest.mark.parametrize(
    ("name", "begins"), [("plot.png", b"\x89PNG"), ("plot.svg", b"<?xml"), ("plot.pdf", b"%PDF")]
)
def test_the_file_has_the_format_of_its_name(
    swept: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, begins: bytes
) -> None:
    assert code_of("plot", swept.folder, "--x", "slots", "--y", "wait_s.p99", "--out", tmp_path / name) == 0
    assert capsys.readouterr().out == f"{tmp_path / name}\n"
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_a_page_draws_over_names_where_no_axis_has_numbers(tmp_path: Path) -> None:
    from reports.page.finding_charts import finding_chart

    plan = {**PLAN, "grid": {"workload.synthetic.output": PLAN["grid"]["workload.synthetic.output"]}}
    settings = next(iter(report(sweep(grid.read(plan), tmp_path, jobs=1).folder).findings))
    (curve, *_) = settings.curves
    assert curve.across == "workload.synthetic.output"
    chart = finding_chart(settings, curve)
    assert ">long</text>" in chart.figure
    assert ">short $</text>" in chart.figure
    assert chart.figure.count("<circle") == 2
    assert chart.figure.count("<path") == 2  # an interval each, and no line between the names
