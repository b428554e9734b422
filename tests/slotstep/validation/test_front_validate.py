"""`slotstep validate` on files of clients: what their gaps are, and what a file does not tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slotstep.cli.app import main

SCENARIO = """
workload: {trace: {auto: x.json}}
cost: {affine: {base: 10ms, per_prefill_token: 1ms}}
engine: {slots: 8, pages: 1000}
"""
HEAD = {"date": "d", "backend": "openai", "model_id": "m", "tokenizer_id": "m", "num_prompts": 4}
ALONE = [0.01, 0.01, 0.01]
# The last prompt is prefilled while the third request decodes: one of its gaps is 100 ms.
RUN = HEAD | {
    "input_lens": [10, 10, 10, 90],
    "output_lens": [4, 4, 4, 1],
    "ttfts": [0.02, 0.02, 0.02, 0.105],
    "itls": [ALONE, ALONE, [0.01, 0.1, 0.01], []],
    "start_times": [100.0, 101.0, 102.0, 102.025],
    "errors": ["", "", "", ""],
}


def validated(
    run: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[dict[str, Any], str]:
    """What `validate` says of a client's file, as JSON and in words."""
    (folder / "scenario.yaml").write_text(SCENARIO)
    (folder / "run.json").write_text(json.dumps(run))
    command = ["validate", str(folder / "run.json"), "--scenario", str(folder / "scenario.yaml"), *more]
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--json"])
    content = json.loads(capsys.readouterr().out)["runs"][0]
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--out", str(folder / "out")])
    return content, capsys.readouterr().out


def test_gaps_between_tokens_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, said = validated(RUN, tmp_path, capsys)
    itl = found["metrics"]["itl_s"]
    assert (itl["n"], found["gaps_between"]) == (9, {"tokens": 3, "chunks": 0})
    assert itl["mean"]["measured"] == pytest.approx(0.02)
    assert itl["mean"]["error"] == pytest.approx(0, abs=1e-9)
    assert "chunks" not in said


def test_gaps_between_chunks_are_compared_with_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    merged = RUN | {"itls": [ALONE, ALONE, [0.11, 0.01], []]}
    found, said = validated(merged, tmp_path, capsys)
    itl = found["metrics"]["itl_s"]
    assert (itl["n"], found["gaps_between"]) == (6, {"tokens": 2, "chunks": 1})
    assert itl["mean"] == {"measured": pytest.approx(0.01), "predicted": 0.01, "error": pytest.approx(0, abs=1e-9)}
    assert "gaps of 1 requests are between chunks, not between tokens" in said
    assert "ITL is of the 2 others" in said


def test_a_file_of_chunks_alone_has_no_itl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    merged = RUN | {"itls": [[0.03], [0.03], [0.12], []]}
    found, said = validated(merged, tmp_path, capsys)
    assert "itl_s" not in found["metrics"]
    assert found["gaps_between"] == {"tokens": 0, "chunks": 3}
    assert "there is no ITL" in said


def from_log(folder: Path, *more: str) -> int:
    """The exit code of a fit to the file."""
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", "from-log", str(folder / "run.json"), "--scenario", str(folder / "scenario.yaml"), *more])
    return int(ended.value.code or 0)


def test_a_file_without_any_latency_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    (tmp_path / "run.json").write_text(json.dumps(RUN | {"ttfts": [0.0] * 4, "itls": [[]] * 4}))
    assert from_log(tmp_path) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[1] == "changed 4: ttfts is 0 in every row: not measured"
    assert said[2:] == ["error: run: no request was measured to its end and can be replayed"]


def test_a_fit_warns_of_times_that_cannot_be_of_one_clock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    (tmp_path / "run.json").write_text(json.dumps(RUN | {"start_times": [0.5, 1.0, 2.0, 1.8e9]}))
    assert from_log(tmp_path) == 2
    assert "warning: requests over 57.1 years" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        main(["run", str(tmp_path / "scenario.yaml"), "--trace", str(tmp_path / "run.json"), "--json"])
    printed = capsys.readouterr()
    assert "warning: requests over 57.1 years" in printed.err
    assert any(remark.startswith("warning: ") for remark in json.loads(printed.out)["remarks"])


def test_a_closed_loop_without_start_times_is_compared_but_not_over_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = {name: value for name, value in RUN.items() if name != "start_times"}
    run = closed | {"ttfts": [0.02] * 3 + [0.1], "itls": [ALONE] * 3 + [[]]}
    found, said = validated(run, tmp_path, capsys, "--set", "clients={closed: {clients: 1}}")
    assert found["requests"]["compared"] == 4
    assert all(of["mean"]["error"] == pytest.approx(0, abs=1e-9) for of in found["metrics"].values())
    assert found["by_load"] == []
    assert "makespan_s" not in found
    assert "not known when requests were sent" in said
    assert (tmp_path / "out" / "run.png").stat().st_size > 1000


def test_a_closed_loop_without_start_times_is_fitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = 24
    run = HEAD | {
        "input_lens": [10] * count,
        "output_lens": [4] * count,
        "ttfts": [0.01] * count,
        "itls": [ALONE] * count,
        "errors": [""] * count,
    }
    scenario = SCENARIO.replace("affine: {base: 10ms, per_prefill_token: 1ms}", "roofline: {weight_pass: 5ms}")
    (tmp_path / "scenario.yaml").write_text(scenario + "clients: {closed: {clients: 2}}\n")
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert from_log(tmp_path, "--free", "weight_pass", "--json") == 0
    assert json.loads(capsys.readouterr().out)["cost"]["weight_pass"] == pytest.approx(1e7, rel=0.01)
