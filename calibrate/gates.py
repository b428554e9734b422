"""Whether an engine on this device computes what it should, before anything of it is timed.

Attention on a paged cache against float64; the same with one page of a table exchanged, which has to be noticed;
and the whole engine: requests that are chunked, preempted, swapped and found in the cache get the tokens they get
alone. Small on purpose: a minute on a GPU, seconds on a CPU.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from calibrate.attention.choose import choose_attention
from calibrate.clock import FakeClock
from calibrate.driver import Driver
from calibrate.engine import CannotRun, Outcome, Step
from calibrate.model import torch_dtype
from calibrate.opening import EngineOptions, open_engine
from calibrate.order import ByArrival
from calibrate.paged import PagedExecutor
from calibrate.prompts import prompts
from calibrate.ragged import Ragged
from calibrate.shape import DType, ModelShape
from sim.clients import OpenLoop
from sim.pages import NumberedPool, NumberedPrefixPool
from sim.policy import Policy
from sim.request import Request
from sim.scheduler import Scheduler

SMALL = ModelShape("small", 2, 128, 256, 8, 2, 16, 500, dtype="float32", longest=512)
TOLERANCE = {"float32": 2e-3, "bfloat16": 2e-2, "float16": 4e-3}
"""Of attention, relative to the largest value: TF32 products on a GPU, and the rounding of the type."""

Gate = dict[str, Any]


def attention_gate(backend: str, device: torch.device, dtype: DType, page_size: int = 16) -> Gate:
    """One backend against float64: decodes and chunks of lengths around the ends of pages; and a wrong table."""
    shape = SMALL
    told = paged(shape, [1, 1, 1, 5, 17], [15, 16, 33, 5, 40], page_size, dtype)
    right = dense(*told)
    batch = on(told[0], device)
    queries, keys, values = (each.to(device) for each in told[1:])
    _, attend = choose_attention(backend, shape, torch_dtype(dtype), device, 8)
    attend.prepare(batch)
    error = relative(attend(queries, keys, values, batch), right)
    wrong = on(told[0], device)
    wrong.tables[2, 0] = told[0].tables[1, 0]
    attend.prepare(wrong)
    noticed = relative(attend(queries, keys, values, wrong), right)
    return {
        "gate": f"attention {backend}, {dtype}, pages of {page_size}",
        "passed": error <= TOLERANCE[dtype] < noticed,
        "error": error,
        "error_with_a_wrong_page": noticed,
        "allowed": TOLERANCE[dtype],
    }


def paged(
    shape: ModelShape, counts: list[int], spans: list[int], page_size: int, dtype: DType
) -> tuple[Ragged, Tensor, Tensor, Tensor]:
    """Rows of these lengths in shuffled pages (decodes first); every place without a position is not a number."""
    draw = torch.Generator().manual_seed(0)
    needed = [-(-span // page_size) for span in spans]
    order = torch.randperm(sum(needed) + 1, generator=draw)
    tables = torch.full((len(spans), max(needed)), int(order[-1]), dtype=torch.int32)
    kind = torch_dtype(dtype)
    keys = torch.full((len(order), shape.kv_heads, page_size, shape.head_size), float("nan"), dtype=kind)
    values = keys.clone()
    taken = 0
    for row, span in enumerate(spans):
        tables[row, : needed[row]] = order[taken : taken + needed[row]].int()
        taken += needed[row]
        for position in range(span):
            place = int(tables[row, position // page_size]), slice(None), position % page_size
            keys[place] = torch.randn(shape.kv_heads, shape.head_size, generator=draw).to(kind)
            values[place] = torch.randn(shape.kv_heads, shape.head_size, generator=draw).to(kind)
    decodes = sum(count == 1 for count in counts)
    positions = [span - count + n for count, span in zip(counts, spans, strict=True) for n in range(count)]
    owners = [row for row, count in enumerate(counts) for _ in range(count)]
    batch = Ragged(
        tables,
        torch.tensor(spans, dtype=torch.int32),
        torch.tensor(positions, dtype=torch.int32),
        torch.tensor(owners, dtype=torch.int32),
        torch.tensor([0, *counts[decodes:]], dtype=torch.int32).cumsum(0).int(),
        tuple(counts),
        tuple(spans),
        page_size,
        decodes,
    )
    queries = torch.randn(sum(counts), shape.heads, shape.head_size, generator=draw).to(kind)
    return batch, queries, keys, values


def dense(batch: Ragged, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Softmax attention written out in float64, a token and a head at a time."""
    out = torch.zeros_like(queries, dtype=torch.float64)
    group = queries.shape[1] // keys.shape[1]
    for token, (row, last) in enumerate(zip(batch.owners.tolist(), batch.positions.tolist(), strict=True)):
        at = torch.arange(last + 1)
        pages, places = batch.tables[row, at // batch.page_size].long(), at % batch.page_size
        for head in range(queries.shape[1]):
            key, value = (cache[pages, head // group, places].double() for cache in (keys, values))
            scores = key @ queries[token, head].double() / queries.shape[2] ** 0.5
            out[token, head] = scores.softmax(0) @ value
    return out


def on(batch: Ragged, device: torch.device) -> Ragged:
    """A batch on a device, its tensors its own."""
    return Ragged(
        tables=batch.tables.clone().to(device),
        lengths=batch.lengths.to(device),
        positions=batch.positions.to(device),
        owners=batch.owners.to(device),
        offsets=batch.offsets.to(device),
        counts=batch.counts,
        spans=batch.spans,
        page_size=batch.page_size,
        decodes=batch.decodes,
    )


def relative(found: Tensor, right: Tensor) -> float:
    """The largest difference over the largest value; infinite if anything is not a number."""
    difference = (found.cpu().double() - right).abs().max() / right.abs().max()
    return float("inf") if bool(difference.isnan()) else float(difference)


class Listener:
    """An engine that hears the tokens of its requests."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.tokens: dict[int, list[int]] = {}
        self.yielding: list[list[int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def launch(self, step: Step) -> Any:
        """Remember who is to get a token."""
        self.yielding.append([row.request for row in step.rows if row.yields])
        return self.engine.launch(step)

    def collect(self, handle: Any) -> Outcome:
        """Hear it."""
        outcome: Outcome = self.engine.collect(handle)
        for request, token in zip(self.yielding.pop(0), outcome.tokens, strict=True):
            self.tokens.setdefault(request, []).append(token)
        return outcome


def engine_gate(device: str, backend: str = "auto") -> list[Gate]:
    """The tokens of six requests under pressure, against those that each gets alone, on a small model in float32."""
    story = [
        Request(str(n), 0, 40 + n, 24 - n, blocks=(0, 1, n) if n % 2 else (9 + n, 19 + n, 29 + n), block_size=16)
        for n in range(6)
    ]
    options = EngineOptions(
        device=device,  # type: ignore[arg-type]
        dtype="float32",
        attention=backend,  # type: ignore[arg-type]
        pages=100,
        host_pages=200,
        slots=8,
        token_budget=64,
        longest=128,
    )
    gates = []
    with open_engine(SMALL, options) as engine:
        engine.fill_cache(0)
        alone = [served(engine, [request], 100, False, False)[0] for request in story]
        for name, pages, swap, share in (
            ("preempted", 13, False, False),
            ("swapped", 13, True, False),
            ("found in the cache", 100, False, True),
        ):
            found = served(engine, story, pages, swap, share)
            gates.append(
                {
                    "gate": f"tokens of requests {name}, attention {engine.attention}",
                    "passed": found == alone,
                    "same": sum(ours == theirs for ours, theirs in zip(found, alone, strict=True)),
                    "of": len(alone),
                }
            )
    return gates


def served(engine: Any, requests: Sequence[Request], pages: int, swap: bool, share: bool) -> list[list[int]]:
    """The tokens of each request."""
    pool = NumberedPrefixPool(pages, 16, "all") if share else NumberedPool(pages, 16)
    scheduler = Scheduler(Policy(ByArrival()), pool, slots=4, token_budget=64, depth=2, swap=swap)
    listener = Listener(engine)
    executor: PagedExecutor[Any] = PagedExecutor(scheduler, listener, tokens_of)
    Driver(OpenLoop(requests), scheduler, executor, FakeClock()).run()
    executor.close()
    return [listener.tokens[index] for index in range(len(requests))]


tokens_of: Callable[[Request], array[int]] = prompts(SMALL.vocabulary, 0)


def gates(device: torch.device, backends: Sequence[str], dtypes: Sequence[DType]) -> list[Gate]:
    """All gates; a backend that is not installed is a gate that was not run, and says why."""
    found: list[Gate] = []
    for backend in backends:
        for dtype in dtypes:
            for page_size in (1, 16):
                try:
                    found.append(attention_gate(backend, device, dtype, page_size))
                except CannotRun as error:
                    found.append({"gate": f"attention {backend}", "passed": None, "why": str(error)})
                    break
    return found + engine_gate(device.type)
