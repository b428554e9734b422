"""Execution of steps one after another, with their durations: on a stream of a GPU, or in a thread of a CPU.

`submit` returns at once and `wait` blocks for the result, so a driver can plan a step while another runs, on either.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING, Protocol, TypeVar

import torch
from torch import Tensor

from calibrate.decoder.engine.protocol import OutOfMemory

if TYPE_CHECKING:
    from collections.abc import Iterator

Job = Callable[[], Tensor]
T = TypeVar("T")


@dataclass(frozen=True)
class Done:
    """The result of a job, on the host; ns on the device, and CPU time where one thread ran all of it."""

    result: list[int]
    device_ns: int
    cpu_ns: int | None


class Pending(Protocol):
    """A submitted job."""

    def wait(self) -> Done:
        """The result, once it is there; raises OutOfMemory if the device had no memory for the job."""


class ExecutionStream(Protocol):
    """Runs jobs in the order in which they are submitted."""

    def submit(self, job: Job) -> Pending:
        """Start a job behind the others, without waiting; raises OutOfMemory if the device has no memory for it."""

    def do(self, action: Callable[[], T]) -> T:
        """Run something behind the others and wait for it."""

    def close(self) -> None:
        """Release the stream; no job may follow."""


@dataclass(frozen=True)
class InThread:
    """A job on a CPU."""

    future: Future[Done]

    def wait(self) -> Done:
        """Its result."""
        return self.future.result()


class CpuStream:
    """A thread in which PyTorch computes with `threads` threads; CPU time is measured with one only."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.pool = ThreadPoolExecutor(1, "engine", torch.set_num_threads, (threads,))

    def submit(self, job: Job) -> InThread:
        """Start a job behind the others."""
        return InThread(self.pool.submit(self.timed, job))

    def do(self, action: Callable[[], T]) -> T:
        """Run something behind the others and wait for it."""
        return self.pool.submit(guarded, action).result()

    def close(self) -> None:
        """End the thread."""
        self.pool.shutdown()

    def timed(self, job: Job) -> Done:
        """Run a job here and now."""
        began, worked = perf_counter_ns(), thread_time_ns()
        result = guarded(job)
        took, cpu = perf_counter_ns() - began, thread_time_ns() - worked
        return Done(result.tolist(), took, cpu if self.threads == 1 else None)


@dataclass(frozen=True)
class OnStream:
    """A job on a GPU: its result, on the way to the host, and the events around it."""

    result: Tensor
    start: torch.cuda.Event
    end: torch.cuda.Event
    arrived: torch.cuda.Event

    def wait(self) -> Done:
        """Its result."""
        self.arrived.synchronize()
        return Done(self.result.tolist(), round(self.start.elapsed_time(self.end) * 1e6), None)


class CudaStream:
    """A stream of a GPU. `submit` returns when all launches of the job are queued.

    An event on an idle stream is passed at once, so the time to the next one contains the launches in between. With
    `hold_cycles` the stream is kept busy for so long before the first event, and the time is the device's own.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.hold_cycles = 0

    def submit(self, job: Job) -> OnStream:
        """Queue a job behind the others."""
        start, end, arrived = event(timing=True), event(timing=True), event(timing=False)
        with torch.cuda.stream(self.stream):
            if self.hold_cycles:
                torch.cuda._sleep(self.hold_cycles)  # type: ignore[no-untyped-call]
            start.record()
            result = guarded(job)
            end.record()
            host = torch.empty(result.shape, dtype=result.dtype, pin_memory=True)
            host.copy_(result, non_blocking=True)
            arrived.record()
        return OnStream(host, start, end, arrived)

    def do(self, action: Callable[[], T]) -> T:
        """Queue something behind the others and wait for it."""
        with torch.cuda.stream(self.stream):
            result = guarded(action)
            self.stream.synchronize()
        return result

    def close(self) -> None:
        """Wait for what is queued."""
        self.stream.synchronize()


def event(timing: bool) -> torch.cuda.Event:
    """A CUDA event; only with timing can the time to another event be measured."""
    return torch.cuda.Event(enable_timing=timing)  # type: ignore[no-untyped-call]


def guarded(action: Callable[[], T]) -> T:
    """Run an action without gradients; errors for lack of memory are raised as OutOfMemory."""
    with torch.inference_mode(), memory_errors():
        return action()


@contextmanager
def memory_errors() -> Iterator[None]:
    """Raise OutOfMemory for each error by which PyTorch reports a lack of memory."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        torch.cuda.empty_cache()
        raise OutOfMemory(str(error).partition("\n")[0]) from None
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):
            raise
        raise OutOfMemory(str(error).partition("\n")[0]) from None
