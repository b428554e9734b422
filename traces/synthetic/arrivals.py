"""Arrival processes: laws of the gaps between requests, and the arrival times drawn from one.

Gaps are drawn at unit mean, scaled to the rate, rounded to whole nanoseconds each, and summed as integers: at another
rate the same stream gives the same pattern, stretched. A law may also have a relative intensity over time
(`traces.synthetic.intensity`), whose time scale does not depend on the rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from sim.request import SECOND, Nanoseconds
from traces.errors import TooLarge, number_within, whole_within
from traces.limits import LATEST, MOST_REQUESTS
from traces.synthetic.intensity import Intensity
from traces.synthetic.streams import Stream

MOST_TOGETHER = 10**6


class Arrivals:
    """A process of `rate` requests per second, by default a renewal process (independent gaps).

    The first gap starts at 0, so the first arrival is after 0.
    """

    rate: float

    def unit_gaps(self, generator: np.random.Generator, n: int) -> NDArray[np.float64]:
        """`n` gaps of mean 1; two draws of n are the same as one of 2n."""
        raise NotImplementedError

    def intensity(self, stream: Stream) -> Intensity | None:
        """The relative intensity over time; None if it is constant."""
        del stream
        return None

    @property
    def batch_size(self) -> int:
        """The number of requests that arrive at the end of each gap."""
        return 1

    def observed(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The recorded times of arrivals at `times`: in order, none earlier than its arrival."""
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
    """Batch arrivals: `size` requests at a time, `rate` requests and so rate / size batches per second.

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
    def batch_size(self) -> int:
        return self.size


@dataclass(frozen=True)
class Ticks(Arrivals):
    """The law `arrivals`, each arrival delayed to the next multiple of `every` (ns).

    Models a log with a coarse clock, or a client that flushes a queue.
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

    def intensity(self, stream: Stream) -> Intensity | None:
        return self.arrivals.intensity(stream)

    @property
    def batch_size(self) -> int:
        return self.arrivals.batch_size

    def observed(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        return -(-self.arrivals.observed(times) // self.every) * self.every


@dataclass(frozen=True)
class AtOnce:
    """A backlog: every request arrives at 0.

    Requests of several tenants are in the order of Poisson processes with rates in proportion to the tenants'
    weights.
    """


def gamma_gaps(generator: np.random.Generator, cv: float, n: int) -> NDArray[np.float64]:
    """`n` gamma-distributed gaps of mean 1 and standard deviation `cv`."""
    return generator.standard_gamma(cv**-2, n) * cv**2


class ArrivalTimes:
    """The arrival times of one process, drawn as far as requested."""

    def __init__(self, law: Arrivals, rate: float, stream: Stream, allow_large: bool = True) -> None:
        """`rate` (requests per second) replaces the law's own: a tenant's share of it."""
        self.most = inf if allow_large else MOST_REQUESTS + MOST_TOGETHER
        self.law = law
        self.rate = rate
        self.generator = stream.generator()
        self.intensity = law.intensity(stream / "course")
        self.times: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.steady: Nanoseconds = 0
        self.drawn_to: Nanoseconds = 0

    def until(self, horizon: Nanoseconds) -> NDArray[np.int64]:
        """All arrival times up to and including `horizon`, in nanoseconds; horizon at most 2^62.

        Raises TooLarge for far more than MOST_REQUESTS, unless `allow_large`.
        """
        while self.drawn_to <= horizon:
            if len(self.times) > self.most:
                raise TooLarge(f"synthetic.arrivals: {len(self.times):,} by {horizon} ns", MOST_REQUESTS)
            self._draw(-(-max(1024, len(self.times) // 2) // self.law.batch_size))
        return self.times[: np.searchsorted(self.times, horizon, side="right")]

    def _draw(self, n: int) -> None:
        gaps = np.rint(self.law.unit_gaps(self.generator, n) * (SECOND / self.rate * self.law.batch_size))
        within = np.cumsum(gaps) <= LATEST - self.steady
        steady = self.steady + np.cumsum(gaps[within].astype(np.int64))
        warped = steady if self.intensity is None else self.intensity.times(steady)
        times = self.law.observed(warped[warped <= LATEST])
        self.times = np.concatenate([self.times, np.repeat(times, self.law.batch_size)])
        more = len(times) == n
        self.steady = int(steady[-1]) if more else LATEST
        self.drawn_to = int(times[-1]) if more else LATEST + 1
