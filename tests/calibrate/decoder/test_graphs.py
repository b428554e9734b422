"""A captured decode asks the device for nothing and decides nothing on the host: what it launches is always the same.

No GPU is needed to see that: the operations of a pass are listed as they are called, kernels by their grids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from calibrate.decoder.attention import triton_kernels
from calibrate.decoder.attention.triton_backend import TritonAttention
from calibrate.decoder.engine.cuda_graphs import PaddedDecode, PaddedDecodes
from calibrate.decoder.engine.forward import ForwardPass
from calibrate.decoder.engine.input_batch import Layout, layout_of, pack
from calibrate.decoder.engine.protocol import Row
from calibrate.decoder.engine.token_store import TokenStore
from calibrate.decoder.model import ops_triton
from calibrate.decoder.model.attention_metadata import Cache
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
    "split_with_sizes",
    "_to_copy",
    "argmax",
    "index_put_",
    "detach",
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


def forward(rows: int) -> ForwardPass:
    cache = Cache.empty(SHAPE, 30, 8, torch.float32, CPU)
    weights = random_weights(SHAPE, 0, torch.float32, CPU)
    decoder = Decoder(SHAPE, weights, cache, TritonAttention(SHAPE, rows, CPU, splits=4), ops_triton, 256)
    store = TokenStore(255, SHAPE.vocabulary, CPU, 8)
    return ForwardPass(decoder, store, lambda logits, _: logits.argmax(-1))


def step(spans: list[int], capture_size: int) -> tuple[Tensor, Layout]:
    """A packed step of rows that decode at these lengths, each of a request whose number is its place."""
    rows = [Row(place, span - 1, 1, range(-(-span // 8)), True) for place, span in enumerate(spans)]
    layout = layout_of(rows, 8, capture_size)
    packed = np.zeros(sum(layout.sizes), np.int32)
    pack(packed, rows, layout, {place: 1 + place for place in range(len(rows))}, 8, 30)
    return torch.from_numpy(packed), layout


def test_a_pass_only_launches_and_always_the_same(calls: list[str]) -> None:
    decode = PaddedDecode(forward(4), rows=4, width=10, page_size=8)
    passes = []
    for spans in ([1, 9], [80, 3, 40, 17]):
        decode(*step(spans, 4))
        calls.clear()
        with Listed(calls):
            decode.launch()
        passes.append(list(calls))
    assert passes[0] == passes[1]
    kernels_called = [call for call in passes[0] if " (" in call]
    assert len(kernels_called) == 1 + SHAPE.layers * 6
    assert kernels_called[2:4] == ["decode_splits (4, 2, 4)", "merge_splits (4, 4)"]
    assert {call for call in passes[0] if " (" not in call} <= ON_THE_DEVICE
    assert passes[0][-1] == "index_put_"  # the tokens are stored within the graph


@pytest.mark.usefixtures("calls")
def test_inputs_lie_where_they_lay() -> None:
    decode = PaddedDecode(forward(2), rows=2, width=10, page_size=8)
    place = decode.packed.data_ptr()
    decode(*step([80, 3], 2))
    assert decode.packed.data_ptr() == place
    assert decode.tables.tolist() == [[*range(10)], [0] + [30] * 9]
    decode(*step([5], 2))
    assert decode.packed.data_ptr() == place
    assert decode.tables[:, 0].tolist() == [0, 30]
    positions, owners, sources, lengths, _, wanted, targets, columns, _, _ = torch.split(
        decode.packed, decode.layout.sizes
    )
    assert (positions.tolist(), owners.tolist(), lengths.tolist()) == ([4, 0], [0, 1], [5, 0])
    assert (sources.tolist(), targets.tolist(), columns.tolist()) == ([1, 0], [1, 0], [5, 0])
    assert wanted.tolist() == [0, 1]


@pytest.mark.usefixtures("calls")
def test_before_its_first_step_every_row_is_padding() -> None:
    decode = PaddedDecode(forward(2), rows=2, width=10, page_size=8)
    decode(*step([80, 3], 2))
    decode.pad()
    parts = torch.split(decode.packed, decode.layout.sizes)
    assert parts[1].tolist() == [0, 1]
    assert decode.tables.eq(30).all()
    assert not torch.cat([part for place, part in enumerate(parts[:-1]) if place != 1]).any()


@pytest.mark.usefixtures("calls")
def test_a_batch_goes_to_the_next_bucket() -> None:
    fixed = PaddedDecodes(forward(8), (2, 8, 4), width=10, page_size=8)
    assert [fixed.capture_size(rows) for rows in (1, 2, 3, 4, 5, 8, 9)] == [2, 2, 4, 4, 8, 8, None]
