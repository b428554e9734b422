"""`slotstep calibrate transfer`: a roofline at another model's shape, as a profile that says what was carried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import slotstep
from calibrate.profiles.profile import named, profile, read
from slotstep.cli.app import main

QWEN = "h100-qwen3-14b-vllm"
SMALL = {
    "layers": 2,
    "hidden": 64,
    "intermediate": 128,
    "heads": 4,
    "kv_heads": 2,
    "head_size": 16,
    "vocabulary": 100,
}
TOLD = {"device": "H100", "dtype": "bfloat16", "date": "2026-01-01", "method": "by hand", "source": "nowhere"}


def slotstep_exits(*arguments: object) -> int:
    """Run the command line; its exit code."""
    try:
        main([str(each) for each in arguments])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def written(path: Path, model: dict[str, Any], curve: dict[str, Any], devices: int = 1) -> Path:
    """A profile of this model and curve."""
    made = profile(curve, model=model, tensor_parallel=devices, not_included=[], **TOLD)
    path.write_text(made.text())
    return path


def config(path: Path) -> Path:
    """The config.json of a model twice as deep, with twice the heads of keys and values."""
    sizes = {"num_hidden_layers": 4, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4}
    more = {"num_key_value_heads": 4, "head_dim": 16, "vocab_size": 100, "torch_dtype": "bfloat16"}
    path.write_text(json.dumps({"model_type": "llama", **sizes, **more}))
    return path


def test_a_shipped_roofline_at_another_shape_is_a_cost_that_says_what_was_carried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "llama.yaml"
    assert slotstep_exits("calibrate", "transfer", QWEN, "--model", "llama-2-7b", "--out", out) == 0
    assert "per_context_token     174.8ns  3.200 times that of qwen3-14b" in capsys.readouterr().out
    made, before = read(out), named(QWEN)
    # 2 x 32 layers x 32 heads against 2 x 40 layers x 8 heads of keys and values, each of 128
    assert made.cost().per_context_token == pytest.approx(
        before.cost().per_context_token * 32 * 32 / (40 * 8), rel=1e-5
    )
    assert made.cost().host == before.cost().host
    said = made.content["details"]["carried"]
    assert (said["profile"], said["sha256"]) == (QWEN, before.sha256)
    assert (said["from"], said["to"], said["stayed"]) == ("qwen3-14b", "llama-2-7b", ["host"])
    assert set(said["factors"]) == {"weight_pass", "per_token", "per_context_token"}
    assert (made.content["model"]["name"], made.content["residuals"]) == ("llama-2-7b", None)
    assert made.content["range"] == before.content["range"]
    mapping = {"workload": {"requests": [{"prompt": 10, "output": 2}]}, "cost": {"profile": str(out)}}
    assert slotstep.run(slotstep.parse(mapping)).summary["profile"]["sha256"] == made.sha256


def test_the_shape_is_that_of_the_profile_or_the_one_named_and_the_host_may_be_given(tmp_path: Path) -> None:
    curve = {"roofline": {"per_chunk_work": 1.0, "per_sequence": 7.0, "host": 5.0}}
    arguments = ["--model", config(tmp_path / "config.json"), "--host", "2us", "--out", tmp_path / "out.yaml"]
    written(tmp_path / "told.yaml", {"name": "small", **SMALL}, curve)
    written(tmp_path / "named.yaml", {"name": "small"}, curve)
    (tmp_path / "small.json").write_text(
        config(tmp_path / "other.json").read_text().replace('layers": 4', 'layers": 2')
    )
    for more in (["told.yaml"], ["named.yaml", "--from-model", tmp_path / "small.json"]):
        assert slotstep_exits("calibrate", "transfer", tmp_path / more[0], *more[1:], *arguments) == 0
        made = read(tmp_path / "out.yaml")
        assert made.content["curve"]["roofline"] == {"per_chunk_work": 2.0, "per_sequence": 7.0, "host": 2000.0}
        assert made.content["details"]["carried"]["stayed"] == ["per_sequence"]


@pytest.mark.parametrize(
    ("given", "arguments", "complaint"),
    [
        ("h100-llama-3.1-8b", [], "h100-llama-3.1-8b: its curve is of the kind table; expected roofline"),
        ("h100-qwen3-14b-vlm", [], "no profile of that name; did you mean h100-qwen3-14b-vllm?"),
        ("named.yaml", [], "named: model: model small: unknown, and no such file; did you mean"),
        ("several.yaml", [], "several: tensor_parallel is 2; expected 1"),
        (QWEN, ["--model", "mixtral-8x7b"], "mixtral-8x7b has experts or a window; expected a dense model"),
        (QWEN, ["--host", "5"], "found '5', without a unit"),
    ],
)
def test_what_does_not_carry_is_refused_in_one_line_and_nothing_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: str,
    arguments: list[str],
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "named.yaml", {"name": "small"}, {"roofline": {"weight_pass": 1.0}})
    written(tmp_path / "several.yaml", {"name": "small", **SMALL}, {"roofline": {"weight_pass": 1.0}}, devices=2)
    to = [] if "--model" in arguments else ["--model", "llama-2-7b"]
    assert slotstep_exits("calibrate", "transfer", given, *to, *arguments, "--out", "out.yaml") == 2
    printed = capsys.readouterr()
    assert complaint in printed.err
    assert len(printed.err.splitlines()) == 1
    assert not (tmp_path / "out.yaml").exists()
