"""When requests arrive: the laws of the gaps between them, and one tenant's arrival times.

Gaps are drawn at unit mean, scaled to the rate, rounded to whole nanoseconds each, and summed as integers:
the same stream at another rate is the same pattern stretched. Knows nothing of lengths or other tenants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim.request import SECOND, Nanoseconds
from traces.errors import number_within
from traces.limits import LATEST
from traces.synthetic.streams import Stream


class Arrivals(Protocol):
    """A renewal process: `rate` requests per second with independent gaps, the first gap starting at 0."""

    @property
    def rate(self) -> float: ...

    def unit_gaps(self, generator: np.random.Generator, n: int) -> NDArray[np.float64]:
        """`n` gaps of mean 1; two draws of n are the same as one of 2n."""
        ...


@dataclass(frozen=True)
class Poisson:
    """A Poisson process of `rate` requests per second (1e-9 to 1e9)."""

    rate: float

    def __post_init__(self) -> None:
        number_within("rate", self.rate, 1e-9, 1e9)

    def unit_gaps(self, generator: np.random.Generator, n: int) -> NDArray[np.float64]:
        return generator.standard_exponential(n)


@dataclass(frozen=True)
class Gamma:
    """Gamma-distributed gaps: `rate` requests per second, `cv` from 0.01 to 100.

    `cv` is the gaps' standard deviation over their mean; 1 is Poisson, above it bursts, below it regularity.
    """

    rate: float
    cv: float

    def __post_init__(self) -> None:
        number_within("rate", self.rate, 1e-9, 1e9)
        number_within("cv", self.cv, 0.01, 100)

    def unit_gaps(self, generator: np.random.Generator, n: int) -> NDArray[np.float64]:
        return generator.standard_gamma(self.cv**-2, n) * self.cv**2


@dataclass(frozen=True)
class AtOnce:
    """A backlog: every request arrives at 0.

    The order among tenants is that in which Poisson processes at rates in proportion to their weights
    would have brought them.
    """


class Clock:
    """The arrival times of one process, drawn as far as anyone asks."""

    def __init__(self, law: Arrivals, rate: float, stream: Stream) -> None:
        """`rate` (per second) replaces the law's own: a tenant's share of it."""
        self.law = law
        self.rate = rate
        self.generator = stream.generator()
        self.times: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.drawn_to: Nanoseconds = 0

    def until(self, horizon: Nanoseconds) -> NDArray[np.int64]:
        """All arrival times up to and including `horizon`, in nanoseconds; horizon at most 2^62."""
        while self.drawn_to <= horizon:
            self._draw(max(1024, len(self.times) // 2))
        return self.times[: np.searchsorted(self.times, horizon, side="right")]

    def _draw(self, n: int) -> None:
        gaps = np.rint(self.law.unit_gaps(self.generator, n) * (SECOND / self.rate))
        within = np.cumsum(gaps) <= LATEST - self.drawn_to
        fitting = gaps[within].astype(np.int64)
        self.times = np.concatenate([self.times, self.drawn_to + np.cumsum(fitting)])
        self.drawn_to = int(self.times[-1]) if within.all() else LATEST + 1
