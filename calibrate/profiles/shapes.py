"""What a step of a model on devices costs, term by term, from shapes: sizes, the data sheet, attained shares.

Weights are read once a step at the bandwidth and each token multiplied at the rate; what lies between the products is
read and written once; every kernel of a layer has a duration of its own; each cached token is read at the bandwidth;
devices that share a layer add their parts up over the link. The constants are in `calibrate.hardware.attained`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from calibrate.hardware import attained
from calibrate.hardware.attained import Efficiency
from calibrate.hardware.devices import Device
from calibrate.models.architecture import Architecture, dtype_bytes

NS = 1e9
PRODUCTS = 4
"""Matrix products of a layer: queries with keys and values, output, gate with up, down."""
KERNELS = 4
"""Small kernels of a layer: two norms, rotation with the cache's write, activation."""
PACKED = ("b200", "h100-pcie", "h100-sxm", "h200-sxm", "mi300x")
"""Devices whose attention kernels keep the queries that share keys and values together beside a chunk too
(FlashAttention 3 and later). Others read the context once for each head of queries (FlashAttention 2)."""


@dataclass(frozen=True)
class Shapes:
    """A model on devices: the numbers from which every term is computed.

    context: mean cached positions of a sequence, which a model with a window needs: beyond the window a layer reads
    no more, and the cost per position is that at this context. Raises ValueError without it, for a dtype whose rate
    the data sheet does not state, for heads that the devices cannot share, and for several devices without a link.
    """

    model: Architecture
    device: Device
    dtype: str
    cache: str
    devices: int
    efficiency: Efficiency
    context: float | None = None

    def __post_init__(self) -> None:
        self.model.shared_by(self.devices)
        if self.model.window and self.context is None:
            raise ValueError(
                f"{self.model.name} has layers with a window of {self.model.window}; expected the mean context in "
                "addition"
            )
        if self.devices > 1 and not self.device.link:
            raise ValueError(
                f"device {self.device.name}: its link is not known; expected one for {self.devices} devices"
            )

    @property
    def share(self) -> float:
        """The share of the cached positions that is read."""
        return self.model.kv_share(self.context) if self.context is not None else 1.0

    @property
    def rate(self) -> float:
        """FLOP/s of matrix products, of all devices."""
        return self.device.arithmetic(self.dtype) * self.efficiency.arithmetic * self.devices

    @property
    def number(self) -> int:
        """Bytes of a number that passes between layers."""
        return dtype_bytes(self.model.activation_dtype(self.dtype))

    def weights_ns(self, tokens: float) -> float:
        """Reading the weights that a step of this many tokens touches."""
        moved = self.model.read(tokens) * dtype_bytes(self.dtype)
        return NS * moved / (self.device.bandwidth * self.efficiency.weights * self.devices)

    @property
    def per_token(self) -> float:
        """Arithmetic of a token in the layers."""
        return NS * 2 * self.model.multiplied / self.rate

    @property
    def per_token_between(self) -> float:
        """Reading and writing what lies between the products of a layer: norms with the residual, activation.

        Each of two norms reads and writes two vectors as wide as the model; the activation reads two and writes one
        as wide as the layer, of which each device has its part.
        """
        wide = 3 * self.model.activated / self.devices
        moved = self.model.layers * (8 * self.model.hidden + wide) * self.number
        return NS * moved / (self.device.bandwidth * self.efficiency.weights)

    @property
    def kernels_ns(self) -> float:
        """What the kernels of all layers but attention take beyond bytes and arithmetic."""
        return NS * self.model.layers * (PRODUCTS * self.efficiency.product_s + KERNELS * attained.KERNEL_S)

    @property
    def attention_ns(self) -> float:
        """What attention of all layers takes whatever the contexts."""
        return NS * self.model.layers * self.efficiency.attention_s

    @property
    def cached_bytes(self) -> float:
        """Bytes of a cached position on a device."""
        return self.model.kv_values(self.devices) * dtype_bytes(self.cache) * self.share

    @property
    def per_context_token(self) -> float:
        """Reading a cached position in a step without a chunk."""
        return NS * self.cached_bytes / (self.device.bandwidth * self.efficiency.cache)

    @property
    def per_mixed_context_token(self) -> float:
        """What reading it costs more beside a chunk: a read for each head of queries, from the second-level cache."""
        if self.device.name in PACKED or self.model.kv_rank:
            return 0.0
        repeated = NS * self.cached_bytes * self.queries / (self.device.bandwidth * attained.SECOND_LEVEL)
        return max(0.0, repeated - self.per_context_token)

    @property
    def kv_heads(self) -> float:
        """Heads of keys and values on a device; latent ones are one."""
        return 1 if self.model.kv_rank else max(1, self.model.kv_heads / self.devices)

    @property
    def queries(self) -> float:
        """Heads of queries that share keys and values on a device."""
        return self.model.heads / self.devices / self.kv_heads

    @property
    def per_tail_token(self) -> float:
        """A position of a context that one block reads alone, in all layers, where kernels leave it to one.

        0 where they divide contexts by their lengths (FlashAttention 3, `prepare_varlen_num_blocks`), and where the
        number of multiprocessors is not known.
        """
        if self.device.name in PACKED or not self.device.multiprocessors:
            return 0.0
        return NS * self.cached_bytes / self.kv_heads / attained.BLOCK_BANDWIDTH

    @property
    def unsplit(self) -> int:
        """Decodes from which each context and head is one block: they fill 80% of two on each multiprocessor.

        FlashAttention 2, `num_splits_heuristic`; beside a chunk it always is.
        """
        return ceil(0.8 * 2 * self.device.multiprocessors / self.kv_heads)

    @property
    def per_chunk_work(self) -> float:
        """A pair of positions of a prompt."""
        attention = self.device.arithmetic(self.cache) * self.efficiency.attention * self.devices
        return NS * self.model.pair_flops * self.share / attention

    @property
    def per_sequence(self) -> float:
        """Arithmetic of the output head for a sequence, and its blocks in the attention of all layers."""
        blocks = self.model.layers * self.kv_heads * self.efficiency.block_s
        return NS * (2 * self.model.head / self.rate + blocks)

    def dense_ns(self, tokens: int) -> float:
        """All that depends on the tokens of a step alone."""
        sharp = self.efficiency.overlap
        products: float = (self.weights_ns(tokens) ** sharp + (self.per_token * tokens) ** sharp) ** (1 / sharp)
        reduced = all_reduces_ns(self.model, self.device.link, tokens, self.number, self.efficiency, self.devices)
        return products + self.kernels_ns + self.per_token_between * tokens + reduced


def shapes(
    model: Architecture,
    device: Device,
    *,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    efficiency: Efficiency | None = None,
    context: float | None = None,
    tensor_parallel: int = 1,
    given: Mapping[str, float] | None = None,
) -> Shapes:
    """A model on `tensor_parallel` devices, at `efficiency`, or at what they attain with some replaced by `given`.

    Raises ValueError as `Shapes` and `Efficiency`.
    """
    dtype, cache = model.in_dtype(dtype), model.cache_dtype(dtype, kv_dtype)
    chosen = efficiency or attained.attained(device, tensor_parallel, dtype, cache, **(given or {}))
    return Shapes(model, device, dtype, cache, tensor_parallel, chosen, context)


def all_reduces_ns(
    model: Architecture, link: float, tokens: int, size: int, efficiency: Efficiency, devices: int
) -> float:
    """Nanoseconds in which the devices add up their parts of every token, twice a layer: a ring over the link.

    `link`: bytes/s in one direction; `size`: bytes of a number.
    """
    if devices == 1:
        return 0.0
    moved = tokens * model.hidden * size * 2 * (devices - 1) / devices
    return 2 * model.layers * NS * (efficiency.all_reduce_s + moved / (link * efficiency.link))
