"""The real engine: steps of a scheduler computed by a decoder, on a GPU or a CPU.

The pages of a step are chosen by the scheduler's pool; the executor reads and writes the given pages. Independent of
policies and queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self, cast

import numpy as np
import torch
from torch import Tensor

from calibrate.decoder.attention.registry import choose_attention
from calibrate.decoder.engine.cuda_graphs import PaddedDecodes, default_capture_sizes
from calibrate.decoder.engine.device import device_bytes, device_of
from calibrate.decoder.engine.forward import ForwardPass
from calibrate.decoder.engine.host_swap import HostPages
from calibrate.decoder.engine.input_batch import PADDING_ROW, Layout, layout_of, pack, unpacked
from calibrate.decoder.engine.options import EngineOptions
from calibrate.decoder.engine.protocol import CannotRun, Outcome, OutOfMemory, Row, Step
from calibrate.decoder.engine.streams import CpuStream, CudaStream, ExecutionStream, Pending
from calibrate.decoder.engine.token_store import TokenStore
from calibrate.decoder.model import ops_torch
from calibrate.decoder.model.attention_metadata import Cache
from calibrate.decoder.model.decoder import Attention, Decoder, Ops, torch_dtype
from calibrate.decoder.model.sampling import best, drawn, uniform
from calibrate.hardware.device_memory import GPU_LIBRARIES, plan_memory
from calibrate.hardware.memory_plan import MemoryPlan
from calibrate.models.decoder_shape import DType, ModelShape
from calibrate.models.weights import load_weights, random_weights

CYCLES_PER_S = 2e9
"""Of a GPU's clock, about: at a lower clock it is held for longer."""
STORED = 4
"""Requests whose tokens have room from the start, for each slot; with more of them graphs are captured again."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """A launched step: its pending job, its rows as they run, and each yielding row's place among the results."""

    pending: Pending
    batch: int
    places: tuple[int, ...]


