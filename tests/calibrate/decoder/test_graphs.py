"""A captured decode asks the device for nothing and decides nothing on the host: what it launches is always the same.

No GPU is needed to see that: the operations of a pass are listed as they are called, kernels by their grids.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from calibrate.decoder.attention import triton_kernels
from calibrate.decoder.attention.triton_backend import TritonAttention
from calibrate.decoder.engine.cuda_graphs import PaddedDecode, PaddedDecodes
from calibrate.decoder.model import ops_triton
from calibrate.decoder.model.attention_metadata import AttentionMetadata, Cache
from calibrate.decoder.model.decoder import Decoder
from calibrate.models.decoder_shape import ModelShape
from calibrate.models.weights import random_weights

CPU = torch.device("cpu")
SHAPE = ModelShape("small", 2, 64, 160, 4, 2, 16, 320, dtype="float32", max_model_len=256)
ON_THE_DEVICE = {
    "index",
    "div",
    "sub",
    "mul",
    "t",
    "mm",
    "select",
    "view",
    "empty",
    "new_empty",
    "empty_like",
    "slice",
}
"""Operations of PyTorch that neither wait for the device nor read from it."""


class Listed(TorchDispatchMode):
    """The names of the operations that are called, in order."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


class Launched:
    """Stands for a kernel: writes down its grid."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name = name
        self.calls = calls

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *_, **__: self.calls.append(f"{self.name} {grid}")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a pass calls: operations of PyTorch and kernels, in one list."""
    found: list[str] = []
    for module, names in (
        (triton_kernels, ("decode_splits", "merge_splits", "chunk_tiles")),
        (ops_triton, ("norm_rows", "rotate_heads", "swiglu_columns")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, Launched(name, found))
    return found


def decoder(rows: int) -> Decoder:
    cache = Cache.empty(SHAPE, 30, 8, torch.float32, CPU)
    weights = random_weights(SHAPE, 0, torch.float32, CPU)
    return Decoder(SHAPE, weights, cache, TritonAttention(SHAPE, rows, CPU, splits=4), ops_triton, 256)


def step(spans: list[int], width: int) -> tuple[Tensor, AttentionMetadata]:
    """Tokens and rows that decode at these lengths; 0 for padding."""
    lengths = torch.tensor(spans, dtype=torch.int32)
    rows = torch.arange(len(spans), dtype=torch.int32)
    batch = AttentionMetadata(
        tables=torch.arange(len(spans) * width, dtype=torch.int32).view(len(spans), width) % 30,
        lengths=lengths,
        positions=(lengths - 1).clamp_min(0),
        owners=rows,
        offsets=rows[:1] * 0,
        counts=(1,) * len(spans),
        spans=tuple(spans),
        page_size=8,
        decodes=len(spans),
    )
    return rows + 1, batch


def test_a_pass_only_launches_and_always_the_same(calls: list[str]) -> None:
    decode = PaddedDecode(decoder(4), rows=4, width=10, page_size=8)
    passes = []
    for spans, width in (([1, 9, 0, 0], 2), ([80, 3, 40, 17], 10)):
        decode(*step(spans, width))
        calls.clear()
        with Listed(calls):
            decode.launch()
        passes.append(list(calls))
    assert passes[0] == passes[1]
    kernels_called = [call for call in passes[0] if " (" in call]
    assert len(kernels_called) == 1 + SHAPE.layers * 6
    assert kernels_called[2:4] == ["decode_splits (4, 2, 4)", "merge_splits (4, 4)"]
    assert {call for call in passes[0] if " (" not in call} <= ON_THE_DEVICE


@pytest.mark.usefixtures("calls")
def test_inputs_lie_where_they_lay() -> None:
    decode = PaddedDecode(decoder(2), rows=2, width=10, page_size=8)
    places = [each.data_ptr() for each in (decode.tokens, decode.positions, decode.lengths, decode.tables)]
    tokens, batch = step([80, 3], 10)
    decode(tokens, batch)
    assert [each.data_ptr() for each in (decode.tokens, decode.positions, decode.lengths, decode.tables)] == places
    assert torch.equal(decode.tables, batch.tables)
    assert torch.equal(decode.lengths, batch.lengths)
    narrow, short = step([5, 0], 1)
    decode(narrow, short)
    assert torch.equal(decode.tables[:, :1], short.tables)
    assert decode.lengths.tolist() == [5, 0]


@pytest.mark.usefixtures("calls")
def test_a_batch_goes_to_the_next_bucket() -> None:
    fixed = PaddedDecodes(decoder(8), (2, 8, 4), width=10, page_size=8)
    assert [fixed.capture_size(rows) for rows in (1, 2, 3, 4, 5, 8, 9)] == [2, 2, 4, 4, 8, 8, None]
