"""`slotstep validate` on files of clients: what their gaps are, and what a file does not tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slotstep.cli import main

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


def validated(run: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    """What `validate` says of a client's file, as JSON and in words."""
    (folder / "scenario.yaml").write_text(SCENARIO)
    (folder / "run.json").write_text(json.dumps(run))
    command = ["validate", str(folder / "run.json"), "--scenario", str(folder / "scenario.yaml")]
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--json"])
    content = json.loads(capsys.readouterr().out)["runs"][0]
    with pytest.raises(SystemExit, match="0"):
        main(command)
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
