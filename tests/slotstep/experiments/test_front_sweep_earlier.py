"""Rows of earlier grids are kept apart: a changed policy, trace or scenario never counts as further seeds."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import code_of

from slotstep.experiments.sweeps import earlier, grid
from slotstep.experiments.sweeps.store import GRID, Store, opened
from slotstep.experiments.sweeps.sweep import sweep
from slotstep.report_input.results import sweep as report
from traces.errors import BadInput

POLICY = "from policies.fcfs import FirstComeFirstServed\n\nclass Mine(FirstComeFirstServed):\n    pass\n"
HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
TINY: dict[str, Any] = {
    "workload": {"synthetic": {"requests": 6, "arrivals": {"poisson": {"rate": 100}}, "output": 4}},
    "engine": {"slots": 2},
    "cost": {"unit": "5ms"},
}


def swept(folder: Path, scenario: dict[str, Any], seeds: int = 2, **plan: Any) -> Store:
    """A sweep over seeds in this process."""
    return sweep(grid.read({"scenario": scenario, "seeds": seeds, **plan}), folder, jobs=1)


def said(store: Store) -> str:
    """What the remark says after the number of rows."""
    (line,) = earlier.remarks(store)
    return line.partition(" are left out (table `earlier`): ")[2]


def counted(folder: Path) -> str:
    """What the report says of its runs."""
    return report(folder).findings[0].sentences[0].partition(". Numbers")[0]


def test_rows_of_a_policy_that_was_edited_are_no_further_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "edited_of_mine", raising=False)
    file, out = tmp_path / "edited_of_mine.py", tmp_path / "out"
    file.write_text(POLICY)
    mine = TINY | {"policy": "edited_of_mine:Mine"}
    (first,) = set(swept(out, mine).frame().user_code)
    assert json.loads(first) == {file.name: hashlib.sha256(POLICY.encode()).hexdigest()}
    file.write_text(POLICY + "# edited\n")
    store = swept(out, mine, seeds=3)
    assert len(store.frame()) == 3
    assert len(store.earlier()) == 2
    assert said(store) == "2 with another content of edited_of_mine.py"
    assert counted(out) == "3 runs of 1 settings, 3 seeds of each"
    assert report(out).remarks[0] == earlier.remarks(store)[0]


def test_rows_of_a_trace_that_was_changed_are_no_further_seeds(tmp_path: Path) -> None:
    trace, out = tmp_path / "trace.csv", tmp_path / "out"
    rows = [f"2023-11-16 18:15:{second:02}.0000000,10,5\n" for second in range(20)]
    scenario = TINY | {"workload": {"trace": {"azure": str(trace)}}}
    for length in (10, 20):
        trace.write_text(HEAD + "".join(rows[:length]))
        store = swept(out, scenario, seeds=1)
        digest = hashlib.sha256(trace.read_bytes()).hexdigest()
        assert store.frame().input_files.map(json.loads).tolist() == [{str(trace): digest}]
    assert store.frame().requests_injected.tolist() == [20]
    assert store.earlier()["requests_injected"].to_pylist() == [10]
    assert said(store) == f"1 with another content of {trace}"
    assert counted(out) == "1 runs of 1 settings, 1 seeds of each"


def test_rows_of_another_scenario_with_the_same_axes_are_kept_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    swept(tmp_path, TINY)
    store = swept(tmp_path, TINY, set={"workload.synthetic.requests": 9})
    assert store.frame().requests_injected.tolist() == [9, 9]
    assert said(store) == "2 of settings that are not in the grid"
    assert code_of("results", tmp_path, "--query", "SELECT count(*) AS n FROM earlier", "--csv") == 0
    printed = capsys.readouterr()
    assert printed.out == "n\n2\n"
    assert printed.err == f"{earlier.remarks(store)[0]}\n"
    back = swept(tmp_path, TINY)
    assert back.frame().requests_injected.tolist() == [6, 6]
    assert len(back.earlier()) == 2


def test_a_row_that_does_not_state_its_code_is_of_another_version(tmp_path: Path) -> None:
    store = swept(tmp_path, TINY)
    old = pa.table({"run": ["old"], "status": ["ended"], "steps": ["many"]})
    pq.write_table(old, tmp_path / "runs" / "old.parquet")
    assert len(store.frame()) == 2
    assert said(store) == "1 of another version of slotstep"


def test_a_grid_that_grows_leaves_nothing_out(tmp_path: Path) -> None:
    swept(tmp_path, TINY)
    store = swept(tmp_path, TINY, seeds=3)
    assert earlier.remarks(store) == []
    assert len(store.earlier()) == 0


def test_a_directory_without_a_present_grid_shows_all_rows(tmp_path: Path) -> None:
    swept(tmp_path, TINY)
    swept(tmp_path, TINY, set={"engine.slots": 1})
    (tmp_path / GRID).unlink()
    assert len(opened(tmp_path).frame()) == 4
    assert earlier.remarks(opened(tmp_path)) == []


def test_a_damaged_grid_is_one_line(tmp_path: Path) -> None:
    swept(tmp_path, TINY)
    (tmp_path / GRID).write_text("[]")
    with pytest.raises(BadInput, match=r"grid\.json: expected what `slotstep sweep` wrote"):
        opened(tmp_path).table()
