"""Predictions that order requests as well as a given Kendall tau says, and no better.

Policies by predicted length need the order more than the lengths, and Kendall's tau is how the field states the
quality of a ranking. The construction is a Gaussian copula: the normal score z of the true length is mixed with
noise of the request's own to r z + sqrt(1 - r^2) e, whose Kendall tau with z is (2 / pi) arcsin r, so that
r = sin(pi tau / 2) (Kruskal, "Ordinal measures of association", JASA 1958).

The score is z = log(length / median) / sigma. The tau is exact, but for the ties of whole numbers, where lengths
are lognormal with that median and sigma; for other lengths it is what this mixture happens to give.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, pi, sin, sqrt
from random import Random

from sim.request import Request


@dataclass(frozen=True)
class Correlated:
    """A length whose normal score correlates with the true one's.

    tau     Kendall's tau between prediction and truth, -1 to 1
    median  of the true output lengths, tokens
    sigma   of their logarithm
    """

    tau: float
    median: float
    sigma: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not -1 <= self.tau <= 1:
            raise ValueError(f"tau is {self.tau}; expected -1 to 1")
        if not 0 < self.median < 10**9:
            raise ValueError(f"median is {self.median}; expected a number of tokens above 0")
        if not 0 < self.sigma < 100:
            raise ValueError(f"sigma is {self.sigma}; expected above 0 and below 100")

    @property
    def name(self) -> str:
        """What results call it."""
        return f"Kendall tau {self.tau:g}"

    def __call__(self, request: Request) -> float:
        r = sin(pi * self.tau / 2)
        score = log(request.output / self.median) / self.sigma
        noise = Random(f"{self.seed}/prediction/{request.id}").gauss(0.0, 1.0)
        return self.median * exp(self.sigma * (r * score + sqrt(1 - r * r) * noise))


def correlated(seed: int, tau: object, median: object, sigma: object) -> Correlated:
    """One by the options of a scenario. Raises ValueError for values that are no numbers too."""
    return Correlated(number("tau", tau), number("median", median), number("sigma", sigma), seed)


def number(name: str, value: object) -> float:
    """`value` if it is a number; raises ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is {value!r}; expected a number")
    return float(value)
