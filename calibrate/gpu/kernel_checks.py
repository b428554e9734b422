"""Whether attention and the operators beside it compute the right numbers, at the shapes that are timed.

Attention on a paged cache against float64, with NaN wherever nothing was written: lengths around the ends of tiles
and pages and far beyond both, every number of splits, decodes and chunks; and with one page of a table exchanged,
which has to be detected. The operators against their PyTorch versions, which the tests compare with float64. What is
allocated during a check holds NaN until it is written: otherwise memory that an earlier check freed may hold the
right numbers in a place that a kernel leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from calibrate.decoder.attention.registry import choose_attention
from calibrate.decoder.engine.protocol import CannotRun
from calibrate.decoder.model import ops_torch
from calibrate.decoder.model.decoder import torch_dtype
from calibrate.decoder.model.rotary import rotary_table
from calibrate.gpu.test_batches import error, exact, random_inputs
from calibrate.models.decoder_shape import DType, ModelShape

TOLERANCE = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 4e-3}
"""Largest error relative to the largest value: rounding of the dtype, and in float32 of thousands of sums."""
TF32 = 2e-3
"""In float32 on a GPU, where PyTorch's own attention may multiply in TF32."""

CheckResult = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One check: query heads of each key head, key heads, positions in a page, and the rows (computed, length)."""

    group: int
    kv_heads: int
    page_size: int
    rows: tuple[tuple[int, int], ...]
    splits: int | None = None

    @property
    def shape(self) -> ModelShape:
        """A shape with these heads of 128 numbers."""
        heads = self.group * self.kv_heads
        return ModelShape("check", 1, heads * 128, 128, heads, self.kv_heads, 128, 2)

    @property
    def name(self) -> str:
        """In words."""
        what = "decodes" if all(count == 1 for count, _ in self.rows) else "chunks"
        split = "" if self.splits is None else f", {self.splits} splits"
        return f"{what} of lengths {' '.join(str(span) for _, span in self.rows)}, groups of {self.group}, " \
               f"pages of {self.page_size}{split}"  # fmt: skip


LENGTHS = (0, 63, 64, 65, 2048, 8191)
CHUNKS = ((64, 64), (65, 65), (130, 2048), (512, 4096))
"""Chunks as (computed, length): one tile of queries and one more, at the beginning and far behind it."""


def cases_on(device_type: str, dtype: DType) -> Iterator[Case]:
    """All cases on a GPU, of float32 those of one layout; few small ones on a CPU, where kernels are interpreted."""
    if device_type != "cuda":
        for splits in (1, 3):
            yield Case(4, 2, 16, tuple((1, span) for span in (0, 65, 700)), splits)
        yield Case(4, 2, 16, ((65, 65), (70, 200)))
        return
    for group in (4, 7, 8) if dtype != "float32" else (4,):
        for page_size in (16, 32) if dtype != "float32" else (16,):
            for splits in (1, 2, 64):
                yield Case(group, 4, page_size, tuple((1, span) for span in LENGTHS), splits)
            yield Case(group, 4, page_size, CHUNKS)


@contextmanager
def unwritten_is_nan() -> Iterator[None]:
    """Within it `torch.empty` is filled with NaN, or the largest integer (torch.utils.deterministic)."""
    settings: Any = torch.utils.deterministic
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    fill = settings.fill_uninitialized_memory
    settings.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        settings.fill_uninitialized_memory = fill


@unwritten_is_nan()
def check_attention(backend: str, device: torch.device, dtype: DType, case: Case) -> CheckResult:
    """One backend in one case, against float64; and with a wrong table. Raises CannotRun if it does not run here."""
    kind = torch_dtype(dtype)
    rows = [row for row in case.rows if row[1] or backend != "flashinfer"]  # it has no rows of padding
    told = random_inputs(
        [count for count, _ in rows], [span for _, span in rows], heads=case.shape.heads, kv_heads=case.kv_heads,
        head=128, page_size=case.page_size, dtype=kind, device=device,
    )  # fmt: skip
    right = exact(told)
    splits = case.splits if backend == "triton" else None
    _, attend = choose_attention(backend, case.shape, kind, device, len(rows), splits)
    attend.prepare(told.batch)
    found = error(attend(told.queries, told.keys, told.values, told.batch), right)
    tables = told.batch.tables.clone()
    tables[-1, 0] = tables[-1, 1]
    wrong = replace(told.batch, tables=tables)
    attend.prepare(wrong)
    noticed = error(attend(told.queries, told.keys, told.values, wrong), right)
    allowed = TF32 if dtype == "float32" and device.type == "cuda" else TOLERANCE[dtype]
    return {
        "check": f"attention {backend}, {dtype}, {case.name}",
        "passed": found <= allowed < noticed,
        "error": found,
        "error_with_a_wrong_page": noticed,
        "allowed": allowed,
    }


@unwritten_is_nan()
def check_ops(device: torch.device, dtype: DType) -> CheckResult:
    """The Triton operators between the matrix products against their PyTorch versions.

    Raises CannotRun where Triton does not run.
    """
    shape = ModelShape("check", 1, 1536, 1100, 4, 2, 128, 2)
    choose_attention("triton", shape, torch_dtype(dtype), device, 1)
    from calibrate.decoder.model import ops_triton

    parts = list(
        zip(op_results(ops_triton, shape, device, dtype), op_results(ops_torch, shape, device, dtype), strict=True)
    )
    found = max(error(ours, theirs.double()) for ours, theirs in parts)
    allowed = TOLERANCE[dtype]
    return {"check": f"operators triton, {dtype}", "passed": found <= allowed, "error": found, "allowed": allowed}


def op_results(ops: Any, shape: ModelShape, device: torch.device, dtype: DType) -> list[Tensor]:
    """What a set of operators makes of the same numbers: norms, residual, queries, keys, values, gate."""
    draw, kind = torch.Generator().manual_seed(0), torch_dtype(dtype)

    def numbers(*sizes: int) -> Tensor:
        return torch.randn(sizes, generator=draw).to(device, kind)

    told = random_inputs(
        [1, 3],
        [200, 90],
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head=128,
        page_size=16,
        dtype=kind,
        device=device,
    )
    tokens = sum(told.batch.counts)
    x, residual, weight = numbers(tokens, shape.hidden), numbers(tokens, shape.hidden), numbers(shape.hidden)
    projected, wide = numbers(tokens, shape.query_width + 2 * shape.kv_width), numbers(tokens, 2 * shape.intermediate)
    keys, values = torch.zeros_like(told.keys), torch.zeros_like(told.values)
    rotary = rotary_table(shape, 256, device)
    queries = ops.rotate_and_keep(projected, shape.heads, rotary, keys, values, told.batch)
    normed = ops.norm(x, weight, 1e-5)
    summed = ops.add_norm(x, residual, weight, 1e-5)
    return [normed, summed, residual, queries, keys, values, ops.gated(wide)]


def run_checks(
    device: torch.device, backends: Sequence[str], dtypes: Sequence[DType], say: Any = lambda _: None
) -> list[CheckResult]:
    """Every check; one whose backend is missing is not run (`passed` None, with `why`); one that raises failed.

    `say` is called with each result.
    """
    found: list[CheckResult] = []

    def add(name: str, check: Any) -> bool:
        try:
            found.append(check())
        except CannotRun as refusal:
            found.append({"check": name, "passed": None, "why": str(refusal)})
        except Exception as broken:  # whatever a backend throws is what there is to know of it
            found.append({"check": name, "passed": False, "why": repr(broken)})
        say(found[-1])
        return found[-1]["passed"] is not None

    for dtype in dtypes:
        add(f"operators triton, {dtype}", lambda dtype=dtype: check_ops(device, dtype))
        for backend in backends:
            name = f"attention {backend}, {dtype}"
            for case in cases_on(device.type, dtype):
                if not add(name, lambda b=backend, d=dtype, c=case: check_attention(b, device, d, c)):
                    break
    return found
