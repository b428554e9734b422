"""Shapes of models: they weigh what their makers say, and a config.json is read or refused in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibrate.models.decoder_shape import SHAPES, RopeScaling, model_shape

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 16,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}


def written(folder: Path, **changes: Any) -> Path:
    """A config.json like Llama 3.2 1B's, with changes; None takes a key out."""
    config = {key: value for key, value in (LLAMA | changes).items() if value is not None}
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


@pytest.mark.parametrize(
    ("model", "published"),
    [
        ("llama-3.2-1b", 1_235_814_400),
        ("llama-3.1-8b", 8_030_261_248),
        ("qwen2.5-7b", 7_615_616_512),
        ("llama-2-7b", 6_738_415_616),
    ],
)
def test_a_named_model_has_as_many_parameters_as_its_maker_says(model: str, published: int) -> None:
    assert model_shape(model).parameters == published


def test_what_a_step_of_llama_8b_reads() -> None:
    shape = model_shape("llama-3.1-8b")
    assert shape.kv_bytes_per_token() == 2 * 32 * 8 * 128 * 2 == 131_072
    assert 2 * shape.streamed_parameters == shape.weight_bytes() - 128_256 * 4096 * 2
    assert 2 * shape.streamed_parameters / 1e9 == pytest.approx(15.01, abs=0.005)


def test_a_config_gives_the_shape_of_the_named_model(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert replace(model_shape(str(path)), name="llama-3.2-1b") == SHAPES["llama-3.2-1b"]
    assert model_shape(str(tmp_path)) == model_shape(str(path))


def test_the_newer_layout_of_a_config_says_the_same(tmp_path: Path) -> None:
    rope = dict(LLAMA["rope_scaling"], rope_theta=500000.0)  # type: ignore[call-overload]
    path = written(
        tmp_path, rope_scaling=None, rope_theta=None, rope_parameters=rope, torch_dtype=None, dtype="bfloat16"
    )
    assert replace(model_shape(str(path)), name="llama-3.2-1b") == SHAPES["llama-3.2-1b"]


def test_a_qwen_has_a_bias_and_no_scaling(tmp_path: Path) -> None:
    shape = model_shape(str(written(tmp_path, model_type="qwen2", rope_scaling=None)))
    assert shape.qkv_bias
    assert shape.rope_scaling is None
    assert SHAPES["llama-3.1-8b"].rope_scaling == RopeScaling(8.0, 1.0, 4.0, 8192)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"model_type": "mixtral"}, "model_type is 'mixtral'; expected llama or qwen2"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'; expected 'silu'"),
        ({"attention_bias": True}, "attention_bias is True; expected False"),
        (
            {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
            "rope_type is 'yarn'; expected llama3, or no scaling",
        ),
        ({"num_hidden_layers": None}, "num_hidden_layers is None; expected a whole number"),
        ({"num_key_value_heads": 5}, "kv_heads is 5; expected a divisor of heads, 32"),
        ({"num_attention_heads": 0}, "expected at least 1"),
        ({"rms_norm_eps": -1}, "rms_norm_eps is -1; expected a number above 0"),
        ({"torch_dtype": "float8"}, "dtype is 'float8'; expected float32, bfloat16, float16"),
    ],
)
def test_what_the_engine_does_not_compute_is_refused(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises(ValueError, match="expected") as refusal:
        model_shape(str(path))
    assert str(path) in str(refusal.value)
    assert complaint in str(refusal.value)


def test_a_file_that_is_no_config_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("layers: 4")
    with pytest.raises(ValueError, match="not readable as JSON"):
        model_shape(str(path))


def test_an_unknown_model_is_told_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"model llama-3-8b: unknown.*did you mean llama-3\.1-8b\?"):
        model_shape("llama-3-8b")
