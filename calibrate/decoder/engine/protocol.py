"""The interface of an engine: the data of one step, and the protocol. Imports no torch.

The driver decides (with the scheduler) what a step computes and in which physical pages; the engine computes it.
The engine keeps the tokens of every request that has begun, on the device, and appends what it generates: when a
step is launched while another runs, its first token is not yet known on the host.

    engine.begin(request, prompt)        its tokens are known from now on
    handle = engine.launch(step)         returns at once
    outcome = engine.collect(handle)     waits for it
    engine.end(request)                  no later step has a row of it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from sim.request import Nanoseconds


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence's part of a step.

    request  whose it is
    start    positions computed before this step
    count    positions this step computes, at least 1; their tokens are known, or come from steps launched before
    pages    the physical pages of positions 0 .. start + count - 1, in order; more are ignored. Read during
             `launch` only, so it may be the table that the pool keeps; array("i") is copied fastest
    yields   whether the step computes the last known position, so that a token comes out and is appended
    """

    request: int
    start: int
    count: int
    pages: Sequence[int]
    yields: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass, and the pages that move before it: all that leave first, then all that come back.

    rows      the sequences, in any order; at most one row a request
    swap_out  (device page, host page): copied to the host
    swap_in   (host page, device page): copied back; a host page read here may be written from the next step on
    """

    rows: tuple[Row, ...]
    swap_out: tuple[tuple[int, int], ...] = ()
    swap_in: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of a step, and its duration on the device.

    tokens     the tokens of the rows that yield, in the order of the rows
    device_ns  between the start and the end of the step on the device: CUDA events, or the wall clock of the thread
               that computes on a CPU; copies of pages included, waiting for the step before not
    cpu_ns     CPU time of that thread, which other load on the host does not stretch; None on a GPU
    batch      rows as they ran, padding of a captured graph included
    """

    tokens: tuple[int, ...]
    device_ns: Nanoseconds
    cpu_ns: Nanoseconds | None
    batch: int


Handle = TypeVar("Handle")


class CannotRun(ValueError):  # noqa: N818 - said to the user as it is
    """A model, a device or a memory for which there is no engine; str() is the line shown to the user."""


class OutOfMemory(RuntimeError):  # noqa: N818
    """The device has no memory for this step; smaller ones can still be launched. str() has the size requested."""


class Engine(Protocol[Handle]):
    """Computes steps in the order of their launches.

    pages       physical pages on the device, numbered from 0
    host_pages  pages on the host to swap to, numbered from 0
    page_size   token positions in each
    max_model_len     most tokens of one request, prompt and output
    """

    pages: int
    host_pages: int
    page_size: int
    max_model_len: int

    def begin(self, request: int, prompt: Sequence[int]) -> None:
        """The tokens of a prompt; raises ValueError if it is too long or has a token the model does not know."""

    def launch(self, step: Step) -> Handle:
        """Start a step behind those launched before, without waiting for the device.

        Raises ValueError for a row that contradicts the tokens known of its request, OutOfMemory.
        """

    def collect(self, handle: Handle) -> Outcome:
        """Wait for a step, in the order of the launches; raises OutOfMemory."""

    def end(self, request: int) -> None:
        """Forget a request; steps in flight that have a row of it may still run."""
