"""When requests arrive: laws of the gaps between them, and one tenant's arrival times.

Gaps are drawn at unit mean, scaled to the rate, rounded to whole nanoseconds each, and summed as integers:
the same stream at another rate is the same pattern stretched. A law may besides have a course
(`traces.synthetic.courses`): its mean rate then rises and falls on a clock of its own, which no rate stretches.
Knows nothing of lengths or other tenants.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from sim.request import SECOND, Nanoseconds
from traces.errors import TooLarge, number_within, whole_within
from traces.limits import LATEST, MOST_REQUESTS
from traces.synthetic.courses import Course
from traces.synthetic.streams import Stream

MOST_TOGETHER = 10**6


class Arrivals:
    """A process of `rate` requests per second; unless a law says more, one with independent gaps.

    The first gap starts at 0, so the first arrival is after 0.
    """

    rate: float

    def unit_gaps(self, generator: np.random.Generator, n: int) -> NDArray[np.float64]:
        """`n` gaps of mean 1; two draws of n are the same as one of 2n."""
        raise NotImplementedError

    def course(self, stream: Stream) -> Course | None:
        """How the rate rises and falls around its mean; None if it does not."""
        del stream
        return None

    @property
    def together(self) -> int:
        """How many requests arrive at the end of each gap."""
        return 1

    def seen(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The instants at which arrivals at `times` are seen; in order, none before its arrival."""
        return times


@dataclass(frozen=True)
class Poisson(Arrivals):
    """A Poisson process of `rate` requests per second (1e-9 to 1e9)."""

    rate: float

    def __post_init__(self) -> None:
        number_within("rate", self.rate, 1e-9, 1e9)

    def unit_gaps(self, generator: np.random.Generator, n: int) -> NDArray[np.float64]:
        return generator.standard_exponential(n)


@dataclass(frozen=True)
class Gamma(Arrivals):
    """Gamma-distributed gaps: `rate` requests per second, `cv` from 0.01 to 100.

    `cv` is the gaps' standard deviation over their mean; 1 is Poisson, above it bursts, below it regularity.
    """

    rate: float
    cv: float

    def __post_init__(self) -> None:
        number_within("rate", self.rate, 1e-9, 1e9)
        number_within("cv", self.cv, 0.01, 100)

    def unit_gaps(self, generator: np.random.Generator, n: int) -> NDArray[np.float64]:
        return gamma_gaps(generator, self.cv, n)


@dataclass(frozen=True)
class Weibull(Arrivals):
    """Weibull-distributed gaps: P(gap > x) = exp(-(x / scale)^shape), the scale set by the mean, 1 / `rate`.

    A `shape` of 1 is Poisson, below it bursts, above it regularity; 0.2 to 100.
    """

    rate: float
    shape: float

    def __post_init__(self) -> None:
        number_within("rate", self.rate, 1e-9, 1e9)
        number_within("shape", self.shape, 0.2, 100)

    def unit_gaps(self, generator: np.random.Generator, n: int) -> NDArray[np.float64]:
        from scipy.special import gamma

        return generator.weibull(self.shape, n) / float(gamma(1 + 1 / self.shape))


@dataclass(frozen=True)
class Batches(Arrivals):
    """`size` requests at once, again and again: `rate` requests, so rate / size batches, per second.

    The gaps between batches are equal, or gamma-distributed with a `cv` above 0.
    """

    rate: float
    size: int
    cv: float = 0.0

    def __post_init__(self) -> None:
        number_within("rate", self.rate, 1e-9, 1e9)
        whole_within("size", self.size, least=1, most=MOST_TOGETHER)
        if self.cv:
            number_within("cv", self.cv, 0.01, 100)

    def unit_gaps(self, generator: np.random.Generator, n: int) -> NDArray[np.float64]:
        return gamma_gaps(generator, self.cv, n) if self.cv else np.ones(n)

    @property
    def together(self) -> int:
        return self.size


@dataclass(frozen=True)
class Ticks(Arrivals):
    """The law `arrivals`, seen only at the multiples of `every`: each arrival at the next tick.

    A log with a coarse clock, or a client that flushes a queue.
    """

    arrivals: Arrivals
    every: Nanoseconds

    def __post_init__(self) -> None:
        whole_within("every", self.every, least=1, most=LATEST)

    @property
    def rate(self) -> float:  # type: ignore[override]  # the rate of the law inside
        return self.arrivals.rate

    def unit_gaps(self, generator: np.random.Generator, n: int) -> NDArray[np.float64]:
        return self.arrivals.unit_gaps(generator, n)

    def course(self, stream: Stream) -> Course | None:
        return self.arrivals.course(stream)

    @property
    def together(self) -> int:
        return self.arrivals.together

    def seen(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        return -(-self.arrivals.seen(times) // self.every) * self.every


@dataclass(frozen=True)
class AtOnce:
    """A backlog: every request arrives at 0.

    The order among tenants is that in which Poisson processes at rates in proportion to their weights
    would have brought them.
    """


def gamma_gaps(generator: np.random.Generator, cv: float, n: int) -> NDArray[np.float64]:
    """`n` gamma-distributed gaps of mean 1 and standard deviation `cv`."""
    return generator.standard_gamma(cv**-2, n) * cv**2


class Clock:
    """The arrival times of one process, drawn as far as anyone asks."""

    def __init__(self, law: Arrivals, rate: float, stream: Stream, allow_large: bool = True) -> None:
        """`rate` (per second) replaces the law's own: a tenant's share of it."""
        self.most = inf if allow_large else MOST_REQUESTS + MOST_TOGETHER
        self.law = law
        self.rate = rate
        self.generator = stream.generator()
        self.course = law.course(stream / "course")
        self.times: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.steady: Nanoseconds = 0
        self.drawn_to: Nanoseconds = 0

    def until(self, horizon: Nanoseconds) -> NDArray[np.int64]:
        """All arrival times up to and including `horizon`, in nanoseconds; horizon at most 2^62.

        Raises TooLarge for far more than MOST_REQUESTS, unless large workloads are allowed.
        """
        while self.drawn_to <= horizon:
            if len(self.times) > self.most:
                raise TooLarge(f"synthetic.arrivals: {len(self.times):,} by {horizon} ns", MOST_REQUESTS)
            self._draw(-(-max(1024, len(self.times) // 2) // self.law.together))
        return self.times[: np.searchsorted(self.times, horizon, side="right")]

    def _draw(self, n: int) -> None:
        gaps = np.rint(self.law.unit_gaps(self.generator, n) * (SECOND / self.rate * self.law.together))
        within = np.cumsum(gaps) <= LATEST - self.steady
        steady = self.steady + np.cumsum(gaps[within].astype(np.int64))
        warped = steady if self.course is None else self.course.times(steady)
        times = self.law.seen(warped[warped <= LATEST])
        self.times = np.concatenate([self.times, np.repeat(times, self.law.together)])
        more = len(times) == n
        self.steady = int(steady[-1]) if more else LATEST
        self.drawn_to = int(times[-1]) if more else LATEST + 1
