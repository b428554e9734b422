"""Cost models of a step: from the shape of a batch to nanoseconds. Measured tables are in `sim.cost.table`.

Every coefficient is a float in nanoseconds. The duration of a step is a fixed part, constant over a run of decode
steps, plus terms in the context and in the pages, which grow during the run. `step` and `run` evaluate the same
expression in the same order, so that a run of k steps equals k single ones to the nanosecond.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import accumulate, pairwise
from math import isfinite, sqrt
from typing import ClassVar, Protocol

import numpy as np

from sim.cost.shape import Shape
from sim.cost.surface import BentLine
from sim.request import Nanoseconds

TOO_LONG = 2.0**63
"""Nanoseconds that 64 bits do not hold."""
SHORT_RUN = 16
"""Runs up to this long are faster in plain Python than in numpy; both give the same numbers."""

RAMP = np.arange(256, dtype=np.float64)


class StepCost(Protocol):
    """A cost model: the duration of a step, and of each of a run of decode steps."""

    def step(self, shape: Shape) -> Nanoseconds:
        """The duration of one step of this shape in ns, at least 1."""

    def run(self, shape: Shape, steps: int, growth: Sequence[int]) -> array[Nanoseconds]:
        """The durations of `steps` decode steps that start from this shape: int64 ns, one a step.

        The context grows by `decodes` a step; `growth[j]` pages are added at the start of step j (growth[0] is part
        of `shape` already). Must equal `step` of each of them. Raises OverflowError beyond 63 bits.
        """


@dataclass(frozen=True)
class Unit:
    """Every step lasts `duration` ns. Raises ValueError below 1 ns."""

    duration: Nanoseconds

    def __post_init__(self) -> None:
        if self.duration < 1:
            raise ValueError(f"unit is {self.duration} ns; expected at least 1 ns")

    def step(self, shape: Shape) -> Nanoseconds:
        """The same duration whatever the batch."""
        return self.duration

    def run(self, shape: Shape, steps: int, growth: Sequence[int]) -> array[Nanoseconds]:
        """The same duration `steps` times."""
        return array("q", [self.duration]) * steps


@dataclass(frozen=True)
class Curve(ABC):
    """Common part of all costs but `Unit`: a fixed part, terms linear in context and pages, and the host.

    `host` comes before the device's part; `overlapped_host` runs at the same time: the longer of the two counts.
    `raggedness` r increases the cost of reading the context by the factor 1 + r x (longest / mean - 1): that is
    r x `excess` positions more, which stay the same over a run.
    `prompt_launches` are the same of a step with a chunk: it is no single replay of a captured graph, so that the
    host launches its kernels one by one while the device computes, and such a step lasts at least so long.
    `per_mixed_context_token` is added for each position of the context in such a step: kernels for several queries a
    sequence may read the context once for each head of queries.
    `per_tail_token` is added for each position by which the longest decode exceeds the mean, where one block of the
    kernel reads a context alone: in a step with a chunk, and from `unsplit` decodes.

    bends  whether the class has a `bend` of its own
    """

    bends: ClassVar[bool] = False

    per_context_token: float = 0.0
    per_chunk_work: float = 0.0
    per_sequence: float = 0.0
    per_page: float = 0.0
    per_copied_token: float = 0.0
    per_swapped_token: float = 0.0
    host: float = 0.0
    overlapped_host: float = 0.0
    raggedness: float = 0.0
    prompt_launches: float = 0.0
    per_mixed_context_token: float = 0.0
    per_tail_token: float = 0.0
    unsplit: float = 0

    def __init_subclass__(cls) -> None:
        cls.bends = cls.bend is not Curve.bend

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, int | float) and (not isfinite(value) or value < 0):
                unit = "" if each.name in ("raggedness", "unsplit") else " ns"
                raise ValueError(f"{each.name} is {value}{unit}; expected 0 or more")
        if not isinstance(self.unsplit, int):
            raise ValueError(f"unsplit is {self.unsplit}; expected a whole number of decodes")

    @property
    def needs_longest(self) -> bool:
        """Whether the cost depends on the longest decode, so that the scheduler must keep it up to date."""
        return self.raggedness > 0 or self.per_tail_token > 0

    @cached_property
    def least(self) -> Nanoseconds:
        """The shortest step: the part of the host alone, and at least 1 ns."""
        return max(1, round(self.host + self.overlapped_host))

    @cached_property
    def least_with_prompt(self) -> Nanoseconds:
        """The shortest step with a chunk: the part of the host alone, and at least 1 ns."""
        return max(1, round(self.host + max(self.overlapped_host, self.prompt_launches)))

    @property
    def takes_time(self) -> bool:
        """Whether a large step of decodes and a chunk takes longer than the 1 ns that any step is given."""
        large = Shape()
        large.decodes, large.context, large.pages = 10**3, 10**9, 10**8
        large.add_chunk(0, 10**6)
        return self.step(large) > 1

    @abstractmethod
    def fixed(self, shape: Shape) -> float:
        """The part of the duration that stays constant over a run of decode steps."""

    def slope(self, shape: Shape) -> float:
        """Nanoseconds for each position of the context, constant over a run of decode steps."""
        return self.per_context_token + self.per_mixed_context_token if shape.chunks else self.per_context_token

    def launched(self, decodes: int) -> int:
        """The number of decodes that the kernels are launched for."""
        return decodes

    def tail(self, shape: Shape) -> float:
        """What the longest decode takes to read all by which it exceeds the mean; 0 if blocks share its context."""
        if not self.per_tail_token or not shape.decodes:
            return 0.0
        if not shape.chunks and self.launched(shape.decodes) < self.unsplit:
            return 0.0
        return self.per_tail_token * (shape.excess / shape.decodes)

    def bend(self, shape: Shape) -> BentLine | None:
        """What the mean context of the decodes adds besides, where it is no straight line; constant over a run."""
        return None

    def step(self, shape: Shape) -> Nanoseconds:
        """The duration of one step, rounded half to even, at least 1 ns."""
        slope = self.slope(shape)
        fixed = self.fixed(shape)
        if self.raggedness:
            fixed += self.raggedness * slope * shape.excess
        exact = fixed + slope * shape.context + self.per_page * shape.pages
        bend = self.bend(shape) if self.bends else None
        if bend is not None:
            exact += bend((shape.context + self.ragged(shape)) / shape.decodes)
        least = self.least_with_prompt if shape.chunks else self.least
        return max(least, round(exact))

    def ragged(self, shape: Shape) -> float:
        """Positions of the context that `raggedness` adds."""
        return self.raggedness * shape.excess if self.raggedness else 0.0

    def run(self, shape: Shape, steps: int, growth: Sequence[int]) -> array[Nanoseconds]:
        """The durations of a run of decode steps: `step` of each, at once."""
        fixed, slope = self.fixed(shape), self.slope(shape)
        least = self.least_with_prompt if shape.chunks else self.least
        if self.raggedness:
            fixed += self.raggedness * slope * shape.excess
        first, grows, bend = shape.context, shape.decodes, self.bend(shape) if self.bends else None
        if bend is not None and steps <= SHORT_RUN and fixed >= least and not self.per_page:
            more = self.ragged(shape)
            contexts = range(first, first + steps * grows, grows)
            return array("q", [round(fixed + slope * c + bend((c + more) / grows)) for c in contexts])
        if bend is None and steps <= SHORT_RUN and fixed >= least and grows and not self.per_page:
            return array("q", [round(fixed + slope * c) for c in range(first, first + steps * grows, grows)])
        exact = np.arange(steps, dtype=np.float64) if steps > len(RAMP) else RAMP[:steps]
        exact = exact * grows
        exact += first
        bent = bend.over((exact + self.ragged(shape)) / grows) if bend is not None else None
        exact *= slope
        exact += fixed
        if self.per_page:
            exact += self.per_page * np.fromiter(accumulate(growth[1:], initial=shape.pages), np.float64, steps)
        if bent is not None:
            exact += bent
        np.rint(exact, out=exact)
        np.maximum(exact, least, out=exact)
        if exact[-1] >= TOO_LONG:
            raise OverflowError("a step lasts longer than 292 years")
        return array("q", exact.astype(np.int64).tobytes())

    def moved(self, shape: Shape) -> float:
        """Copies into a contiguous cache, and pages moved between the device and the host."""
        exact = 0.0
        if shape.copied:
            exact += self.per_copied_token * shape.copied
        if shape.swapped:
            exact += self.per_swapped_token * shape.swapped
        return exact


@dataclass(frozen=True)
class Affine(Curve):
    """A sum of parts: base + host + per decoding sequence + per prefill token + per context token + ...

    A draft that is verified costs what a prefill token costs, and reads no context of its own.
    """

    base: float = 0.0
    per_prefill_token: float = 0.0

    def fixed(self, shape: Shape) -> float:
        """base + host + per_sequence x decodes, and what drafts, chunks and copies add."""
        exact = self.base + self.host + self.per_sequence * shape.decodes
        if self.per_tail_token:
            exact += self.tail(shape)
        if shape.drafts:
            exact += self.per_prefill_token * shape.drafts
        if shape.chunks:
            exact += self.per_prefill_token * shape.chunk_tokens
            exact += self.per_chunk_work * (shape.double_work / 2)
        return exact + self.moved(shape)


@dataclass(frozen=True)
class Roofline(Curve):
    """host + smoothmax(weight_pass, per_token x tokens) + attention + per-sequence work.

    The matrix products of all tokens of a step share one pass over the weights, so the slower of the two
    sets the pace; smoothmax(a, b) = (a^4 + b^4)^(1/4) rounds the corner. tokens = decodes + drafts + chunk tokens,
    padded to the next of `graph_sizes` unless there are more than the largest; per_sequence counts every sequence in
    the batch, and per_chunk besides those that compute part of a prompt.
    """

    weight_pass: float = 0.0
    per_token: float = 0.0
    per_chunk: float = 0.0
    graph_sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "graph_sizes", checked_sizes(self.graph_sizes))

    def fixed(self, shape: Shape) -> float:
        """host + smoothmax(weights, arithmetic) + per_sequence x sequences, and what chunks and copies add."""
        weights = self.weight_pass * self.weight_pass
        arithmetic = self.per_token * padded(shape.dense_tokens, self.graph_sizes)
        arithmetic *= arithmetic
        exact = self.host + sqrt(sqrt(weights * weights + arithmetic * arithmetic))
        sequences = self.per_sequence * (shape.decodes + shape.chunks)
        exact += sequences + self.tail(shape) if self.per_tail_token else sequences
        if shape.chunks:
            exact += self.per_chunk * shape.chunks + self.per_chunk_work * (shape.double_work / 2)
        return exact + self.moved(shape)

    def launched(self, decodes: int) -> int:
        """The decodes padded to a captured graph."""
        return padded(decodes, self.graph_sizes)


def padded(tokens: int, sizes: Sequence[int]) -> int:
    """The next of the captured sizes, which rise, that holds so many tokens; the tokens themselves if none does."""
    place = bisect_left(sizes, tokens) if sizes else 0
    return sizes[place] if place < len(sizes) else tokens


def checked_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes of captured graphs as a tuple; raises ValueError unless they are whole numbers from 1 that rise."""
    rising = all(a < b for a, b in pairwise([0, *sizes]))
    if not rising or not all(isinstance(size, int) for size in sizes):
        raise ValueError(f"graph_sizes is {list(sizes)}; expected whole numbers from 1, each above the one before")
    return tuple(sizes)
