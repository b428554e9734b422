"""A model's parameters, and what one step of it reads and multiplies, counted from its shape.

Dense and mixture-of-experts decoders, grouped-query and latent attention, sliding windows. Norms and biases are left
out of the counts (less than 0.1% of a model).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "fp8": 1, "int8": 1}
"""Bytes of a number by dtype."""


def dtype_bytes(dtype: str) -> int:
    """Bytes of a number; raises ValueError for an unknown dtype."""
    if dtype not in BYTES:
        raise ValueError(f"dtype is {dtype!r}; expected one of {', '.join(BYTES)}")
    return BYTES[dtype]


@dataclass(frozen=True)
class Architecture:
    """The sizes of a decoder that decide what a step costs.

    layers, hidden, intermediate, heads, kv_heads, head_size, vocabulary   as in config.json
    dtype             of the weights, as published; empty: not stated
    tied              the output head is the embedding
    experts           routed experts of a layer (0: a dense model), of which a token takes `experts_per_token`, each
                      `expert_width` wide; besides `shared_width` that every token takes
    dense_layers      number of the layers that are dense all the same
    window            positions that a windowed layer attends to (0: no window); `windowed_layers` have it
    kv_rank, q_rank   latent attention (DeepSeek): ranks of the compressed keys and values, and of the queries (0: not
                      compressed); `rope_size` of a head's rotated part, `value_size` of a head's values

    Raises ValueError for sizes that contradict each other.
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
        if self.dtype:
            dtype_bytes(self.dtype)
        if self.windowed_layers > self.layers:
            raise ValueError(f"windowed_layers is {self.windowed_layers}; expected at most layers, {self.layers}")
        if self.kv_rank and self.value_size < 1:
            raise ValueError(f"value_size is {self.value_size}; expected at least 1, as there is a kv_rank")

    def in_dtype(self, dtype: str | None) -> str:
        """`dtype`, or without it the published one; raises ValueError if neither is known."""
        found = dtype or self.dtype
        if not found:
            raise ValueError(f"{self.name} does not state the dtype of its weights; expected one in addition")
        dtype_bytes(found)
        return found

    def cache_dtype(self, dtype: str | None, kv_dtype: str | None) -> str:
        """The dtype of keys and values: `kv_dtype`, or that of the weights, or of 16 bits if these have fewer.

        As in engines: weights of 8 bits do not make a cache of 8 bits. Raises ValueError as `in_dtype`.
        """
        if kv_dtype is not None:
            return self.in_dtype(kv_dtype)
        weights = self.in_dtype(dtype)
        return weights if BYTES[weights] > 1 else "bfloat16"

    def activation_dtype(self, dtype: str | None) -> str:
        """The dtype of what passes between layers, which weights of 8 bits do not make 8 bits either."""
        return self.cache_dtype(dtype, None)

    def shared_by(self, devices: int) -> None:
        """Raise ValueError unless this number of devices can share the heads.

        Each gets the same number of query heads; of key and value heads the same number, or copies, so that one
        number divides the other. Latent keys and values are copied whole.
        """
        if devices < 1:
            raise ValueError(f"tensor_parallel is {devices}; expected at least 1")
        if self.heads % devices:
            raise ValueError(f"tensor_parallel is {devices}; expected a divisor of {self.heads} heads")
        if not self.kv_rank and self.kv_heads % devices and devices % self.kv_heads:
            raise ValueError(
                f"tensor_parallel is {devices}; expected a divisor or a multiple of {self.kv_heads} heads of keys "
                "and values"
            )

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
        """Of all layers, with this number of routed experts in each."""
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
        """Expected number of a layer's experts that at least one of `tokens` tokens takes, if all are equally likely.

        n (1 - (1 - k/n)^tokens): real routers are less even, and touch fewer.
        """
        if not self.experts:
            return 0.0
        return float(self.experts * (1 - (1 - self.experts_per_token / self.experts) ** tokens))

    def read(self, tokens: float) -> float:
        """Parameters that a step of `tokens` tokens reads: the layers with the experts it touches, and the head."""
        return self.layers_parameters(self.experts_touched(tokens)) + self.vocabulary * self.hidden

    @property
    def multiplied(self) -> float:
        """Parameters that each token is multiplied with in the layers: twice as many floating-point operations."""
        return self.layers_parameters(self.experts_per_token)

    @property
    def activated(self) -> float:
        """Numbers between gate, up and down that a token has in a layer, on average over the layers."""
        sparse = self.layers - self.dense_layers if self.experts else 0
        routed = self.expert_width * self.experts_per_token + self.shared_width
        return (sparse * routed + (self.layers - sparse) * self.intermediate) / self.layers

    @property
    def head(self) -> int:
        """Parameters that each sequence is multiplied with once a step: the output head."""
        return self.vocabulary * self.hidden

    def kv_values(self, tensor_parallel: int = 1) -> float:
        """Numbers kept of one position, over all layers, on one of the devices that share the model.

        Heads of keys and values are divided, and copied where there are fewer than devices; a latent is copied.
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
        """Floating-point operations of one position of a prompt on one before it, over all layers.

        Latent keys and values are expanded to heads first, as engines prefill: `kv_rank` decides only what is kept.
        """
        if self.kv_rank:
            return 2.0 * self.layers * self.heads * (self.head_size + self.rope_size + self.value_size)
        return 4.0 * self.layers * self.heads * self.head_size

    def described(self) -> dict[str, Any]:
        """Its sizes by name, without those that are 0 or empty."""
        return {key: value for key, value in asdict(self).items() if value}


def from_mapping(given: Mapping[str, Any]) -> Architecture:
    """The sizes in a mapping by our names, as a profile has them; raises ValueError for an unknown or missing one."""
    known = {field.name for field in fields(Architecture)}
    if unknown := [key for key in given if key not in known]:
        raise ValueError(f"{unknown[0]}: unknown size; known are {', '.join(sorted(known))}")
    try:
        return Architecture(**given)
    except TypeError as error:
        raise ValueError(str(error).split("__init__() ")[-1]) from None
