"""The weights of a decoder: random ones from a seed, or those of a checkpoint in a local folder.

Random weights keep the scale of the activations, as trained ones do, and none is zero: a GPU multiplies zeros faster.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import blake2b
from math import sqrt
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from calibrate.decoder.engine.protocol import CannotRun
from calibrate.models.decoder_shape import ModelShape


@dataclass(frozen=True)
class Block:
    """Weights of one layer; every matrix is (outputs, inputs)."""

    attention_norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    out: Tensor
    mlp_norm: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True)
class Weights:
    """All weights; `head` is `embedding` itself where they are tied."""

    embedding: Tensor
    blocks: tuple[Block, ...]
    norm: Tensor
    head: Tensor


Source = Callable[[str, tuple[int, ...]], Tensor]
"""The tensor of a name, as Hugging Face names those of Llama, in the dtype and on the device of the weights."""


def assembled(shape: ModelShape, source: Source) -> Weights:
    """The weights of a shape, tensor by tensor from a source."""
    embedding = source("model.embed_tokens.weight", (shape.vocabulary, shape.hidden))
    blocks = tuple(block(shape, source, f"model.layers.{index}") for index in range(shape.layers))
    norm = source("model.norm.weight", (shape.hidden,))
    head = embedding if shape.tied else source("lm_head.weight", (shape.vocabulary, shape.hidden))
    return Weights(embedding, blocks, norm, head)


def block(shape: ModelShape, source: Source, at: str) -> Block:
    """The weights of one layer; matrices that are multiplied with the same input are concatenated."""
    widths = {"q": shape.query_width, "k": shape.kv_width, "v": shape.kv_width}
    attention, mlp = f"{at}.self_attn", f"{at}.mlp"
    bias = None
    if shape.qkv_bias:
        bias = torch.cat([source(f"{attention}.{part}_proj.bias", (width,)) for part, width in widths.items()])
    across = (shape.intermediate, shape.hidden)
    return Block(
        attention_norm=source(f"{at}.input_layernorm.weight", (shape.hidden,)),
        qkv=torch.cat([source(f"{attention}.{n}_proj.weight", (w, shape.hidden)) for n, w in widths.items()]),
        qkv_bias=bias,
        out=source(f"{attention}.o_proj.weight", (shape.hidden, shape.query_width)),
        mlp_norm=source(f"{at}.post_attention_layernorm.weight", (shape.hidden,)),
        gate_up=torch.cat([source(f"{mlp}.{part}_proj.weight", across) for part in ("gate", "up")]),
        down=source(f"{mlp}.down_proj.weight", (shape.hidden, shape.intermediate)),
    )


def random_weights(shape: ModelShape, seed: int, dtype: torch.dtype, device: torch.device) -> Weights:
    """Normal weights of standard deviation 1 / sqrt(inputs); smaller where the output adds to the residual stream.

    Every tensor has a random stream named after it; the same seed gives the same weights on the same kind of device.
    """

    def draw(name: str, sizes: tuple[int, ...]) -> Tensor:
        named = blake2b(f"{seed} {name}".encode(), digest_size=7).digest()
        stream = torch.Generator(device).manual_seed(int.from_bytes(named, "little"))
        drawn = torch.randn(sizes, dtype=dtype, device=device, generator=stream)
        if name.endswith("norm.weight"):
            return drawn.mul_(0.1).add_(1.0)
        if name.endswith("bias"):
            return drawn.mul_(0.1)
        adds = name.endswith(("o_proj.weight", "down_proj.weight"))
        return drawn.mul_(1.0 / sqrt(sizes[1] * (2 * shape.layers if adds else 1)))

    return assembled(shape, draw)


def load_weights(shape: ModelShape, folder: Path, dtype: torch.dtype, device: torch.device) -> Weights:
    """The weights of a checkpoint: all *.safetensors of a local folder.

    Raises CannotRun, with folder and tensor, for a folder without such files, for a tensor that is missing, that has
    another shape, or that this decoder does not use.
    """
    try:
        from safetensors import safe_open
    except ImportError:
        raise CannotRun("reading a checkpoint needs safetensors: pip install 'slotstep[calibrate]'") from None
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise CannotRun(f"{folder}: no *.safetensors in it; expected a checkpoint's folder")
    with ExitStack() as opened:
        places: dict[str, Any] = {}
        for file in files:
            content = opened.enter_context(safe_open(file, framework="pt", device=str(device)))
            places |= dict.fromkeys(content.keys(), content)
        unused = {name for name in places if not name.endswith("rotary_emb.inv_freq")}
        if shape.tied:
            unused.discard("lm_head.weight")

        def read(name: str, sizes: tuple[int, ...]) -> Tensor:
            if name not in places:
                raise CannotRun(f"{folder}: no tensor {name}; expected one of shape {list(sizes)}")
            unused.discard(name)
            found: Tensor = places[name].get_tensor(name)
            if tuple(found.shape) != sizes:
                raise CannotRun(f"{folder}: {name} has shape {list(found.shape)}; expected {list(sizes)}")
            return found.to(dtype)

        weights = assembled(shape, read)
    if unused:
        raise CannotRun(f"{folder}: {min(unused)} is not part of a {shape.layers}-layer Llama or Qwen2 decoder")
    return weights