class Executor:
    """An engine of a shape under options: `calibrate.decoder.engine.protocol.Engine`, with real tokens.

    device         where it runs, and `attention` the backend it runs with
    plan           how the device's memory is divided
    capture_sizes  batches that decodes are padded to

    Raises CannotRun for a device, backend or memory that is not available.
    """

    def __init__(self, shape: ModelShape, options: EngineOptions) -> None:
        self.shape = shape
        self.options = options
        self.device = device_of(options.device)
        on_gpu = self.device.type == "cuda"
        self.dtype: DType = options.dtype or (shape.dtype if on_gpu else "float32")
        self.page_size, self.max_model_len = options.page_size, options.max_model_len
        self.host_pages = options.host_pages
        self.attention, attend = choose_attention(
            options.attention, shape, torch_dtype(self.dtype), self.device, options.slots
        )
        self.capture_sizes: tuple[int, ...] = options.capture_sizes or ()
        if options.capture_sizes is None and on_gpu and attend.capturable:
            self.capture_sizes = default_capture_sizes(options.slots)
        if self.capture_sizes and not attend.capturable:
            raise CannotRun(
                f"attention {self.attention}: cannot run padded batches; expected no capture_sizes, or triton"
            )
        total = device_bytes(self.device, options.memory_fraction)
        self.plan: MemoryPlan = plan_memory(
            shape,
            self.dtype,
            device_bytes=total,
            fraction=options.memory_fraction,
            page_size=self.page_size,
            pages=options.pages,
            token_budget=options.token_budget,
            slots=options.slots,
            max_model_len=self.max_model_len,
            capture_sizes=self.capture_sizes,
            workspace=attend.workspace_bytes(options.token_budget, self.max_model_len),
            libraries=GPU_LIBRARIES if on_gpu else 0,
        )
        self.pages = self.plan.pages
        self.stream: ExecutionStream = CudaStream(self.device) if on_gpu else CpuStream(options.threads)
        self.decoder: Decoder
        self.host: HostPages
        self.tokens: TokenStore
        self.forward: ForwardPass
        self.fixed: PaddedDecodes
        try:
            self.stream.do(partial(self.build, attend))
        except BaseException as error:
            self.stream.close()
            if isinstance(error, OutOfMemory):
                raise CannotRun(f"model {shape.name}: {error}") from None
            raise

    def build(self, attend: Attention) -> None:
        """Weights, cache, tokens and graphs, on the device and in the order of its steps."""
        dtype, folder = torch_dtype(self.dtype), self.options.weights
        if folder is None:
            weights = random_weights(self.shape, self.options.seed, dtype, self.device)
        else:
            weights = load_weights(self.shape, folder, dtype, self.device)
        cache = Cache.empty(self.shape, self.pages, self.page_size, dtype, self.device)
        self.decoder = Decoder(self.shape, weights, cache, attend, self.ops(), self.max_model_len + 1)
        self.host = HostPages(cache, self.host_pages)
        self.tokens = TokenStore(self.max_model_len, self.shape.vocabulary, self.device, STORED * self.options.slots)
        width = -(-(self.max_model_len + 1) // self.page_size)
        self.forward = ForwardPass(self.decoder, self.tokens, self.choose)
        self.fixed = PaddedDecodes(self.forward, self.capture_sizes, width, self.page_size)
        if self.device.type == "cuda":
            self.warm_up()

    def warm_up(self) -> None:
        """Run the largest chunk, then halves of it: what is loaded or allocated at first use is there afterwards."""
        count = min(self.options.token_budget, self.max_model_len)
        while count:
            self.warm_up_chunk(count)
            count //= 2

    def warm_up_chunk(self, count: int) -> Tensor:
        """Run one chunk of `count` positions in the spare page."""
        pages = -(-count // self.page_size)
        row = Row(0, 0, count, [0] * pages, True)
        layout = layout_of([row], self.page_size)
        packed = np.zeros(sum(layout.sizes), np.int32)
        pack(packed, [row], layout, {0: PADDING_ROW}, self.page_size, self.pages)
        packed[-pages:] = self.pages
        batch, moves = unpacked(torch.from_numpy(packed).to(self.device), layout, self.page_size)
        return self.forward(batch, moves, moves.wanted)

    def choose(self, logits: Tensor, draws: Tensor) -> Tensor:
        """The next tokens: the best ones, or at a temperature those drawn."""
        heat = self.options.temperature
        return drawn(logits, draws, heat) if heat else best(logits)

    def ops(self) -> Ops:
        """What computes the operators between the matrix products: Triton kernels unless attention is `torch`."""
        if self.attention == "torch":
            return ops_torch
        from calibrate.decoder.model import ops_triton

        return ops_triton

    # ------------------------------------------------------------------ what a driver calls

    def begin(self, request: int, prompt: Sequence[int]) -> None:
        """A request's tokens; raises ValueError for a prompt that is too long or has an unknown token."""
        self.tokens.begin(request, prompt)

    def end(self, request: int) -> None:
        """Forget a request; raises ValueError for one that has not begun."""
        self.tokens.end(request)

    def launch(self, step: Step) -> InFlight:
        """Start a step behind those launched before; raises ValueError for an inconsistent step, OutOfMemory."""
        self.check(step)
        order = sorted(range(len(step.rows)), key=lambda place: step.rows[place].count > 1)
        rows = [step.rows[place] for place in order]
        capture_size = self.fixed.capture_size(len(rows)) if rows[-1].count == 1 else None
        layout = layout_of(rows, self.page_size, capture_size)
        for row in rows:
            self.tokens.place(row.request)
        packed = self.packed(rows, layout)
        arrivals = self.tokens.arrivals(row.request for row in rows)
        pending = self.stream.submit(partial(self.run, step, layout, packed, arrivals, capture_size is not None))
        for row in rows:
            self.tokens.known[row.request] += row.yields
        rank = {order[index]: place for place, index in enumerate(layout.yields) if index < len(order)}
        places = tuple(rank[place] for place, row in enumerate(step.rows) if row.yields)
        return InFlight(pending, layout.rows, places)

    def collect(self, handle: InFlight) -> Outcome:
        """Wait for a step; raises OutOfMemory, after which its requests can only be ended."""
        done = handle.pending.wait()
        tokens = tuple(done.result[place] for place in handle.places)
        return Outcome(tokens, done.device_ns, done.cpu_ns, handle.batch)

    @property
    def holds(self) -> bool:
        """Whether `hold` has an effect: on a GPU."""
        return isinstance(self.stream, CudaStream)

    def hold(self, seconds: float) -> None:
        """Keep a GPU busy for about so long before each step that is launched from now on; 0 ends it."""
        if isinstance(self.stream, CudaStream):
            self.stream.hold_cycles = round(seconds * CYCLES_PER_S)

    def fill_cache(self, seed: int) -> None:
        """Write normal numbers into every page, to measure steps whose context was never computed."""

        def fill() -> None:
            stream = torch.Generator(self.device).manual_seed(seed)
            for layer in self.decoder.cache.data:
                layer.normal_(generator=stream)

        self.stream.do(fill)

    def close(self) -> None:
        """Release the thread and the memory."""
        self.stream.close()
        del self.decoder, self.host, self.fixed, self.forward, self.tokens
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------------ a step

    def check(self, step: Step) -> None:
        """Raise ValueError unless every row continues what is known of its request, and the step is within limits."""
        known, seen = self.tokens.known, set()
        if not 1 <= len(step.rows) <= self.options.slots:
            raise ValueError(f"a step has {len(step.rows)} rows; expected 1 to {self.options.slots}")
        for row in step.rows:
            if row.request not in known or row.request in seen:
                why = "is in the step twice" if row.request in seen else "has not begun"
                raise ValueError(f"request {row.request}: {why}")
            seen.add(row.request)
            reach = row.start + row.count
            if row.start < 0 or row.count < 1 or reach > known[row.request]:
                raise ValueError(
                    f"request {row.request}: positions {row.start} to {reach - 1}; expected at least one, of the "
                    f"{known[row.request]} tokens known"
                )
            if row.yields and reach < known[row.request]:
                raise ValueError(f"request {row.request}: yields after {reach} of {known[row.request]} tokens known")
            if row.yields and reach > self.max_model_len:
                raise ValueError(
                    f"request {row.request}: a token after {reach}; expected at most {self.max_model_len}"
                )
        positions = sum(row.count for row in step.rows)
        if positions > max(self.options.token_budget, self.options.slots):
            raise ValueError(f"a step of {positions} positions; expected at most {self.options.token_budget}")
        for page, place in [*step.swap_out, *((page, place) for place, page in step.swap_in)]:
            if not (0 <= page < self.pages and 0 <= place < self.host_pages):
                raise ValueError(
                    f"page {page} and host page {place}; expected below {self.pages} and {self.host_pages}"
                )

    def packed(self, rows: Sequence[Row], layout: Layout) -> Tensor:
        """A step as one array of int32 on the host."""
        packed = torch.empty(sum(layout.sizes), dtype=torch.int32, pin_memory=self.device.type == "cuda")
        draw = partial(uniform, self.options.seed) if self.options.temperature else None
        array = cast("np.ndarray[tuple[int], np.dtype[np.int32]]", packed.numpy())
        pack(array, rows, layout, self.tokens.rows, self.page_size, self.pages, draw)
        return packed

    def run(
        self, step: Step, layout: Layout, packed: Tensor, arrivals: list[tuple[int, Tensor]], padded: bool
    ) -> Tensor:
        """The step on the device: pages are swapped, prompts stored, the model computes, its tokens are stored."""
        self.host.leave(step.swap_out)
        self.host.come_back(step.swap_in)
        for row, prompt in arrivals:
            self.tokens.device_write(row, prompt)
        there = packed.to(self.device, non_blocking=True)
        if padded:
            return self.fixed.decodes[layout.rows](there, layout)
        batch, moves = unpacked(there, layout, self.page_size)
        return self.forward(batch, moves, moves.wanted)
