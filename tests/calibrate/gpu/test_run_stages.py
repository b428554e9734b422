"""Stages in processes of their own: one that raises, is killed or hangs leaves the results of the others."""

from __future__ import annotations

import os
import sys
import tarfile
import time

import pytest

from calibrate.gpu.run_stages import Results, Stage, archive, attempt, run_stages

PUT = """
import sys
from pathlib import Path
from calibrate.gpu.run_stages import Results
put = Results(Path(sys.argv[1])).put
"""
ENDS = {
    "fine": "put('fine', found=1)",
    "raises": "put('raises', found=2); 1 / 0",
    "killed": "put('killed', found=3); import os; os.kill(os.getpid(), 9)",
    "hangs": "put('hangs', found=4); import time; time.sleep(1000)",
    "by graphs": "sys.exit('no graphs here')",
    "by eager": "put('capture', found=5)",
}


@pytest.fixture
def run(tmp_path):
    """A function that runs stages named as in ENDS, or by their ways; returns the results and the seconds it took."""
    results = Results(tmp_path / "results.json")

    def run(*stages, seconds=60.0):
        def command(stage, way):
            return [sys.executable, "-c", PUT + ENDS[way or stage], str(results.path)]

        began = time.monotonic()
        run_stages(stages, command, tmp_path, results, seconds)
        return results.read(), time.monotonic() - began

    return run


def test_a_stage_that_raises_or_is_killed_leaves_what_it_and_the_others_found(run, tmp_path):
    found, _ = run(Stage("raises", 30), Stage("killed", 30), Stage("fine", 30))
    assert [found[name]["found"] for name in ("raises", "killed", "fine")] == [2, 3, 1]
    failed = {name: stage["failed"] for name, stage in found["stages"].items()}
    assert failed["raises"][""].startswith("exit code 1")
    assert "ZeroDivisionError" in failed["raises"][""]
    assert failed["killed"][""].startswith("killed by signal 9")
    assert failed["fine"] == {}
    assert [found["stages"][name]["way"] for name in ("raises", "killed", "fine")] == [None, None, ""]
    assert "ZeroDivisionError" in (tmp_path / "raises.log").read_text()


def test_a_stage_that_hangs_ends_at_its_limit_and_the_next_one_runs(run):
    found, took = run(Stage("hangs", 3.0), Stage("fine", 30))
    assert found["stages"]["hangs"]["failed"] == {"": "not done after 3 s"}
    assert found["hangs"]["found"] == 4
    assert found["fine"]["found"] == 1
    assert took < 60


def test_the_deadline_holds_for_all_stages_together(run):
    found, took = run(Stage("hangs", 1000), Stage("fine", 1000), seconds=3.0)
    assert took < 30
    assert found["stages"]["fine"]["failed"] == {"": "the time for all stages was up"}
    assert "fine" not in found


def test_the_next_way_is_tried_and_told(run):
    ways = Stage("capture", 30, lambda _: ("by graphs", "by eager", "never"))
    found, _ = run(ways)
    assert found["capture"]["found"] == 5
    assert found["stages"]["capture"]["way"] == "by eager"
    assert list(found["stages"]["capture"]["failed"]) == ["by graphs"]
    assert "no graphs here" in found["stages"]["capture"]["failed"]["by graphs"]


def test_ways_follow_from_the_results_so_far(run):
    found, _ = run(Stage("fine", 30), Stage("later", 30, lambda so_far: () if "fine" in so_far else ("by eager",)))
    assert found["stages"]["later"]["way"] is None
    assert found["stages"]["later"]["failed"] == {}


def test_a_child_of_a_stage_that_is_killed_at_its_limit_is_killed_too(tmp_path):
    code = "import subprocess, time; print(subprocess.Popen(['sleep', '1000']).pid, flush=True); time.sleep(1000)"
    assert attempt([sys.executable, "-c", code], 3.0, tmp_path / "log") == "not done after 3 s"
    child = int((tmp_path / "log").read_text())
    for _ in range(100):
        try:
            with open(f"/proc/{child}/stat", encoding="utf-8") as file:
                if file.read().split()[2] == "Z":
                    return
        except FileNotFoundError:
            return
        time.sleep(0.05)
    os.kill(child, 9)
    raise AssertionError("the child runs")


def test_all_files_but_the_results_are_in_the_archive(tmp_path):
    (tmp_path / "measured").mkdir()
    for name in ("results.json", "one.log", "measured/samples.jsonl"):
        (tmp_path / name).write_text(name)
    archive(tmp_path, ("results.json",))
    with tarfile.open(tmp_path / "files.tar.gz") as made:
        assert sorted(made.getnames()) == ["measured/samples.jsonl", "one.log"]
