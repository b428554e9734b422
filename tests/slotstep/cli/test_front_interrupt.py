"""Ctrl-C: one line, exit code 130, and every file whole or absent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

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
    """A command in a group of its own, as a terminal has it, which gets SIGINT once `until` says so of its number."""
    command = subprocess.Popen(
        [sys.executable, "-m", "slotstep", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where the tests run in background
    )
    while not until(command.pid) and command.poll() is None:
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
    code, said = interrupted(["run", str(scenario), "--out", str(out)], lambda _: out.exists())
    assert (code, said) == (130, "interrupted\n")
    assert whole(out) == []


@pytest.mark.slow
def test_a_sweep_that_is_interrupted_keeps_the_rows_that_ended(tmp_path):
    grid, out = tmp_path / "grid.yaml", tmp_path / "out"
    grid.write_text(document.dump(GRID))
    code, said = interrupted(
        ["sweep", str(grid), "--out", str(out), "--jobs", "2"], lambda _: len(list(out.rglob("*.parquet"))) > 3
    )
    assert (code, said) == (130, "interrupted\n")
    assert len(whole(out)) > 3


def workers_of(pid):
    """The worker processes of a command."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [child for child in children if b"popen_loky" in Path(f"/proc/{child}/cmdline").read_bytes()]


SEARCH = ["capacity", "slow.yaml", "--find", "rate", "--slo", "p99 ttft < 1s", "--jobs", "2"]


@pytest.mark.slow
@pytest.mark.parametrize("command", [["sweep", "grid.yaml", "--out", "out", "--jobs", "2"], SEARCH])
@pytest.mark.parametrize("later", [0.1, 0.3, 1.2])
def test_workers_say_nothing_when_the_command_is_interrupted(tmp_path, monkeypatch, command, later):
    """0.1 and 0.3 s after they were started workers import their modules; later they simulate."""
    monkeypatch.chdir(tmp_path)
    Path("grid.yaml").write_text(document.dump(GRID))
    Path("slow.yaml").write_text(document.dump(SLOW))

    def begun(pid):
        found = len(workers_of(pid)) == 2
        time.sleep(later if found else 0)
        return found

    code, said = interrupted(command, begun)
    assert code == 130
    assert [line for line in said.splitlines() if "Process" in line or "Traceback" in line] == []
    assert said.endswith("interrupted\n")


def half_written(path):
    """Writing is interrupted in the middle."""
    with files.atomically(path) as temporary:
        temporary.write_text("{")
        raise KeyboardInterrupt


def test_a_file_whose_writing_is_interrupted_is_not_there(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        half_written(tmp_path / "half.json")
    assert list(tmp_path.iterdir()) == []
