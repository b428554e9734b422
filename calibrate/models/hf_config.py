"""Hugging Face's config.json as the sizes of a decoder: what its keys mean, and which models are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrate.models.architecture import Architecture


def find(model: str) -> Path | None:
    """The config.json at a path or in the folder at it; None: there is no such file."""
    path = Path(model).expanduser()
    path = path / "config.json" if path.is_dir() else path
    return path if path.is_file() else None


def read(path: Path) -> Any:
    """The content of a file of JSON; raises ValueError for a file that is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ValueError(f"not readable as JSON ({error})") from None


def checked(config: Any) -> Mapping[str, Any]:
    """The config if it is a mapping; raises ValueError for anything else."""
    if not isinstance(config, Mapping):
        raise ValueError(f"found {type(config).__name__}; expected the object of a config.json")
    return config


def from_config(config: Any) -> Architecture:
    """The sizes in the mapping of a config.json, named as it states, or else by its model_type.

    A model with a nested text_config is read from that. Raises ValueError for a key that is missing or no whole
    number, and for a model that is not a decoder of attention alone.
    """
    config = checked(config)
    dtype = published_dtype(config)
    name = str(config.get("_name_or_path") or config.get("model_type") or "config.json")
    if isinstance(config.get("text_config"), Mapping):
        config = config["text_config"]
        dtype = dtype or published_dtype(config)
    refuse(config)
    heads, hidden, layers = (
        whole(config, key) for key in ("num_attention_heads", "hidden_size", "num_hidden_layers")
    )
    experts = first(config, "num_local_experts", "num_experts", "n_routed_experts")
    width = first(config, "moe_intermediate_size", "intermediate_size") if experts else 0
    shared = first(config, "shared_expert_intermediate_size") or first(config, "n_shared_experts") * width
    window = first(config, "sliding_window") if config.get("use_sliding_window", True) else 0
    latent = first(config, "kv_lora_rank")
    size = first(config, "qk_nope_head_dim") if latent else first(config, "head_dim") or hidden // max(heads, 1)
    return Architecture(
        name=name,
        layers=layers,
        hidden=hidden,
        intermediate=first(config, "intermediate_size"),
        heads=heads,
        kv_heads=first(config, "num_key_value_heads") or heads,
        head_size=size,
        vocabulary=whole(config, "vocab_size"),
        dtype=dtype,
        tied=bool(config.get("tie_word_embeddings", False)),
        experts=experts,
        experts_per_token=first(config, "num_experts_per_tok") if experts else 0,
        expert_width=width,
        shared_width=shared if experts else 0,
        dense_layers=dense(config, layers) if experts else 0,
        window=window,
        windowed_layers=windowed(config, layers) if window else 0,
        kv_rank=latent,
        q_rank=first(config, "q_lora_rank"),
        rope_size=first(config, "qk_rope_head_dim"),
        value_size=first(config, "v_head_dim"),
    )


def published_dtype(config: Mapping[str, Any]) -> str:
    """The dtype of the weights: that of the config, or of its quantisation; empty: not stated.

    Raises ValueError for a quantisation other than to 8 bits.
    """
    quantised = config.get("quantization_config")
    if isinstance(quantised, Mapping):
        method = str(quantised.get("quant_method"))
        if method != "fp8":
            raise ValueError(f"quantization_config.quant_method is {method!r}; expected fp8, or none")
        return "fp8"
    return str(config.get("dtype") or config.get("torch_dtype") or "")


def refuse(config: Mapping[str, Any]) -> None:
    """Raise ValueError for a model that is not a decoder of attention alone."""
    if config.get("is_encoder_decoder"):
        raise ValueError("is_encoder_decoder is true; expected a decoder")
    kinds = config.get("layer_types") or []
    if other := [kind for kind in kinds if kind not in ("full_attention", "sliding_attention")]:
        raise ValueError(f"layer_types has {other[0]!r}; expected full_attention and sliding_attention")
    for key in ("ssm_state_size", "mamba_d_state", "linear_num_key_heads"):
        if config.get(key):
            raise ValueError(f"{key} is {config[key]!r}; expected a decoder of attention alone")


def dense(config: Mapping[str, Any], layers: int) -> int:
    """How many layers of a mixture are dense: the first ones, those listed, or all but every n-th."""
    step = first(config, "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq") or 1
    listed = config.get("mlp_only_layers") or []
    skipped = first(config, "first_k_dense_replace")
    sparse = [each for each in range(skipped, layers) if (each + 1) % step == 0 and each not in listed]
    return layers - len(sparse)


def windowed(config: Mapping[str, Any], layers: int) -> int:
    """How many layers have the window: as layer_types says, or all but the first max_window_layers (Qwen2)."""
    kinds = config.get("layer_types")
    if isinstance(kinds, list):
        return sum(kind == "sliding_attention" for kind in kinds)
    if "max_window_layers" in config:
        return max(0, layers - whole(config, "max_window_layers"))
    pattern = first(config, "sliding_window_pattern")
    return layers - layers // pattern if pattern else layers


def first(config: Mapping[str, Any], *keys: str) -> int:
    """The first of these keys that is present and not null, as a whole number; 0 if none is."""
    return next((whole(config, key) for key in keys if config.get(key) is not None), 0)


def whole(config: Mapping[str, Any], key: str) -> int:
    """A whole number of a config; raises ValueError if it is missing or not one."""
    found = config.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise ValueError(f"{key} is {found!r}; expected a whole number")
    return found
