"""Predictions of output length: what a policy may know of the future.

`Exact` sees the truth, and so do the models of a wrong predictor, to spoil it; all others know what a server knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from random import Random
from typing import Protocol

from policies.classifier import classifier
from policies.correlated import correlated
from policies.history import ClassMean, Quantile
from sim.request import Request


class Predictor(Protocol):
    """A number that grows with the expected output length; the same each time, unless it learns."""

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


def class_mean(seed: int, prior: object = 100) -> ClassMean:
    """It draws nothing."""
    return ClassMean(prior)  # type: ignore[arg-type]  # it checks


def quantile(seed: int, quantile: object = 0.9, prior: object = 100) -> Quantile:
    """It draws nothing."""
    return Quantile(prior, quantile)  # type: ignore[arg-type]  # it checks


WITH_OPTIONS: dict[str, Callable[..., Predictor]] = {
    "classifier": classifier,
    "correlated": correlated,
    "class_mean": class_mean,
    "quantile": quantile,
}


def predictor(predict: object, error: object, seed: int) -> Predictor:
    """A fresh predictor, as these options of a policy ask for it.

    `predict` is exact, prompt, class_mean, quantile, or {name: options} of one of WITH_OPTIONS; `error`, with
    exact, the sigma of a lognormal error. Raises ValueError for anything else.
    """
    if isinstance(error, bool) or not isinstance(error, int | float):
        raise ValueError(f"error is {error!r}; expected a number of 0 or more")
    if predict == "exact":
        return LognormalError(float(error), seed) if error else Exact()
    if error:
        raise ValueError("error applies to predict: exact only")
    if predict == "prompt":
        return PromptLength()
    name: object = predict
    options: object = {}
    if isinstance(predict, Mapping) and len(predict) == 1:
        name, options = next(iter(predict.items()))
    if not isinstance(name, str) or name not in WITH_OPTIONS or not isinstance(options, Mapping):
        known = f"exact or prompt, or {', '.join(WITH_OPTIONS)} with options"
        raise ValueError(f"predict is {predict!r}; expected {known}")
    make = WITH_OPTIONS[name]
    wanted = {key: option for key, option in signature(make).parameters.items() if key != "seed"}
    unknown = [key for key in options if key not in wanted]
    missing = [key for key, option in wanted.items() if option.default is option.empty and key not in options]
    if unknown or missing:
        raise ValueError(
            f"predict.{name}: {(unknown + missing)[0]} is {'unknown' if unknown else 'missing'}; "
            f"its options are {', '.join(wanted)}"
        )
    return make(seed, **options)
