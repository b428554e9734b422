"""Runs points on an engine and times their steps.

A decoding row needs no history to be timed: its request begins with as many tokens as it reads, and the pages keep
their content (which must not be zero: zeros are multiplied faster than data). Pages are drawn from the whole pool, as
they are after an hour of serving.

On an engine that can hold its device (a GPU), each sample is two steps: one as a replay launches it, for the wall
time, and one behind a held device, whose time then contains no waiting for launches.
"""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np

from calibrate.decoder.engine.protocol import Engine, Handle, Outcome, Row, Step
from calibrate.measure.points import Limits, Point
from sim.request import Nanoseconds

MARGIN = 1.5
"""A device is held for so many times as long as the step before took to launch."""
FIRST_REQUEST = 1 << 40
"""First number of the timed requests: those of a replay on the same engine are smaller."""


@dataclass(frozen=True)
class Sample:
    """One timed step of a point.

    grown      positions by which every decode has grown since the point's first step
    device_ns  duration on the device
    cpu_ns     CPU time of the computing thread; None on a GPU
    wall_ns    from before the launch until the results are there: the call that a replay makes

    Where the device was held, its time is that of the step after, whose decodes have grown by one position more.
    """

    grown: int
    device_ns: Nanoseconds
    cpu_ns: Nanoseconds | None
    wall_ns: Nanoseconds

    def on(self, clock: str) -> Nanoseconds:
        """The duration by a clock: device, cpu or wall. Raises ValueError for a CPU time that was not measured."""
        found: Nanoseconds | None = getattr(self, f"{clock}_ns")
        if found is None:
            raise ValueError("this engine measures no CPU time; expected device or wall")
        return found


class StepTimer(Generic[Handle]):
    """Times steps on `engine`, in its pages from `first_page` on; the others are not touched."""

    def __init__(self, engine: Engine[Handle], vocabulary: int, seed: int, first_page: int = 0) -> None:
        self.engine = engine
        self.vocabulary = vocabulary
        self.stream = np.random.default_rng(seed)
        self.numbers = self.stream.permutation(np.arange(first_page, engine.pages)).astype(np.int32)
        self.next_request = FIRST_REQUEST

    def limits(self, batch: int, tokens: int) -> Limits:
        """The limits of points in steps of at most `batch` rows and `tokens` tokens."""
        return Limits(batch, tokens, self.engine.max_model_len, len(self.numbers), self.engine.page_size)

    def run(self, point: Point, steps: int) -> list[Sample]:
        """Time `steps` consecutive steps of a point: the decodes continue from step to step, chunks are new in each.

        Raises OutOfMemory as the engine does; its requests are ended then too.
        """
        holds = getattr(self.engine, "holds", False)
        each = 2 if holds else 1
        numbers = self.stream.permutation(self.numbers)
        tables, used = [], 0
        for start, count in point.rows:
            needed = -(-(start + count + each * steps - 1) // self.engine.page_size)
            tables.append(array("i", numbers[used : used + needed].tolist()))
            used += needed
        assert used <= len(numbers), "a point that does not fit was staged"
        decoding = [self.begin(context + 1) for context in point.decodes]
        try:
            run = self.held_step if holds else self.step
            return [run(point, decoding, tables, each * place) for place in range(steps)]
        finally:
            for request in decoding:
                self.engine.end(request)

    def begin(self, known: int) -> int:
        """Begin a request with `known` random tokens; returns its number."""
        self.next_request += 1
        said = self.stream.integers(0, self.vocabulary, known, dtype=np.int32)
        self.engine.begin(self.next_request, array("i", said.tobytes()))
        return self.next_request

    def step(self, point: Point, decoding: list[int], tables: list[array[int]], grown: int) -> Sample:
        """One step, timed by all clocks."""
        return self.timed(point, decoding, tables, grown)[0]

    def held_step(self, point: Point, decoding: list[int], tables: list[array[int]], grown: int) -> Sample:
        """Two steps: the wall time of one, the device's time of the other, launched while the device was held."""
        engine: Any = self.engine
        free, launching = self.timed(point, decoding, tables, grown)
        engine.hold(MARGIN * launching / 1e9)
        try:
            held, _ = self.timed(point, decoding, tables, grown + 1)
        finally:
            engine.hold(0)
        return Sample(grown, held.device_ns, None, free.wall_ns)

    def timed(
        self, point: Point, decoding: list[int], tables: list[array[int]], grown: int
    ) -> tuple[Sample, Nanoseconds]:
        """One step, and how long its launch took."""
        computing = [self.begin(start + size) for start, size in point.chunks]
        starts = [context + grown for context in point.decodes] + [start for start, _ in point.chunks]
        counts = [count for _, count in point.rows]
        whole = zip([*decoding, *computing], starts, counts, tables, strict=True)
        rows = tuple(Row(request, start, count, table, True) for request, start, count, table in whole)
        try:
            began = time.perf_counter_ns()
            handle = self.engine.launch(Step(rows))
            launched = time.perf_counter_ns() - began
            outcome: Outcome = self.engine.collect(handle)
            return Sample(grown, outcome.device_ns, outcome.cpu_ns, time.perf_counter_ns() - began), launched
        finally:
            for request in computing:
                self.engine.end(request)
