"""From the scheduler's batches to an engine's steps: the rows, their pages, and the pages that are swapped.

There is one allocator: the pool assigns pages to sequences, and the engine uses its numbers. Pages that a swap frees
are copied to the host by the next step, before anything overwrites them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Generic

from calibrate.decoder.engine.protocol import CannotRun, Engine, Handle, Outcome, Row, Step
from sim.engine.batch import Batch
from sim.engine.scheduler import Scheduler
from sim.memory.numbered import NumberedPool, NumberedPrefixPool
from sim.request import Request
from sim.sequence import Sequence


class BatchAdapter(Generic[Handle]):
    """Runs the batches of `scheduler` on `engine`; `prompts` gives the tokens that a request begins with.

    Raises CannotRun for a pool or a scheduler that the engine does not support.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        engine: Engine[Handle],
        prompts: Callable[[Request], array[int]],
    ) -> None:
        pool = scheduler.pool
        if not isinstance(pool, NumberedPool | NumberedPrefixPool):
            raise CannotRun("the pages of this scheduler have no numbers")
        if scheduler.closed or scheduler.config.contiguous:
            raise CannotRun(
                "a real engine batches continuously in paged memory; expected batching: continuous, paged"
            )
        if pool.page_size != engine.page_size:
            raise CannotRun(f"pages hold {pool.page_size} positions, the engine's {engine.page_size}")
        if pool.pages > engine.pages:
            raise CannotRun(f"{pool.pages} pages are scheduled; the engine has {engine.pages}")
        self.scheduler = scheduler
        self.pool = pool
        self.engine = engine
        self.prompts = prompts
        self.begun: set[int] = set()
        self.ended: list[Sequence] = []
        self.on_host: dict[int, list[int]] = {}
        self.host_free = list(range(engine.host_pages - 1, -1, -1))

    def launch(self, batch: Batch) -> Handle:
        """Start the batch behind those launched before."""
        step = self.step(batch)
        self.end_finished()
        return self.engine.launch(step)

    def collect(self, handle: Handle) -> Outcome:
        """Wait for the oldest batch in flight; its results."""
        return self.engine.collect(handle)

    def forget(self, seq: Sequence) -> None:
        """Note that a sequence has ended; the engine is told once the sequence has left the batch."""
        self.ended.append(seq)
        self.host_free += self.on_host.pop(seq.index, ())

    def close(self) -> None:
        """End every remaining request of the engine, when nothing runs any more."""
        self.end_finished()

    def step(self, batch: Batch) -> Step:
        """The batch as the engine takes it."""
        swap_out = self.pages_that_leave()
        swap_in: list[tuple[int, int]] = []
        bringing = {seq.serial for seq, _ in batch.yields}
        working = {seq.serial for seq, _, tokens in batch.work if tokens}
        rows = []
        for seq, start, count in self.scheduler.assignments(batch):
            if seq.index not in self.begun:
                self.begun.add(seq.index)
                self.engine.begin(seq.index, self.prompts(seq.request))
            pages = self.pool.table(seq, start + count)
            if seq.index in self.on_host:
                swap_in += zip(self.on_host[seq.index], pages, strict=False)
            rides = start + count == seq.known  # finished, and in one step more: its last token is computed
            yields = rides or seq.serial in bringing or seq.serial not in working
            rows.append(Row(seq.index, start, count, pages, yields))
        for row in rows if swap_in else ():
            self.host_free += self.on_host.pop(row.request, ())
        return Step(tuple(rows), tuple(swap_out), tuple(swap_in))

    def pages_that_leave(self) -> list[tuple[int, int]]:
        """(device page, host page) of the sequences that the plan swapped out; CannotRun if the host is full."""
        leaving: list[tuple[int, int]] = []
        released, self.pool.numbers.released = self.pool.numbers.released, []
        for seq, table in released if self.scheduler.config.swap else ():
            if seq.ended or not table:
                continue
            if len(table) > len(self.host_free):
                raise CannotRun(f"{len(table)} pages are to be swapped out; the host has {len(self.host_free)} free")
            places = self.on_host[seq.index] = [self.host_free.pop() for _ in table]
            leaving += zip(table, places, strict=True)
        return leaving

    def end_finished(self) -> None:
        """End the engine's requests of sequences that have ended and left the batch."""
        staying = []
        for seq in self.ended:
            if seq.serial in self.scheduler.state.running:
                staying.append(seq)
            elif seq.index in self.begun:
                self.begun.remove(seq.index)
                self.engine.end(seq.index)
        self.ended = staying
