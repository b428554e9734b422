"""Models by name, with the sizes that their makers publish, or by a config.json."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from calibrate.models import hf_config
from calibrate.models.architecture import Architecture

MODELS: Mapping[str, Architecture] = {
    model.name: model
    for model in (
        Architecture("llama-3.1-8b", 32, 4096, 14336, 32, 8, 128, 128256, "bfloat16"),
        Architecture("llama-3.1-70b", 80, 8192, 28672, 64, 8, 128, 128256, "bfloat16"),
        Architecture("llama-3.2-1b", 16, 2048, 8192, 32, 8, 64, 128256, "bfloat16", tied=True),
        Architecture("llama-2-7b", 32, 4096, 11008, 32, 32, 128, 32000, "float16"),
        Architecture("llama-2-70b", 80, 8192, 28672, 64, 8, 128, 32000, "float16"),
        Architecture("qwen2.5-7b", 28, 3584, 18944, 28, 4, 128, 152064, "bfloat16"),
        Architecture("qwen3-14b", 40, 5120, 17408, 40, 8, 128, 151936, "bfloat16"),
        Architecture("qwen3-32b", 64, 5120, 25600, 64, 8, 128, 151936, "bfloat16"),
        Architecture(
            "qwen3-30b-a3b", 48, 2048, 6144, 32, 4, 128, 151936, "bfloat16", experts=128, experts_per_token=8,
            expert_width=768,
        ),
        Architecture("mistral-7b", 32, 4096, 14336, 32, 8, 128, 32000, "bfloat16", window=4096, windowed_layers=32),
        Architecture(
            "mixtral-8x7b", 32, 4096, 14336, 32, 8, 128, 32000, "bfloat16", experts=8, experts_per_token=2,
            expert_width=14336,
        ),
        Architecture(
            "deepseek-v3", 61, 7168, 18432, 128, 128, 128, 129280, "fp8", experts=256, experts_per_token=8,
            expert_width=2048, shared_width=2048, dense_layers=3, kv_rank=512, q_rank=1536, rope_size=64,
            value_size=128,
        ),
    )
}  # fmt: skip
"""Sizes as their makers publish them in config.json; mistral-7b is version 0.1, whose layers have a window."""


def architecture(model: str) -> Architecture:
    """The sizes of a named model, or in a config.json, or in a folder that holds one.

    Raises ValueError, one line with the nearest name, for anything else.
    """
    if model in MODELS:
        return MODELS[model]
    path = hf_config.find(model)
    if path is None:
        raise unknown_model(model, MODELS)
    try:
        return hf_config.from_config(hf_config.read(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def unknown_model(model: str, known: Iterable[str]) -> ValueError:
    """The error for a model that is neither a known name nor a file, with the nearest name."""
    names = list(known)
    nearest = difflib.get_close_matches(model, names, n=1, cutoff=0.0)[0]
    return ValueError(
        f"model {model}: unknown, and no such file; did you mean {nearest}? "
        f"(known are {', '.join(names)}, or a config.json)"
    )
