"""A replay on a real engine: paced by the wall clock, or by the CPU time of the thread that computes.

On a shared CPU the wall clock includes the load of other processes. By CPU time a step lasts as long as its thread
worked, and waits for the next arrival take no time: the decisions do not depend on other load.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Literal

import numpy as np

from calibrate.decoder.engine.protocol import CannotRun, Engine, Handle, Outcome
from calibrate.replay.batch_adapter import BatchAdapter
from calibrate.replay.clock import FakeClock, WallClock
from calibrate.replay.driver import Driver
from calibrate.replay.host_timing import HostTiming
from sim.engine.batch import Batch
from sim.engine.scheduler import Scheduler
from sim.log.events import EventLog
from sim.request import Nanoseconds, Request
from sim.sequence import Sequence
from sim.service.clients import Clients

Pacing = Literal["wall", "cpu"]


@dataclass(frozen=True)
class Replayed:
    """The log of a replay, its host timing, and per step the device's time and the CPU thread's (-1: not known)."""

    log: EventLog
    timing: HostTiming
    device_ns: array[Nanoseconds]
    cpu_ns: array[Nanoseconds]

    @property
    def contention(self) -> float | None:
        """Wall time over CPU time of the computing thread, median of the steps; None without CPU time."""
        cpu, device = np.frombuffer(self.cpu_ns, np.int64), np.frombuffer(self.device_ns, np.int64)
        if not len(cpu) or (cpu <= 0).any():
            return None
        return float(np.median(device / cpu))


class TimedAdapter(Generic[Handle]):
    """A batch adapter that records the duration of each step, and lets a measurement run between two steps.

    `between` is advanced after every `every`-th step; by CPU time (`clock` given) that takes no time.
    """

    def __init__(
        self,
        inner: BatchAdapter[Handle],
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
        """Wait for a batch; by CPU time, advance the clock."""
        outcome = self.inner.collect(handle[0])
        self.device_ns.append(outcome.device_ns)
        self.cpu_ns.append(-1 if outcome.cpu_ns is None else outcome.cpu_ns)
        if self.clock is not None:
            if outcome.cpu_ns is None:
                raise CannotRun(
                    "this engine measures no CPU time (it does on a CPU with one thread); expected the wall clock"
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

    clock     that of a synthetic engine, which advances it itself
    between   measurements that run between two steps, every `every` steps; not with two steps in flight
    progress  is called after each step with the number of ended requests

    Raises CannotRun for what the engine cannot run.
    """
    if between is not None and scheduler.config.depth > 1:
        raise CannotRun("nothing can be measured between two steps in flight; expected depth 1")
    executor = BatchAdapter(scheduler, engine, prompts)
    ours = FakeClock() if pacing == "cpu" and clock is None else None
    timed = TimedAdapter(executor, ours, between, every)
    driver = Driver(clients, scheduler, timed, clock or ours or WallClock(), progress)
    log = driver.run()
    executor.close()
    return Replayed(log, driver.timing, timed.device_ns, timed.cpu_ns)
