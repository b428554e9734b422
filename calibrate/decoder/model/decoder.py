"""A Llama-style decoder: one forward pass over a ragged batch on a paged cache, without requests or a clock."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import linear

from calibrate.decoder.model.attention_metadata import AttentionMetadata, Cache
from calibrate.decoder.model.rotary import rotary_table
from calibrate.models.decoder_shape import ModelShape
from calibrate.models.weights import Weights


class Attention(Protocol):
    """A backend: causal attention of ragged queries to paged keys and values.

    capturable  whether its launches are right for other lengths and tables too, as a captured graph requires
    """

    capturable: bool

    def workspace_bytes(self, tokens: int, max_model_len: int) -> int:
        """Most bytes it needs beside its output, in steps of `tokens` positions, sequences up to `max_model_len`."""

    def prepare(self, batch: AttentionMetadata) -> None:
        """Prepare a pass, before its first layer."""

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, batch: AttentionMetadata) -> Tensor:
        """The output for (tokens, heads, head_size) queries from one layer's paged cache; zeros for empty rows."""


class Ops(Protocol):
    """The operators between the matrix products: `ops_torch` beside this module, or `ops_triton` on a GPU."""

    def norm(self, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """x over its root mean square, times the weight."""

    def add_norm(self, x: Tensor, residual: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """Add x to the residual, in place, and return the norm of the sum."""

    def rotate_and_keep(
        self, projected: Tensor, heads: int, rotary: Tensor, keys: Tensor, values: Tensor, batch: AttentionMetadata
    ) -> Tensor:
        """Rotate queries and keys, write keys and values into their pages, and return the queries."""

    def gated(self, x: Tensor) -> Tensor:
        """SwiGLU of gate and up, side by side."""


class Decoder:
    """Weights of a shape and a forward pass with them on a cache, for sequences up to `max_model_len` tokens."""

    def __init__(
        self,
        shape: ModelShape,
        weights: Weights,
        cache: Cache,
        attention: Attention,
        ops: Ops,
        max_model_len: int,
    ) -> None:
        self.shape = shape
        self.weights = weights
        self.cache = cache
        self.attention = attention
        self.ops = ops
        self.rotary = rotary_table(shape, max_model_len, weights.embedding.device)

    def logits(self, tokens: Tensor, batch: AttentionMetadata, wanted: Tensor | None = None) -> Tensor:
        """Logits of the next token, (tokens, vocabulary), for all tokens or those wanted; writes keys and values."""
        shape, weights, ops = self.shape, self.weights, self.ops
        self.attention.prepare(batch)
        residual = weights.embedding[tokens]
        x = ops.norm(residual, weights.blocks[0].attention_norm, shape.epsilon)
        following = [block.attention_norm for block in weights.blocks[1:]] + [weights.norm]
        for index, (block, next_norm) in enumerate(zip(weights.blocks, following, strict=True)):
            keys, values = self.cache.layer(index)
            projected = linear(x, block.qkv, block.qkv_bias)
            queries = ops.rotate_and_keep(projected, shape.heads, self.rotary, keys, values, batch)
            mixed = self.attention(queries, keys, values, batch)
            x = linear(mixed.reshape(len(x), shape.query_width), block.out)
            x = ops.add_norm(x, residual, block.mlp_norm, shape.epsilon)
            x = linear(ops.gated(linear(x, block.gate_up)), block.down)
            if index == shape.layers - 1 and wanted is not None:
                x, residual = x[wanted], residual[wanted]
            x = ops.add_norm(x, residual, next_norm, shape.epsilon)
        return linear(x, weights.head)


def torch_dtype(name: str) -> torch.dtype:
    """PyTorch's dtype of this name."""
    return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[name]
