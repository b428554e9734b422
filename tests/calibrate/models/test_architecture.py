"""What models weigh and read, against the parameter counts that their makers publish, and by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibrate.models.architecture import Architecture, from_mapping
from calibrate.models.hf_config import from_config
from calibrate.models.registry import architecture

PUBLISHED = {
    "llama-3.1-8b": 8.03e9,
    "llama-3.1-70b": 70.6e9,
    "llama-3.2-1b": 1.24e9,
    "llama-2-7b": 6.74e9,
    "llama-2-70b": 69.0e9,
    "qwen2.5-7b": 7.61e9,
    "qwen3-14b": 14.8e9,
    "qwen3-32b": 32.8e9,
    "qwen3-30b-a3b": 30.5e9,
    "mistral-7b": 7.24e9,
    "mixtral-8x7b": 46.7e9,
    "deepseek-v3": 671e9,
}
ACTIVE = {"qwen3-30b-a3b": 3.3e9, "mixtral-8x7b": 12.9e9, "deepseek-v3": 37e9}


@pytest.mark.parametrize(("name", "parameters"), PUBLISHED.items())
def test_the_named_models_weigh_what_their_makers_say(name: str, parameters: float) -> None:
    assert architecture(name).parameters == pytest.approx(parameters, rel=0.005)


@pytest.mark.parametrize(("name", "parameters"), ACTIVE.items())
def test_a_token_takes_as_many_parameters_as_their_makers_say(name: str, parameters: float) -> None:
    model = architecture(name)
    both_tables = 2 * model.head
    assert model.multiplied + both_tables == pytest.approx(parameters, rel=0.02)


def test_keys_and_values_by_hand() -> None:
    assert architecture("llama-3.1-8b").kv_values() * 2 == 131072
    assert architecture("llama-3.1-8b").kv_values(4) * 2 == 131072 / 4
    assert architecture("qwen3-30b-a3b").kv_values(8) == 2 * 48 * 128  # four heads on eight devices: each has one
    assert architecture("deepseek-v3").kv_values() == architecture("deepseek-v3").kv_values(8) == 61 * (512 + 64)


def test_a_window_is_read_as_far_as_it_reaches() -> None:
    half = Architecture("half", 4, 64, 128, 4, 2, 16, 1000, window=100, windowed_layers=2)
    assert half.kv_share(100) == 1.0
    assert half.kv_share(400) == pytest.approx(0.5 + 0.5 * 100 / 400)


def test_experts_touched_on_average() -> None:
    mixture = architecture("mixtral-8x7b")
    assert mixture.experts_touched(1) == pytest.approx(2)
    assert mixture.experts_touched(2) == pytest.approx(8 * (1 - (6 / 8) ** 2))
    assert mixture.experts_touched(1000) == pytest.approx(8)
    assert mixture.read(1) < mixture.read(8) < mixture.read(1000) == pytest.approx(mixture.parameters, rel=0.01)
    assert architecture("llama-3.1-8b").read(1) == architecture("llama-3.1-8b").read(1000)


DENSE = {
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
MIXTURE = {
    **DENSE,
    "num_experts": 16,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1024,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
}
LATENT = {
    **DENSE,
    "num_key_value_heads": 32,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}


def test_a_config_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**DENSE, "model_type": "llama"}))
    read = architecture(str(tmp_path))
    assert read.parameters == architecture("llama-3.1-8b").parameters
    assert read.name == "llama"
    (tmp_path / "copy.json").write_text(json.dumps({**DENSE, "_name_or_path": "someone/a-model"}))
    assert architecture(str(tmp_path / "copy.json")).name == "someone/a-model"


@pytest.mark.parametrize(
    ("config", "sizes"),
    [
        ({**DENSE, "sliding_window": 4096}, {"window": 4096, "windowed_layers": 32}),
        ({**DENSE, "sliding_window": 4096, "use_sliding_window": False}, {"window": 0, "windowed_layers": 0}),
        ({**DENSE, "sliding_window": 4096, "max_window_layers": 28}, {"windowed_layers": 4}),
        ({**DENSE, "sliding_window": 1024, "sliding_window_pattern": 6}, {"windowed_layers": 27}),
        (
            {**DENSE, "sliding_window": 9, "layer_types": ["sliding_attention", "full_attention"] * 16},
            {"windowed_layers": 16},
        ),
        ({**DENSE, "sliding_window": None}, {"window": 0}),
        ({**DENSE, "num_local_experts": 8, "num_experts_per_tok": 2}, {"experts": 8, "expert_width": 14336}),
        (MIXTURE, {"experts": 16, "expert_width": 1024, "shared_width": 2048, "dense_layers": 1}),
        (LATENT, {"kv_rank": 512, "head_size": 128, "rope_size": 64, "value_size": 128}),
        ({"text_config": DENSE, "torch_dtype": "float16"}, {"hidden": 4096, "dtype": "float16"}),
        ({**DENSE, "dtype": "bfloat16"}, {"dtype": "bfloat16"}),
        (DENSE, {"dtype": ""}),
        ({**DENSE, "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "fp8"}}, {"dtype": "fp8"}),
        ({**MIXTURE, "first_k_dense_replace": 0, "decoder_sparse_step": 2}, {"dense_layers": 16}),
        ({**MIXTURE, "first_k_dense_replace": 0, "mlp_only_layers": [0, 3]}, {"dense_layers": 2}),
        ({**DENSE, "tie_word_embeddings": True, "head_dim": 64}, {"tied": True, "head_size": 64}),
    ],
)
def test_what_a_config_says_of_windows_experts_and_latents(config: dict[str, Any], sizes: dict[str, Any]) -> None:
    read = from_config(config)
    assert {key: getattr(read, key) for key in sizes} == sizes
    assert from_mapping(read.described()) == read


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ([], "found list; expected the object of a config.json"),
        (
            {key: value for key, value in DENSE.items() if key != "hidden_size"},
            "hidden_size is None; expected a whole",
        ),
        ({**DENSE, "vocab_size": "many"}, "vocab_size is 'many'; expected a whole number"),
        ({**DENSE, "num_key_value_heads": 5}, "kv_heads is 5; expected a divisor of heads, 32"),
        ({**DENSE, "torch_dtype": "float8"}, "dtype is 'float8'; expected one of float32"),
        ({**DENSE, "quantization_config": {"quant_method": "awq"}}, "quant_method is 'awq'; expected fp8, or none"),
        ({**DENSE, "is_encoder_decoder": True}, "is_encoder_decoder is true; expected a decoder"),
        (
            {**DENSE, "layer_types": ["linear_attention"]},
            "layer_types has 'linear_attention'; expected full_attention",
        ),
        ({**DENSE, "num_experts": 4}, "experts_per_token is 0; expected from 1 to 4"),
    ],
)
def test_a_config_that_is_none_is_refused(config: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        from_config(config)


def test_a_dtype_that_nobody_states_has_to_be_given() -> None:
    unstated = from_config(DENSE)
    with pytest.raises(ValueError, match=r"config\.json does not state the dtype of its weights"):
        unstated.in_dtype(None)
    assert unstated.in_dtype("float16") == "float16"
    assert unstated.cache_dtype("fp8", None) == "bfloat16"
    assert unstated.cache_dtype("float32", None) == "float32"
    assert unstated.cache_dtype("fp8", "fp8") == "fp8"


def test_an_unknown_model_names_the_nearest() -> None:
    with pytest.raises(
        ValueError, match=r"model llama-3\.1-8: unknown, and no such file; did you mean llama-3\.1-8b\?"
    ):
        architecture("llama-3.1-8")
