"""The FlashInfer backend says what it means in FlashInfer's words: a stand-in that follows its documentation agrees.

FlashInfer compiles its kernels for the GPU at hand, so it cannot run here; what is checked is the plan it is given.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from math import sqrt
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from calibrate.gpu.test_batches import error, exact, random_inputs
from calibrate.models.decoder_shape import ModelShape


class DocumentedWrapper:
    """Paged prefill as the documentation of FlashInfer 0.6 describes it, one query after another in float64.

    Request i has the queries qo_indptr[i] to qo_indptr[i + 1] and the pages paged_kv_indices[paged_kv_indptr[i] to
    paged_kv_indptr[i + 1]], of which the last holds paged_kv_last_page_len[i] positions; a causal mask is aligned
    with the last position.
    """

    def __init__(self, float_workspace_buffer: Tensor, kv_layout: str = "NHD") -> None:
        assert float_workspace_buffer.dtype == torch.uint8
        assert kv_layout == "HND"

    def plan(
        self,
        qo_indptr: Tensor,
        paged_kv_indptr: Tensor,
        paged_kv_indices: Tensor,
        paged_kv_last_page_len: Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        page_size: int,
        causal: bool = False,
        q_data_type: Any = "float16",
    ) -> None:
        assert all(given.dtype == torch.int32 for given in (qo_indptr, paged_kv_indptr, paged_kv_indices))
        assert paged_kv_last_page_len.dtype == torch.int32
        assert causal
        assert (qo_indptr[0], (qo_indptr.diff() > 1).all()) == (0, True)
        assert len(paged_kv_indices) == paged_kv_indptr[-1]
        assert ((paged_kv_last_page_len >= 1) & (paged_kv_last_page_len <= page_size)).all()
        self.planned = (qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len)
        self.sizes = (num_qo_heads // num_kv_heads, page_size, head_dim_qk)

    def run(self, q: Tensor, paged_kv_cache: tuple[Tensor, Tensor]) -> Tensor:
        firsts, begins, indices, last = self.planned
        group, page_size, width = self.sizes
        out = torch.zeros_like(q)
        for i in range(len(last)):
            pages = indices[begins[i] : begins[i + 1]].long()
            span = (len(pages) - 1) * page_size + int(last[i])
            keys, values = (
                side[pages].transpose(1, 2).reshape(-1, side.shape[1], width)[:span].double()
                for side in paged_kv_cache
            )
            count = int(firsts[i + 1] - firsts[i])
            for j in range(count):
                seen = span - count + j + 1
                for head in range(q.shape[1]):
                    score = keys[:seen, head // group] @ q[firsts[i] + j, head].double() / sqrt(width)
                    out[firsts[i] + j, head] = (score.softmax(0) @ values[:seen, head // group]).to(q.dtype)
        return out


class DocumentedDecode(DocumentedWrapper):
    """Paged decode as the same documentation describes it: one query of each request, without a mask."""

    def __init__(
        self, float_workspace_buffer: Tensor, kv_layout: str = "NHD", *, use_tensor_cores: bool = False
    ) -> None:
        super().__init__(float_workspace_buffer, kv_layout)
        self.tensor_cores = use_tensor_cores

    def plan(  # type: ignore[override]
        self,
        indptr: Tensor,
        indices: Tensor,
        last_page_len: Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
        q_data_type: Any = "float16",
    ) -> None:
        assert all(given.dtype == torch.int32 for given in (indptr, indices, last_page_len))
        assert (len(indices), len(indptr)) == (indptr[-1], len(last_page_len) + 1)
        self.planned = (torch.arange(len(indptr)), indptr, indices, last_page_len)
        self.sizes = (num_qo_heads // num_kv_heads, page_size, head_dim)

    def run(self, q: Tensor, paged_kv_cache: tuple[Tensor, Tensor]) -> Tensor:
        assert len(q) == len(self.planned[-1])
        return super().run(q, paged_kv_cache)


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Our backend on the stand-in; neither is left behind."""
    package = ModuleType("flashinfer")
    package.BatchPrefillWithPagedKVCacheWrapper = DocumentedWrapper  # type: ignore[attr-defined]
    package.BatchDecodeWithPagedKVCacheWrapper = DocumentedDecode  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flashinfer", package)
    foreign = importlib.import_module("calibrate.decoder.attention.flashinfer")
    shape = ModelShape("story", 1, 64, 64, 4, 2, 16, 2)
    yield foreign.FlashInferAttention(shape, torch.float32, torch.device("cpu"))
    del sys.modules["calibrate.decoder.attention.flashinfer"]


def test_the_plan_means_the_same_batch(backend: Any) -> None:
    for told in (
        random_inputs([1, 1, 1, 5, 9], [1, 8, 17, 5, 30], heads=4, kv_heads=2, head=16, page_size=8),
        random_inputs([5, 9], [5, 30], heads=4, kv_heads=2, head=16, page_size=8),
        random_inputs([1], [7], heads=4, kv_heads=2, head=16, page_size=1),
    ):
        backend.prepare(told.batch)
        found = backend(told.queries, told.keys, told.values, told.batch)
        assert error(found, exact(told)) < 2e-6


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(("heads", "kv_heads", "used"), [(4, 2, False), (8, 2, True)])
def test_large_groups_decode_on_tensor_cores(heads: int, kv_heads: int, used: bool) -> None:
    foreign = sys.modules["calibrate.decoder.attention.flashinfer"]
    shape = ModelShape("story", 1, 64, 64, heads, kv_heads, 16, 2)
    assert foreign.FlashInferAttention(shape, torch.float32, torch.device("cpu")).decoding.tensor_cores is used
