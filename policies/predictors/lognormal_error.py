"""The true output length, exact or with a lognormal error."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from policies.base.entry import Choice, Option
from policies.predictors.base import Exact, Predictor
from sim.request import Request


@dataclass(frozen=True)
class LognormalError:
    """The true length times exp(sigma z), z standard normal: unbiased in the median, wrong by a random factor.

    Every request has a random stream of its own, named by its id, so a prediction does not depend on other requests.
    Raises ValueError for a sigma below 0 or of 100 and above.
    """

    sigma: float
    seed: int

    def __post_init__(self) -> None:
        if not 0 <= self.sigma < 100:
            raise ValueError(f"error is {self.sigma}; expected a sigma from 0 to below 100")

    @property
    def name(self) -> str:
        """The predictor's name in results."""
        return f"lognormal error {self.sigma:g}"

    def __call__(self, request: Request) -> float:
        stream = Random(f"{self.seed}/prediction/{request.id}")
        return request.output * stream.lognormvariate(0.0, self.sigma)


def exact(seed: int, error: object) -> Predictor:
    """The true length, with an error of that sigma. Raises ValueError for one that is not a number of 0 or more."""
    if isinstance(error, bool) or not isinstance(error, int | float):
        raise ValueError(f"error is {error!r}; expected a number of 0 or more")
    return LognormalError(float(error), seed) if error else Exact()


EXACT = Choice("The true output length: an upper bound on what real predictors achieve.", exact, {"error": Option(0)})
