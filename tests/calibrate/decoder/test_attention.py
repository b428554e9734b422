"""Attention backends against attention written out in float64; what is in unused places is not a number.

A small set by default; SLOTSTEP_KERNELS=full runs every layout, page size and split (about a minute).
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import product

import pytest
import torch
from paged_stories import one_by_one
from torch import Tensor

from calibrate.decoder.attention.torch_reference import TorchAttention
from calibrate.decoder.attention.triton_backend import TritonAttention
from calibrate.gpu.test_batches import AttentionInputs, error, exact, random_inputs
from calibrate.models.decoder_shape import ModelShape

CPU = torch.device("cpu")
LAYOUTS = [(8, 2, 64), (4, 4, 32), (14, 2, 16), (6, 1, 128)]  # heads, kv heads, head size
SMALL = [
    ((8, 2, 64), 16, 4, torch.float32),
    ((4, 4, 32), 8, 1, torch.float32),
    ((14, 2, 16), 1, 4, torch.float32),
    ((6, 1, 128), 32, 4, torch.float16),
]
FULL = list(product(LAYOUTS, (1, 8, 16, 32, 128), (1, 4), (torch.float32, torch.float16)))
CASES = FULL if os.environ.get("SLOTSTEP_KERNELS") == "full" else SMALL
REFERENCE = TorchAttention(ModelShape("story", 1, 64, 64, 4, 2, 16, 2), 4)
TOLERANCE = {torch.float32: 2e-6, torch.float16: 2e-3}


def triton_backend(told: AttentionInputs, splits: int | None) -> TritonAttention:
    heads, head = told.queries.shape[1:]
    shape = ModelShape("story", 1, heads * head, head, heads, told.keys.shape[1], head, 2)
    return TritonAttention(shape, told.batch.decodes, CPU, splits=splits)


def answers(backend: TorchAttention | TritonAttention, told: AttentionInputs) -> Tensor:
    backend.prepare(told.batch)
    return backend(told.queries, told.keys, told.values, told.batch)


def around(page_size: int) -> AttentionInputs:
    """Decodes and chunks that end just before, at and after the ends of pages, one with nothing at all."""
    at = 2 * page_size + 16
    counts, spans = [1, 1, 1, 1, 1, 2, 19], [0, 1, at - 1, at, at + 1, page_size + 1, 20 + page_size]
    return random_inputs(counts, spans, heads=8, kv_heads=2, head=16, page_size=page_size)


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "page_size", "splits", "dtype"), CASES)
def test_the_kernels_agree_with_float64(
    layout: tuple[int, int, int], page_size: int, splits: int, dtype: torch.dtype
) -> None:
    heads, kv_heads, head = layout
    spans = [0, 1, page_size, page_size + 1, 70, 3 * page_size, 33]
    told = random_inputs(
        [1, 1, 1, 1, 1, 3, 17], spans, heads=heads, kv_heads=kv_heads, head=head, page_size=page_size, dtype=dtype
    )
    right = exact(told)
    assert error(answers(triton_backend(told, splits), told), right) < TOLERANCE[dtype]
    assert error(answers(REFERENCE, told), right) < TOLERANCE[dtype]


@pytest.mark.parametrize("page_size", [1, 3, 16])
def test_the_reference_agrees_around_the_ends_of_pages(page_size: int) -> None:
    told = around(page_size)
    assert error(answers(REFERENCE, told), exact(told)) < 2e-6


@pytest.mark.parametrize("backend", ["torch", "triton"])
def test_a_row_without_positions_gives_zeros(backend: str) -> None:
    told = random_inputs([1, 1], [0, 20], heads=4, kv_heads=2, head=16, page_size=8)
    found = answers(REFERENCE if backend == "torch" else triton_backend(told, 4), told)
    assert torch.equal(found[0], torch.zeros_like(found[0]))
    assert found[1].abs().min() > 0


@pytest.mark.parametrize("backend", ["torch", "triton"])
def test_other_physical_pages_change_no_bit(backend: str) -> None:
    told = random_inputs([1, 1, 5], [9, 40, 30], heads=4, kv_heads=2, head=16, page_size=8)
    moved = told.elsewhere(seed=1)
    assert not torch.equal(moved.batch.tables, told.batch.tables)
    run = REFERENCE if backend == "torch" else triton_backend(told, 2)
    assert torch.equal(answers(run, moved), answers(run, told))


@pytest.mark.parametrize("backend", ["torch", "triton"])
def test_a_wrong_table_is_noticed(backend: str) -> None:
    """The negative control: one page in the tables is another one, and the comparison fails, row by row."""
    told = random_inputs([1, 4], [40, 40], heads=4, kv_heads=2, head=16, page_size=8)
    right, run = exact(told), REFERENCE if backend == "torch" else triton_backend(told, 4)
    assert error(answers(run, told), right) < 2e-6
    wrong = answers(run, told.corrupted())
    for row in (slice(0, 1), slice(1, 5)):
        assert error(wrong[row], right[row]) > 1e-3


@pytest.mark.parametrize("page_size", [1, 8])
def test_the_float64_answers_are_those_of_looking_every_position_up(page_size: int) -> None:
    told = random_inputs([1, 1, 2, 9], [0, 17, 2, 20], heads=4, kv_heads=2, head=16, page_size=page_size)
    assert error(exact(told), one_by_one(told)) < 1e-12


def test_contexts_are_split_by_the_number_of_rows_alone() -> None:
    shape = ModelShape("story", 1, 512, 64, 8, 2, 64, 2)
    backend = TritonAttention(shape, 64, CPU)
    backend.programs = 4 * 132
    assert [backend.splits(rows) for rows in (1, 4, 16, 64, 256, 1024)] == [64, 64, 16, 4, 1, 1]


def test_the_workspace_holds_the_splits_of_every_batch() -> None:
    shape = ModelShape("story", 1, 512, 64, 8, 2, 64, 2)
    backend = TritonAttention(shape, 100, CPU)
    most = max(rows * backend.splits(rows) for rows in range(1, 101))
    assert backend.weights.numel() == most * shape.heads
    assert backend.parts.numel() == most * shape.heads * shape.head_size


def test_what_the_kernels_cannot_do_is_refused() -> None:
    shape = ModelShape("story", 1, 320, 64, 4, 2, 80, 2)
    with pytest.raises(ValueError, match="head_size is 80; expected a power of two"):
        TritonAttention(shape, 1, CPU)
    with pytest.raises(ValueError, match="splits is 0; expected at least 1"):
        TritonAttention(replace(shape, head_size=64), 1, CPU, splits=0)
