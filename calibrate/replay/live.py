"""A replay on a real engine: paced by the wall, or by the CPU time of the thread that computes.

On a shared CPU the wall clock measures the neighbours. By CPU time a step lasts what its thread worked, and waits for
the next arrival take no time at all: the same decisions, whoever else is there. Knows no model.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Literal

import numpy as np

from calibrate.decoder.engine.protocol import CannotRun, Engine, Handle, Outcome
from calibrate.replay.batch_adapter import PagedExecutor
from calibrate.replay.clock import FakeClock, WallClock
from calibrate.replay.driver import Driver
from calibrate.replay.host_timing import Pace
from sim.engine.batch import Batch
from sim.engine.scheduler import Scheduler
from sim.log.events import EventLog
from sim.request import Nanoseconds, Request, Sequence
from sim.service.clients import Clients

Pacing = Literal["wall", "cpu"]


@dataclass(frozen=True)
class Replayed:
    """The log of a replay, its pace, and per step the time on the device and of the CPU thread (-1: not known)."""

    log: EventLog
    pace: Pace
    device_ns: array[Nanoseconds]
    cpu_ns: array[Nanoseconds]

    @property
    def contention(self) -> float | None:
        """Wall time over CPU time of the computing thread, median of the steps; None where there is no CPU time."""
        cpu, device = np.frombuffer(self.cpu_ns, np.int64), np.frombuffer(self.device_ns, np.int64)
        if not len(cpu) or (cpu <= 0).any():
            return None
        return float(np.median(device / cpu))


class Watched(Generic[Handle]):
    """A paged executor that keeps what each step took, and now and then lets somebody measure between two steps.

    `between` is advanced after every `every`-th step; by CPU time (`clock` given) that takes no time.
    """

    def __init__(
        self,
        inner: PagedExecutor[Handle],
        clock: FakeClock | None,
        between: Iterator[None] | None = None,
        every: int = 1,
    ) -> None:
        self.inner = inner
        self.clock = clock
        self.between = between
        self.every = every
        self.device_ns = array("q")
        self.cpu_ns = array("q")
        self.free_at: Nanoseconds = 0

    def launch(self, batch: Batch) -> tuple[Handle, Nanoseconds]:
        """Start a batch; by CPU time it starts when the one before it has ended."""
        return self.inner.launch(batch), self.clock.now() if self.clock is not None else 0

    def collect(self, handle: tuple[Handle, Nanoseconds]) -> Outcome:
        """Wait for a batch, and set the clock if it is ours to set."""
        outcome = self.inner.collect(handle[0])
        self.device_ns.append(outcome.device_ns)
        self.cpu_ns.append(-1 if outcome.cpu_ns is None else outcome.cpu_ns)
        if self.clock is not None:
            if outcome.cpu_ns is None:
                raise CannotRun(
                    "this engine tells no CPU time (it does on a CPU with one thread); expected the wall clock"
                )
            self.free_at = max(self.free_at, handle[1]) + max(1, outcome.cpu_ns)
            self.clock.sleep_until(self.free_at)
        if self.between is not None and len(self.device_ns) % self.every == 0:
            next(self.between, None)
        return outcome

    def forget(self, seq: Sequence) -> None:
        """A sequence has ended."""
        self.inner.forget(seq)


def replay(
    clients: Clients,
    scheduler: Scheduler,
    engine: Engine[Handle],
    prompts: Callable[[Request], array[int]],
    pacing: Pacing = "wall",
    clock: FakeClock | None = None,
    between: Iterator[None] | None = None,
    every: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Replayed:
    """Serve the requests of `clients` on `engine` to the end of the last.

    A `clock` given is that of a synthetic engine, which advances it itself. `between` is measured with as in
    `Watched`; between two steps in flight nothing can be. Raises CannotRun for what the engine cannot run.
    """
    if between is not None and scheduler.config.depth > 1:
        raise CannotRun("with two steps in flight there is no place between them to measure in; expected depth 1")
    executor = PagedExecutor(scheduler, engine, prompts)
    ours = FakeClock() if pacing == "cpu" and clock is None else None
    watched = Watched(executor, ours, between, every)
    driver = Driver(clients, scheduler, watched, clock or ours or WallClock(), progress)
    log = driver.run()
    executor.close()
    return Replayed(log, driver.pace, watched.device_ns, watched.cpu_ns)
