"""How many drafts of a verification are accepted: laws, drawn for each request from a stream of its own.

A draft is accepted while all before it were. Expected tokens of a verification of k drafts, of which the i-th is
accepted with probability p_i if those before it were: 1 + p_1 + p_1 p_2 + ... + p_1 ... p_k (Leviathan et al. 2023,
"Fast inference from transformers via speculative decoding", eq. 1, for equal p).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from math import floor
from operator import mul
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim.request import Request
from traces.synthetic.streams import Stream

Counts = NDArray[np.uint8]

MOST_DRAFTS = 255


class Law(Protocol):
    """How many drafts are accepted."""

    def draw(self, generator: np.random.Generator, tokens: int, drafts: int) -> Counts:
        """The drafts accepted of each of `tokens` verifications of `drafts` drafts: shape (tokens,)."""

    def expected(self, drafts: int) -> float:
        """Mean tokens of a verification of `drafts` drafts, the one that is always right included."""


@dataclass(frozen=True)
class ByPosition:
    """The i-th draft is accepted with chance i, those beyond the last with the last; each request the same.

    Raises ValueError for a chance outside [0, 1], and without any.
    """

    chances: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.chances or not all(0 <= chance <= 1 for chance in self.chances):
            raise ValueError(f"chances are {list(self.chances)}; expected one or more from 0 to 1")

    def of(self, drafts: int) -> list[float]:
        """The chances of so many drafts."""
        return [*self.chances, *[self.chances[-1]] * drafts][:drafts]

    def draw(self, generator: np.random.Generator, tokens: int, drafts: int) -> Counts:
        """See `Law`."""
        return run_lengths(generator.random((tokens, drafts)) < self.of(drafts))

    def expected(self, drafts: int) -> float:
        """1 + p_1 + p_1 p_2 + ..."""
        return 1.0 + float(sum(accumulate(self.of(drafts), mul)))


@dataclass(frozen=True)
class OfEachRequest:
    """Every draft of a request is accepted with a chance of its own, drawn from a beta law.

    mean, spread  mean and standard deviation of that chance. Raises ValueError where no beta law has them.
    """

    mean: float
    spread: float

    def __post_init__(self) -> None:
        if not 0 < self.mean < 1 or not 0 < self.spread**2 < self.mean * (1 - self.mean):
            raise ValueError(
                f"mean is {self.mean:g} and spread {self.spread:g}; expected a mean between 0 and 1, and a spread "
                "above 0 and below the square root of mean x (1 - mean)"
            )

    @property
    def beta(self) -> tuple[float, float]:
        """The two parameters of the beta law with this mean and standard deviation."""
        weight = self.mean * (1 - self.mean) / self.spread**2 - 1
        return self.mean * weight, (1 - self.mean) * weight

    def draw(self, generator: np.random.Generator, tokens: int, drafts: int) -> Counts:
        """See `Law`."""
        return run_lengths(generator.random((tokens, drafts)) < generator.beta(*self.beta))

    def expected(self, drafts: int) -> float:
        """1 + E[p] + E[p^2] + ..., with E[p^n] = prod (a + j) / (a + b + j), j from 0 to n - 1."""
        a, b = self.beta
        return 1.0 + float(sum(accumulate(((a + j) / (a + b + j) for j in range(drafts)), mul)))


@dataclass(frozen=True)
class ForcedLength:
    """A verification brings `tokens` tokens on average: the whole number below, or the one above with the fraction.

    So engines force an acceptance length in benchmarks (SGLang: SGLANG_SIMULATE_ACC_LEN). Raises ValueError below 1.
    """

    tokens: float

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ValueError(f"length is {self.tokens:g}; expected at least 1 token")

    def draw(self, generator: np.random.Generator, tokens: int, drafts: int) -> Counts:
        """See `Law`."""
        below = floor(self.tokens)
        longer = generator.random(tokens) < self.tokens - below
        counts: Counts = np.minimum(below - 1 + longer, drafts).astype(np.uint8)
        return counts

    def expected(self, drafts: int) -> float:
        """`tokens`, or 1 + drafts if that is less."""
        return min(self.tokens, 1.0 + drafts)


def run_lengths(right: NDArray[np.bool_]) -> Counts:
    """How many of each row are true before the first that is not: shape (rows,)."""
    counts: Counts = np.logical_and.accumulate(right, axis=1).sum(axis=1, dtype=np.uint8)
    return counts


def accepted(law: Law, seed: int, drafts: int) -> Callable[[Request], bytes]:
    """For a request, by its tokens generated so far: the drafts accepted of those that follow.

    Drawn from the stream `acceptance/ID` under the seed: a request has the same text on every engine and attempt.
    """
    stream = Stream(seed, "acceptance")

    def of(request: Request) -> bytes:
        return law.draw((stream / request.id).generator(), request.output, drafts).tobytes()

    return of
