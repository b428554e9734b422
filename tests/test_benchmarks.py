"""The benchmarks measure what they say they measure; how fast that is they only report."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import slotstep
from benchmarks import measure, optimizer
from benchmarks.__main__ import main
from benchmarks.cases import Case
from benchmarks.peers.__main__ import commands, measured, table
from benchmarks.plan import FAST, FULL, Plan

TINY = Plan(small=50, large=150, huge=None, stepped=40, repeats=1)


def test_the_required_case_is_the_one_that_was_asked_for() -> None:
    drawn = Case(requests=2_000, rate=20, outputs="fixed 128").drawn()
    assert {(request.prompt, request.output) for request in drawn} == {(512, 128)}
    assert drawn[-1].arrival == pytest.approx(2_000 / 20 * 1e9, rel=0.15)  # over six deviations of 2,000 gaps
    assert (FULL.small, FULL.large, FULL.huge) == (10_000, 60_000, 1_000_000)
    assert (FAST.small, FAST.large, FAST.huge) == (10_000, 60_000, None)


def test_a_run_counts_requests_and_steps_and_its_process_is_its_own() -> None:
    held = bytearray(b"x") * 1_000_000_000  # a process that is large itself starts it
    alone = measure.in_fresh_process(Case(requests=1, rate=20, outputs="fixed 128"), repeats=2)
    assert len(held) == 1_000_000_000
    assert (alone.requests, alone.steps) == (1, 128)  # the prompt's step yields the first token
    assert alone.cpu_s > 0
    assert 10e6 < alone.peak_bytes < 1e9
    assert alone.log_sha256 == measure.run(Case(requests=1, rate=20, outputs="fixed 128").drawn()).log_sha256


@pytest.mark.slow
def test_json_holds_every_case_with_its_counts(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--json"], TINY)
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert [(each["small"]["requests"], each["large"]["requests"]) for each in found["throughputs"]] == [
        (50, 150)
    ] * 6
    assert [each["engine"] for each in found["throughputs"]] == [
        "plain",
        "plain",
        "vllm, cache off",
        "vllm, cache on",
        "sglang, cache off",
        "sglang, cache on",
    ]
    assert found["huge"] is None
    ratio = found["ratio"]
    assert ratio["macro"]["steps"] == ratio["stepped"]["steps"] >= 40 * 800 / 256
    assert ratio["simulation"] == ratio["stepped"]["simulation_s"] / ratio["macro"]["simulation_s"]
    assert f"Python {sys.version_info[0]}.{sys.version_info[1]}" in found["machine"]
    assert printed.err.count("timing ") == 13


@pytest.mark.slow
def test_the_table_says_what_was_left_out_and_what_was_aimed_at(capsys: pytest.CaptureFixture[str]) -> None:
    main([], replace(TINY, large=60))
    printed = capsys.readouterr().out
    assert "left out" in printed
    assert all(required in printed for required in ("≥ 20,000", "≥ 10,000", "≥ 2,000"))
    assert "8x" in printed


def test_an_optimizer_is_followed_by_the_lowest_loss_after_each_evaluation():
    problem = optimizer.problem_of(0)
    found = optimizer.losses(problem, optimizer.ours, 8)
    assert found.shape == (8,)
    assert (np.diff(found) <= 0).all()
    assert found[-1] < found[0]


def test_peers_take_turns_and_one_that_is_not_there_or_fails_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    python = [sys.executable, "-c"]
    sizes = (1, 2)
    peers = {
        "slotstep": {size: [*python, "sum(range(10**6))"] for size in sizes},
        "absent": {size: ["no-such-program-anywhere"] for size in sizes},
        "broken": {size: [*python, "import sys; sys.exit('no such engine')"] for size in sizes},
    }
    times = measured(peers, sizes, repeats=2)
    assert set(times["slotstep"]) == {1, 2}
    assert all(0.01 < seconds < 10 for seconds in times["slotstep"].values())
    assert "no-such-program-anywhere" in times["absent"]
    assert times["broken"] == "no such engine"
    said = capsys.readouterr().err.splitlines()
    assert said[:3] == ["slotstep, 1 requests", "absent, 1 requests", "broken, 1 requests"]
    assert said[3:] == ["slotstep, 2 requests", "slotstep, 1 requests", "slotstep, 2 requests"]


def test_ratios_are_of_whole_processes_and_of_further_requests() -> None:
    times = {"slotstep": {100: 1.0, 200: 2.0}, "other": {100: 0.5, 200: 3.5}, "absent": "no such file"}
    file = io.StringIO()
    Console(file=file, width=100).print(table(times, (100, 200)))
    rows = [line.split() for line in file.getvalue().splitlines() if line.strip()]
    assert ["slotstep", "1.00", "2.00", "100", "1.00", "1.00"] in rows
    assert ["other", "0.50", "3.50", "33", "0.50", "3.00"] in rows
    assert not any("absent" in row for row in rows)


@pytest.mark.parametrize("cache", [False, True])
def test_our_part_of_the_comparison_is_the_same_work_from_a_trace(cache: bool, tmp_path: Path) -> None:
    made = commands(tmp_path, (20,), cache, "python", ".")
    assert list(made) == (["slotstep", "DynoSim"] if cache else ["slotstep", "DynoSim", "sched-sim", "inference-lab"])
    scenario = slotstep.load(made["slotstep"][20][4])
    result = slotstep.run(scenario)
    assert result.summary["requests"]["finished"] == 20
    drawn = [request.arrival for request in Case(20, 20.0, "fixed 128").drawn()]
    queued = sorted(result.requests["queued_ns"])
    assert queued == pytest.approx([arrival - drawn[0] for arrival in drawn], abs=1000)  # the trace has microseconds
    assert (result.summary["cache"] is not None) is cache
