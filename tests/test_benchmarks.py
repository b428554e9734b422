"""The benchmarks measure what they say they measure; how fast that is they only report."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import measure, optimizer
from benchmarks.__main__ import main
from benchmarks.cases import Case
from benchmarks.plan import FAST, FULL, Plan

TINY = Plan(small=50, large=150, huge=None, stepped=40, repeats=1)


def test_the_required_case_is_the_one_that_was_asked_for() -> None:
    drawn = Case(requests=2_000, rate=20, outputs="fixed 128").drawn()
    assert {(request.prompt, request.output) for request in drawn} == {(512, 128)}
    assert drawn[-1].arrival == pytest.approx(2_000 / 20 * 1e9, rel=0.15)  # over six deviations of 2,000 gaps
    assert (FULL.small, FULL.large, FULL.huge) == (10_000, 60_000, 1_000_000)
    assert (FAST.small, FAST.large, FAST.huge) == (10_000, 60_000, None)


def test_a_run_counts_requests_and_steps_and_its_process_is_its_own() -> None:
    alone = measure.in_fresh_process(Case(requests=1, rate=20, outputs="fixed 128"), repeats=2)
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
