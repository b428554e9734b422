"""Relative intensities over time, which turn a process of constant rate into one of varying rate.

An intensity maps the arrival times of a process of constant rate to those at which the integral of the intensity
reaches them (time rescaling). A Poisson process becomes an inhomogeneous Poisson process; gaps of another law are
stretched where the intensity is low and compressed where it is high. Periods do not depend on the rate.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim.request import Nanoseconds
from traces.errors import BadInput
from traces.synthetic.streams import Stream

BISECTIONS = 50
MOST_STAYS = 10_000_000


class Intensity(Protocol):
    """A relative intensity over time, of mean 1."""

    def times(self, steady: NDArray[np.int64]) -> NDArray[np.int64]:
        """The times (ns) at which the integral of the intensity reaches `steady` (ns); both ascending."""
        ...


class PiecewiseConstant:
    """Pieces of constant intensity, repeated after the last."""

    def __init__(self, rates: NDArray[np.float64], lasts: NDArray[np.int64]) -> None:
        self.ends = np.concatenate([[0.0], np.cumsum(lasts, dtype=np.float64)])
        self.work = np.concatenate([[0.0], np.cumsum(rates * lasts)])
        self.work *= self.ends[-1] / self.work[-1]

    def times(self, steady: NDArray[np.int64]) -> NDArray[np.int64]:
        cycle, rest = np.divmod(steady, int(self.ends[-1]))
        times: NDArray[np.int64] = np.rint(np.interp(rest, self.work, self.ends)).astype(np.int64)
        cycle *= int(self.ends[-1])
        times += cycle
        return times


class Sinusoid:
    """1 + amplitude x cos(2 pi (t - peak) / period)."""

    def __init__(self, amplitude: float, period: Nanoseconds, peak: Nanoseconds) -> None:
        self.amplitude, self.period, self.phase = amplitude, period, 2 * math.pi * peak / period

    def times(self, steady: NDArray[np.int64]) -> NDArray[np.int64]:
        cycle, rest = np.divmod(steady, self.period)
        goal = rest * (2 * math.pi / self.period)
        low, high = np.zeros(len(goal)), np.full(len(goal), 2 * math.pi)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            short = middle + self.amplitude * (np.sin(middle - self.phase) + math.sin(self.phase)) < goal
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return cycle * self.period + np.rint(high * (self.period / (2 * math.pi))).astype(np.int64)


class MarkovChain:
    """A Markov chain of states of constant intensity and exponential stays; all other states are equally likely next.

    The first state is drawn with probability equal to the state's share of time.
    """

    def __init__(self, rates: NDArray[np.float64], lasts: NDArray[np.int64], stream: Stream) -> None:
        self.generator = stream.generator()
        self.lasts = lasts.astype(np.float64)
        self.relative = rates / (rates @ self.lasts / self.lasts.sum())
        self.state = int(self.generator.choice(len(lasts), p=self.lasts / self.lasts.sum()))
        self.ends: NDArray[np.float64] = np.zeros(1)
        self.work: NDArray[np.float64] = np.zeros(1)

    def times(self, steady: NDArray[np.int64]) -> NDArray[np.int64]:
        while steady.size and self.work[-1] <= steady[-1]:
            self._extend(max(64, len(self.ends) // 2))
        return np.rint(np.interp(steady, self.work, self.ends)).astype(np.int64)

    def _extend(self, n: int) -> None:
        if len(self.ends) > MOST_STAYS:
            raise BadInput(
                f"markov: more than {MOST_STAYS} stays in states; expected longer ones or more requests in each"
            )
        hops = self.generator.integers(1, len(self.lasts), n) if len(self.lasts) > 1 else np.zeros(n, dtype=np.int64)
        visited = (self.state + np.concatenate([[0], np.cumsum(hops)])) % len(self.lasts)
        stays = self.generator.standard_exponential(n) * self.lasts[visited[:-1]]
        self.state = int(visited[-1])
        self.ends = np.concatenate([self.ends, self.ends[-1] + np.cumsum(stays)])
        self.work = np.concatenate([self.work, self.work[-1] + np.cumsum(stays * self.relative[visited[:-1]])])
