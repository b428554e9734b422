"""A grid with values by name, and a sweep's table whose heads are names for a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import code_of, complaint

from slotstep.experiments.sweeps import grid, query
from slotstep.experiments.sweeps.sweep import sweep
from slotstep.scenario import document
from traces.errors import BadInput

NAMED: dict[str, Any] = {
    "scenario": {
        "workload": {"synthetic": {"requests": 6, "arrivals": "at_once", "output": 4}},
        "engine": {"slots": 2},
        "cost": {"unit": "5ms"},
    },
    "grid": {
        "workload.synthetic.output": {"short": 2, "long": 8},
        "engine.slots": [1, 2],
    },
}


def test_an_axis_shows_the_names_of_its_values(tmp_path: Path) -> None:
    frame = sweep(grid.read(NAMED), tmp_path, jobs=1).frame()
    # Six requests of 2 or 8 tokens, in one slot or two: 12 and 6 steps, 48 and 24.
    assert list(zip(frame.workload_synthetic_output, frame.engine_slots, frame.steps, strict=True)) == [
        ("long", 1, 48),
        ("long", 2, 24),
        ("short", 1, 12),
        ("short", 2, 6),
    ]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, "grid: grid: engine.slots: found no values; expected at least one"),
        ({"a": 1, "b": 1}, "grid: grid: engine.slots: 1 is there twice; expected each value once"),
        (4, "grid: grid: engine.slots: found 4; expected a list, or values by name"),
        ({"few": 0}, "grid, engine.slots=few: engine.slots: found 0; expected a whole number of at least 1"),
    ],
)
def test_values_that_cannot_be_used_are_refused_in_one_line(values: Any, reason: str) -> None:
    with pytest.raises(BadInput) as caught:
        grid.read({**NAMED, "grid": {"engine.slots": values}})
    assert str(caught.value) == reason


def test_the_heads_of_a_table_are_columns_that_a_query_accepts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(grid.read(NAMED), tmp_path / "out", jobs=1)
    monkeypatch.setenv("COLUMNS", "200")
    assert code_of("results", tmp_path / "out") == 0
    heads = next(line for line in capsys.readouterr().out.splitlines() if line.strip()).split()
    assert heads[:3] == ["workload_synthetic_output", "engine_slots", "occupancy"]
    assert code_of("results", tmp_path / "out", "--csv", "--query", f"SELECT {', '.join(heads)} FROM runs") == 0
    assert capsys.readouterr().out.splitlines()[0].split(",") == heads


def test_heads_are_wrapped_at_spaces_and_after_underscores() -> None:
    assert query.wrapped("rates_output_tokens_per_s", 8) == "rates_\noutput_\ntokens_\nper_s"
    assert query.wrapped("mean TTFT s", 6) == "mean\nTTFT s"
    assert query.wrapped("engine_slots", 12) == "engine_slots"


def test_a_file_may_name_its_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "grid.yaml").write_text(document.dump(NAMED))
    assert code_of("sweep", tmp_path / "grid.yaml", "--out", tmp_path / "out", "--jobs", "1") == 0
    assert capsys.readouterr().out == "4 runs: 4 now, 0 before\n"
    assert "no sweep.json" in complaint(capsys, "results", tmp_path)
