"""Predictions of output length: what a policy may know of the future. Only `Exact` sees the truth."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Protocol

from sim.request import Request


class Predictor(Protocol):
    """A number that grows with the expected output length, the same each time it is asked."""

    @property
    def name(self) -> str:
        """What results call it."""

    def __call__(self, request: Request) -> float: ...


@dataclass(frozen=True)
class Exact:
    """The true output length: the bound that no real predictor reaches."""

    name: str = "exact"

    def __call__(self, request: Request) -> float:
        return request.output


@dataclass(frozen=True)
class LognormalError:
    """The true length times exp(sigma z), z standard normal: right in the median, wrong by a factor.

    Each request has its own stream, named by its id, so a prediction depends on no other request.
    """

    sigma: float
    seed: int

    def __post_init__(self) -> None:
        if not 0 <= self.sigma < 100:
            raise ValueError(f"error is {self.sigma}; expected a sigma from 0 to below 100")

    @property
    def name(self) -> str:
        """What results call it."""
        return f"lognormal error {self.sigma:g}"

    def __call__(self, request: Request) -> float:
        stream = Random(f"{self.seed}/prediction/{request.id}")
        return request.output * stream.lognormvariate(0.0, self.sigma)


@dataclass(frozen=True)
class PromptLength:
    """The prompt's length: free to know, and often a poor guess."""

    name: str = "prompt"

    def __call__(self, request: Request) -> float:
        return request.prompt


def predictor(predict: object, error: object, seed: int) -> Predictor:
    """The predictor that these options of a policy ask for.

    `predict` is exact or prompt; `error`, with exact, the sigma of a lognormal error. Raises ValueError for
    anything else.
    """
    if isinstance(error, bool) or not isinstance(error, int | float):
        raise ValueError(f"error is {error!r}; expected a number of 0 or more")
    if predict not in ("exact", "prompt"):
        raise ValueError(f"predict is {predict!r}; expected exact or prompt")
    if predict == "prompt":
        if error:
            raise ValueError("error applies to predict: exact only")
        return PromptLength()
    return LognormalError(float(error), seed) if error else Exact()
