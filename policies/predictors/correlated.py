"""Predictions whose rank agrees with the true lengths by a given Kendall tau.

Policies by predicted length depend on the order of the predictions more than on their values, and Kendall's tau
measures the quality of a ranking. The construction is a Gaussian copula: the normal score z of the true length is
mixed with noise e of the request's own to r z + sqrt(1 - r^2) e, whose Kendall tau with z is (2 / pi) arcsin r, so
r = sin(pi tau / 2) (Kruskal, "Ordinal measures of association", JASA 1958).

The score is z = log(length / median) / sigma. The tau is exact, apart from ties of whole numbers, where lengths
are lognormal with that median and sigma; for other lengths it differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, pi, sin, sqrt
from random import Random

from policies.base.entry import Choice, Option
from policies.base.option_values import number
from sim.request import Request


@dataclass(frozen=True)
class Correlated:
    """Predicts a length whose normal score correlates with that of the true length.

    tau     Kendall's tau between prediction and truth, -1 to 1
    median  of the true output lengths, tokens
    sigma   standard deviation of their natural logarithm

    Raises ValueError for values out of range.
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
        """The predictor's name in results."""
        return f"Kendall tau {self.tau:g}"

    def __call__(self, request: Request) -> float:
        r = sin(pi * self.tau / 2)
        score = log(request.output / self.median) / self.sigma
        noise = Random(f"{self.seed}/prediction/{request.id}").gauss(0.0, 1.0)
        return self.median * exp(self.sigma * (r * score + sqrt(1 - r * r) * noise))


def correlated(seed: int, tau: object, median: object, sigma: object) -> Correlated:
    """A predictor from the options of a scenario. Raises ValueError, also for values that are not numbers."""
    return Correlated(number("tau", tau), number("median", median), number("sigma", sigma), seed)


ENTRY = Choice(
    "Predicts a length whose normal score correlates with that of the true length.",
    correlated,
    {key: Option(None, needed=True) for key in ("tau", "median", "sigma")},
)
