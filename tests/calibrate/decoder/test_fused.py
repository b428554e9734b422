"""The Triton kernels between the matrix products compute what plain PyTorch does."""

from __future__ import annotations

import pytest
import torch

from calibrate.decoder.model import ops_torch, ops_triton
from calibrate.decoder.model.rotary import rotary_table
from calibrate.gpu.test_batches import error, random_inputs
from calibrate.models.decoder_shape import ModelShape

TOLERANCE = {torch.float32: 1e-6, torch.float16: 2e-3}
DTYPES = pytest.mark.parametrize("dtype", list(TOLERANCE))


def numbers(*sizes: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed)).to(dtype)


@DTYPES
@pytest.mark.parametrize("width", [64, 88])
def test_norms(dtype: torch.dtype, width: int) -> None:
    x, weight = numbers(3, width, dtype=dtype), numbers(width, dtype=dtype, seed=1)
    right = x.double() / (x.double().square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight.double()
    assert error(ops_torch.norm(x, weight, 1e-5), right) < TOLERANCE[dtype]
    assert error(ops_triton.norm(x, weight, 1e-5), right) < TOLERANCE[dtype]


@DTYPES
def test_what_is_added_stays_in_the_residual(dtype: torch.dtype) -> None:
    x, weight = numbers(2, 48, dtype=dtype), numbers(48, dtype=dtype, seed=1)
    one, two = numbers(2, 48, dtype=dtype, seed=2), numbers(2, 48, dtype=dtype, seed=2)
    before = one.clone()
    right = ops_torch.add_norm(x, one, weight, 1e-5)
    assert error(ops_triton.add_norm(x, two, weight, 1e-5), right.double()) < TOLERANCE[dtype]
    assert torch.equal(one, x + before)
    assert torch.equal(two, one)


@DTYPES
def test_keys_and_values_reach_their_pages_and_no_other(dtype: torch.dtype) -> None:
    told = random_inputs([1, 4], [9, 6], heads=4, kv_heads=2, head=16, page_size=4, dtype=dtype)
    shape = ModelShape("story", 1, 64, 64, 4, 2, 16, 2)
    rotary = rotary_table(shape, 16, torch.device("cpu"))
    projected = numbers(5, (4 + 2 * 2) * 16, dtype=dtype)
    keys, values = torch.full_like(told.keys, 7.0), torch.full_like(told.values, 7.0)
    queries = ops_torch.rotate_and_keep(projected, 4, rotary, keys, values, told.batch)
    kept, written = torch.full_like(keys, 7.0), torch.full_like(values, 7.0)
    fast = ops_triton.rotate_and_keep(projected, 4, rotary, kept, written, told.batch)
    for found, right in ((fast, queries), (kept, keys), (written, values)):
        assert error(found, right.double()) < TOLERANCE[dtype]
    assert int((keys[:, 0, :, 0] != 7.0).sum()) == 5
    page, place = int(told.batch.tables[0, 2]), 0
    assert torch.equal(values[page, :, place], projected[0].view(8, 16)[6:])


@DTYPES
def test_the_gate(dtype: torch.dtype) -> None:
    x = numbers(3, 2 * 70, dtype=dtype)
    gate, up = x.double().chunk(2, -1)
    right = gate / (1 + (-gate).exp()) * up
    assert error(ops_torch.gated(x), right) < TOLERANCE[dtype]
    assert error(ops_triton.gated(x), right) < TOLERANCE[dtype]
