"""Ctrl-C: one line, exit code 130, and every file whole or absent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest

from reports import files
from slotstep.scenario import document

SLOW = {
    "workload": {"synthetic": {"requests": 100000, "arrivals": {"poisson": {"rate": 100}}, "prompt": 9, "output": 9}},
    "cost": {"unit": "1ms"},
}
GRID = {"scenario": {**SLOW, "workload": {"requests": [{"output": 5}]}}, "seeds": 500}


def interrupted(arguments, until):
    """A command in a group of its own, as a terminal has it, which gets SIGINT once `until` says so."""
    command = subprocess.Popen(
        [sys.executable, "-m", "slotstep", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where the tests run in background
    )
    while not until() and command.poll() is None:
        time.sleep(0.01)
    os.killpg(command.pid, signal.SIGINT)
    _, said = command.communicate(timeout=60)
    return command.returncode, said


def whole(folder):
    """The files of a folder, each read to its end."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in found:
        if path.suffix == ".parquet":
            pq.read_table(path)
        elif path.suffix == ".json":
            json.loads(path.read_text())
    return found


@pytest.mark.slow
def test_a_run_that_is_interrupted_leaves_nothing_and_says_so_in_a_line(tmp_path):
    scenario, out = tmp_path / "slow.yaml", tmp_path / "out"
    scenario.write_text(document.dump(SLOW))
    code, said = interrupted(["run", str(scenario), "--out", str(out)], out.exists)
    assert (code, said) == (130, "interrupted\n")
    assert whole(out) == []


@pytest.mark.slow
def test_a_sweep_that_is_interrupted_keeps_the_rows_that_ended(tmp_path):
    grid, out = tmp_path / "grid.yaml", tmp_path / "out"
    grid.write_text(document.dump(GRID))
    code, said = interrupted(
        ["sweep", str(grid), "--out", str(out), "--jobs", "2"], lambda: len(list(out.rglob("*.parquet"))) > 3
    )
    assert (code, said) == (130, "interrupted\n")
    assert len(whole(out)) > 3


def half_written(path):
    """Writing is interrupted in the middle."""
    with files.atomically(path) as temporary:
        temporary.write_text("{")
        raise KeyboardInterrupt


def test_a_file_whose_writing_is_interrupted_is_not_there(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        half_written(tmp_path / "half.json")
    assert list(tmp_path.iterdir()) == []
