"""Prompts that a client sends again and again: said on the command line, found in the prefix cache."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from slotstep.cli.app import main
from slotstep.cli.calibrate.from_log import unknown_hits
from slotstep.validation.measured_runs import runs
from slotstep.validation.repeated_prompts import period

ENGINE = """
workload: {trace: {auto: log.csv}}
engine: {slots: 4, token_budget: 2048, page_size: 16, prefix_cache: true}
cost: {affine: {per_prefill_token: 1ms, per_sequence: 10ms}}
"""
SECOND = 1_000_000


def slotstep_exits(*arguments: object) -> int:
    """Run the command line; its exit code."""
    try:
        main([str(each) for each in arguments])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def written(folder: Path, prompts: list[int], ttft_ms: list[int], name: str = "log") -> Path:
    """A measured run in TraceV2: a request every second, of two tokens 10 ms apart."""
    sent = np.arange(len(prompts)) * SECOND + 10**15
    first = sent + np.array(ttft_ms) * 1000
    frame = pd.DataFrame(
        {
            "request_id": [f"r{n}" for n in range(len(prompts))],
            "input_tokens": prompts,
            "output_tokens": 2,
            "arrival_time_us": sent - 10**15,
            "send_time_us": sent,
            "first_chunk_time_us": first,
            "last_chunk_time_us": first + 10_000,
            "status": "ok",
        }
    )
    path = folder / f"{name}.trace.csv"
    frame.to_csv(path, index=False)
    (folder / "engine.yaml").write_text(ENGINE)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two prompts sent in turn, three times each: at 1 ms a token, and the last 16 are computed whenever one comes
    again, for 160 and 176 tokens are 10 and 11 whole pages, of which the last is never taken from the cache."""
    return written(tmp_path, [160, 176] * 3, [160, 176, 16, 16, 16, 16])


def test_prompts_sent_in_turn_are_found_in_the_cache(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["validate", log, "--scenario", tmp_path / "engine.yaml", "--json"]
    assert slotstep_exits(*arguments, "--prompts", 2) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["prompts"] == 2
    for metric in ("ttft_s", "e2e_s"):
        assert all(abs(run["metrics"][metric][name]["error"]) < 1e-6 for name in ("mean", "p50", "p90", "p99"))
    assert slotstep_exits(*arguments) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["prompts"] is None
    assert run["metrics"]["ttft_s"]["mean"]["error"] == pytest.approx(168 * 6 / 400 - 1)


def test_a_request_that_cannot_be_replayed_was_sent_in_its_turn_too(log: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(log)
    frame.loc[2, ["output_tokens", "first_chunk_time_us", "last_chunk_time_us"]] = 0
    frame.loc[2, "status"] = "timeout"
    frame.to_csv(log, index=False)
    (run,) = runs([log], tmp_path / "engine.yaml", prompts=2)
    assert [request.blocks[0] for request in run.made.requests] == ["0.0", "1.0", "1.0", "0.0", "1.0"]


@pytest.mark.slow
def test_a_fit_knows_that_prompts_came_again_and_its_profile_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first requests of each prompt take 64 to 69 ms, all others 16 or fewer: at 1 ms a token."""
    lengths = [64 + n % 6 for n in range(24)]
    computed = [length if n < 6 else length - 16 * ((length - 1) // 16) for n, length in enumerate(lengths)]
    log = written(tmp_path, lengths, computed)
    scenario = tmp_path / "engine.yaml"
    scenario.write_text(
        ENGINE.replace("affine: {per_prefill_token: 1ms, per_sequence: 10ms}", "roofline: {weight_pass: 10ms}")
    )
    about = [f"--about={each}" for each in ("device=H100", "model=small", "dtype=bfloat16", "tensor_parallel=1")]
    arguments = ["calibrate", "from-log", log, "--scenario", scenario, "--free", "per_token", "--json"]
    assert slotstep_exits(*arguments, "--prompts", 6, "--out", tmp_path / "mine.yaml", *about) == 0
    assert json.loads(capsys.readouterr().out)["cost"]["per_token"] == pytest.approx(1e6, rel=0.1)
    assert "prompts_sent_in_turn: 6" in (tmp_path / "mine.yaml").read_text()


def test_lengths_that_repeat_are_pointed_out_once_and_only_where_the_cache_matters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = written(tmp_path, [100 + 7 * (n % 10) for n in range(60)], [100] * 60)
    arguments = ["validate", log, "--scenario", tmp_path / "engine.yaml"]
    assert slotstep_exits(*arguments) == 0
    assert "log: the lengths of prompts repeat after 10 requests" in capsys.readouterr().err
    for silent in (["--prompts", 10], ["--set", "engine.prefix_cache=false"]):
        assert slotstep_exits(*arguments, *silent) == 0
        assert "repeat" not in capsys.readouterr().err


def test_unknown_hits_hide_what_a_step_with_a_prompt_costs(log: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "engine.yaml"
    (unknown,) = unknown_hits(runs([log], scenario))
    assert "not identified separately from prompts found in the cache" in unknown
    assert unknown_hits(runs([log], scenario, prompts=2)) == []
    assert unknown_hits(runs([log], scenario, ["engine.prefix_cache=false"])) == []


def test_a_period_is_that_of_the_lengths_and_chance_is_none() -> None:
    lot = np.random.default_rng(3)
    round_ = lot.integers(10, 1000, 25).astype(float)
    assert period(np.tile(round_, 5)) == 25
    assert period(lot.integers(10, 1000, 200).astype(float)) is None
    assert period(np.full(200, 512.0)) is None
    assert period(np.repeat([5.0, 6.0, 7.0, 8.0], 100)) is None
    assert period(np.tile(round_, 5)[:39]) is None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--prompts", "3"], "log: --prompts 3: 0% of the prompts are as long as the one 3 places before"),
        (["--prompts", "2", "--set", "engine.prefix_cache=false"], "needs an engine with prefix_cache: true"),
        (["--prompts", "2", "--set", "engine.share=none"], "share: tenant or all"),
        (["--prompts", "0"], "Input should be greater than or equal to 1"),
    ],
)
def test_prompts_that_cannot_come_again_are_refused(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    assert slotstep_exits("validate", log, "--scenario", tmp_path / "engine.yaml", *arguments) == 2
    assert complaint in capsys.readouterr().err


def test_prompts_whose_content_is_known_are_not_given_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, [16], [16])
    told = {"prompt": 2, "output": 2, "tokens": [1, 2], "status": "ok", "e2e_s": 0.1}
    log = tmp_path / "told.jsonl"
    log.write_text("".join(json.dumps({"arrival_ns": n, **told}) + "\n" for n in range(4)))
    arguments = ["validate", log, "--scenario", tmp_path / "engine.yaml", "--prompts", 2]
    assert slotstep_exits(*arguments) == 2
    assert "the requests say what their prompts hold; expected lengths alone" in capsys.readouterr().err
