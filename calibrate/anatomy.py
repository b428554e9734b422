"""What a model weighs, and what one step of it reads and multiplies: counted from its shape, no weights, no device.

Dense and mixture-of-experts decoders, grouped-query and latent attention, sliding windows; by name or from a Hugging
Face config.json. Norms and biases are left out of the counts (less than 0.1% of a model).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "fp8": 1, "int8": 1}


@dataclass(frozen=True)
class Anatomy:
    """The sizes of a decoder that decide what a step costs.

    layers, hidden, intermediate, heads, kv_heads, head_size, vocabulary   as in config.json
    dtype             of the weights, as published; empty: not stated
    tied              the output head is the embedding
    experts           routed experts of a layer (0: a dense model), of which a token takes `experts_per_token`,
                      each `expert_width` wide; beside them `shared_width` that every token takes
    dense_layers      so many of the layers are dense all the same
    window            positions that a windowed layer looks back (0: no window); `windowed_layers` have it
    kv_rank, q_rank   latent attention (DeepSeek): ranks of the compressed keys and values, and of the queries (0:
                      not compressed); `rope_size` positions beside, `value_size` of a head's values

    Raises ValueError for sizes that do not go together.
    """

    name: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    dtype: str = ""
    tied: bool = False
    experts: int = 0
    experts_per_token: int = 0
    expert_width: int = 0
    shared_width: int = 0
    dense_layers: int = 0
    window: int = 0
    windowed_layers: int = 0
    kv_rank: int = 0
    q_rank: int = 0
    rope_size: int = 0
    value_size: int = 0

    def __post_init__(self) -> None:
        for key in ("layers", "hidden", "heads", "kv_heads", "head_size", "vocabulary"):
            if getattr(self, key) < 1:
                raise ValueError(f"{key} is {getattr(self, key)}; expected at least 1")
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads is {self.kv_heads}; expected a divisor of heads, {self.heads}")
        if self.experts and not 0 < self.experts_per_token <= self.experts:
            raise ValueError(f"experts_per_token is {self.experts_per_token}; expected from 1 to {self.experts}")
        if self.dtype and self.dtype not in BYTES:
            raise ValueError(f"dtype is {self.dtype!r}; expected one of {', '.join(BYTES)}")
        if self.windowed_layers > self.layers:
            raise ValueError(f"windowed_layers is {self.windowed_layers}; expected at most layers, {self.layers}")

    def in_dtype(self, dtype: str | None) -> str:
        """The dtype asked for, or the published one; raises ValueError if there is neither, or it is not known."""
        found = dtype or self.dtype
        if not found:
            raise ValueError(f"{self.name} does not state the dtype of its weights; expected one besides")
        if found not in BYTES:
            raise ValueError(f"dtype is {found!r}; expected one of {', '.join(BYTES)}")
        return found

    def cache_dtype(self, dtype: str | None, kv_dtype: str | None) -> str:
        """The dtype of keys and values: the one asked for, or that of the weights, or of 16 bits if these have fewer.

        So engines have it: weights of 8 bits do not make a cache of 8 bits. Raises ValueError as `in_dtype`.
        """
        if kv_dtype is not None:
            return self.in_dtype(kv_dtype)
        weights = self.in_dtype(dtype)
        return weights if BYTES[weights] > 1 else "bfloat16"

    def attention_parameters(self) -> int:
        """Of one layer: queries, keys, values and the output."""
        if self.kv_rank:
            wide = self.head_size + self.rope_size
            queries = (
                self.hidden * self.q_rank + self.q_rank * self.heads * wide
                if self.q_rank
                else self.hidden * self.heads * wide
            )
            latent = self.hidden * (self.kv_rank + self.rope_size)
            expanded = self.kv_rank * self.heads * (self.head_size + self.value_size)
            return queries + latent + expanded + self.heads * self.value_size * self.hidden
        return self.hidden * self.head_size * 2 * (self.heads + self.kv_heads)

    def layers_parameters(self, experts: float) -> float:
        """Of all layers, with so many of the routed experts of each."""
        sparse = self.layers - self.dense_layers if self.experts else 0
        routed = self.hidden * self.experts + 3 * self.hidden * (self.expert_width * experts + self.shared_width)
        dense = 3 * self.hidden * self.intermediate
        return self.layers * self.attention_parameters() + sparse * routed + (self.layers - sparse) * dense

    @property
    def parameters(self) -> int:
        """All of them; a tied head counts once."""
        tables = (1 if self.tied else 2) * self.vocabulary * self.hidden
        return round(self.layers_parameters(self.experts)) + tables

    def experts_touched(self, tokens: float) -> float:
        """Expected number of a layer's experts that at least one of so many tokens takes, if all are equally likely.

        n (1 - (1 - k/n)^tokens): real routers are less even, and touch fewer.
        """
        if not self.experts:
            return 0.0
        return float(self.experts * (1 - (1 - self.experts_per_token / self.experts) ** tokens))

    def read(self, tokens: float) -> float:
        """Parameters that a step of so many tokens reads: the layers with the experts it touches, and the head."""
        return self.layers_parameters(self.experts_touched(tokens)) + self.vocabulary * self.hidden

    @property
    def multiplied(self) -> float:
        """Parameters that each token is multiplied with in the layers: twice as many floating-point operations."""
        return self.layers_parameters(self.experts_per_token)

    @property
    def head(self) -> int:
        """Parameters that each sequence is multiplied with once a step: the output head."""
        return self.vocabulary * self.hidden

    def kv_values(self, tensor_parallel: int = 1) -> float:
        """Numbers kept of one position, over all layers, on one of the devices that share the model.

        Heads of keys and values are dealt out, and copied where there are fewer than devices; a latent is copied.
        """
        if self.kv_rank:
            return self.layers * (self.kv_rank + self.rope_size)
        return 2 * self.layers * self.head_size * max(1, self.kv_heads / tensor_parallel)

    def kv_share(self, context: float) -> float:
        """The share of `context` cached positions that a sequence reads: less than all where layers have a window."""
        if not self.window or context <= self.window:
            return 1.0
        windowed = self.windowed_layers / self.layers
        return 1 - windowed + windowed * self.window / context

    @property
    def pair_flops(self) -> float:
        """Floating-point operations of one query position on one cached position, over all layers."""
        if self.kv_rank:
            return 2.0 * self.layers * self.heads * (2 * self.kv_rank + self.rope_size)
        return 4.0 * self.layers * self.heads * self.head_size

    def described(self) -> dict[str, Any]:
        """Its sizes by name, without those that it has not."""
        return {key: value for key, value in asdict(self).items() if value}


MODELS: Mapping[str, Anatomy] = {
    model.name: model
    for model in (
        Anatomy("llama-3.1-8b", 32, 4096, 14336, 32, 8, 128, 128256, "bfloat16"),
        Anatomy("llama-3.1-70b", 80, 8192, 28672, 64, 8, 128, 128256, "bfloat16"),
        Anatomy("llama-3.2-1b", 16, 2048, 8192, 32, 8, 64, 128256, "bfloat16", tied=True),
        Anatomy("llama-2-7b", 32, 4096, 11008, 32, 32, 128, 32000, "float16"),
        Anatomy("llama-2-70b", 80, 8192, 28672, 64, 8, 128, 32000, "float16"),
        Anatomy("qwen2.5-7b", 28, 3584, 18944, 28, 4, 128, 152064, "bfloat16"),
        Anatomy("qwen3-14b", 40, 5120, 17408, 40, 8, 128, 151936, "bfloat16"),
        Anatomy("qwen3-32b", 64, 5120, 25600, 64, 8, 128, 151936, "bfloat16"),
        Anatomy(
            "qwen3-30b-a3b", 48, 2048, 6144, 32, 4, 128, 151936, "bfloat16", experts=128, experts_per_token=8,
            expert_width=768,
        ),
        Anatomy("mistral-7b", 32, 4096, 14336, 32, 8, 128, 32000, "bfloat16", window=4096, windowed_layers=32),
        Anatomy(
            "mixtral-8x7b", 32, 4096, 14336, 32, 8, 128, 32000, "bfloat16", experts=8, experts_per_token=2,
            expert_width=14336,
        ),
        Anatomy(
            "deepseek-v3", 61, 7168, 18432, 128, 128, 128, 129280, "fp8", experts=256, experts_per_token=8,
            expert_width=2048, shared_width=2048, dense_layers=3, kv_rank=512, q_rank=1536, rope_size=64,
            value_size=128,
        ),
    )
}  # fmt: skip
"""Sizes as their makers publish them in config.json; mistral-7b is version 0.1, whose layers have a window."""


def anatomy(model: str) -> Anatomy:
    """The sizes of a named model, or in a config.json, or in a folder that holds one.

    Raises ValueError, one line, for what is neither, with the nearest name.
    """
    if model in MODELS:
        return MODELS[model]
    path = Path(model).expanduser()
    path = path / "config.json" if path.is_dir() else path
    if path.is_file():
        try:
            return from_config(json.loads(path.read_text(encoding="utf-8")), path.parent.name or str(path))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    nearest = difflib.get_close_matches(model, MODELS, n=1, cutoff=0.0)[0]
    raise ValueError(
        f"model {model}: unknown, and no such file; did you mean {nearest}? "
        f"(known are {', '.join(MODELS)}, or a config.json)"
    )


def from_config(config: Any, name: str) -> Anatomy:
    """The sizes in the mapping of a Hugging Face config.json.

    Raises ValueError for a key that is missing or no whole number. A model with a nested text_config is read from it.
    """
    if not isinstance(config, Mapping):
        raise ValueError(f"found {type(config).__name__}; expected the object of a config.json")
    dtype = published(config)
    if isinstance(config.get("text_config"), Mapping):
        config = config["text_config"]
        dtype = dtype or published(config)
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
    return Anatomy(
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


def published(config: Mapping[str, Any]) -> str:
    """The dtype of the weights: that of the config, or of its quantisation; empty if it states none.

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
    """Raise ValueError for what is no decoder of attention alone."""
    if config.get("is_encoder_decoder"):
        raise ValueError("is_encoder_decoder is true; expected a decoder")
    kinds = config.get("layer_types") or []
    if other := [kind for kind in kinds if kind not in ("full_attention", "sliding_attention")]:
        raise ValueError(f"layer_types has {other[0]!r}; expected full_attention and sliding_attention")
    for key in ("ssm_state_size", "mamba_d_state", "linear_num_key_heads"):
        if config.get(key):
            raise ValueError(f"{key} is {config[key]!r}; expected a decoder of attention alone")


def dense(config: Mapping[str, Any], layers: int) -> int:
    """How many layers of a mixture are dense: the first ones, those listed, or all but every so many."""
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
    """The first of these keys that is given and not null, as a whole number; 0 if none is."""
    return next((whole(config, key) for key in keys if config.get(key) is not None), 0)


def whole(config: Mapping[str, Any], key: str) -> int:
    """A whole number of a config; raises ValueError if it is missing or none."""
    found = config.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise ValueError(f"{key} is {found!r}; expected a whole number")
    return found


def from_mapping(given: Mapping[str, Any]) -> Anatomy:
    """The sizes in a mapping by our own names, as a profile has them; raises ValueError for what is not one."""
    known = {field.name for field in fields(Anatomy)}
    if unknown := [key for key in given if key not in known]:
        raise ValueError(f"{unknown[0]}: unknown size; known are {', '.join(sorted(known))}")
    try:
        return Anatomy(**given)
    except TypeError as error:
        raise ValueError(str(error).split("__init__() ")[-1]) from None
