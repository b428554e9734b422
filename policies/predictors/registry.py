"""Predictors of output length by name.

    predictor("exact", 0.5, seed=0)                               the truth with a lognormal error
    predictor({"quantile": {"quantile": 0.9}}, 0, seed=0)         learned from ended requests

`exact` and the models of an erroneous predictor (`error`, `classifier`, `correlated`) read the true output length;
all others use only what a server observes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature

from policies.predictors.base import Exact, Predictor, PromptLength
from policies.predictors.classifier import classifier
from policies.predictors.correlated import correlated
from policies.predictors.learned import ClassMean, Quantile
from policies.predictors.lognormal_error import LognormalError


def class_mean(seed: int, prior: object = 100) -> ClassMean:
    """A predictor by class means; `seed` is not used."""
    return ClassMean(prior)  # type: ignore[arg-type]  # it checks


def quantile(seed: int, quantile: object = 0.9, prior: object = 100) -> Quantile:
    """A predictor by a quantile; `seed` is not used."""
    return Quantile(prior, quantile)  # type: ignore[arg-type]  # it checks


WITH_OPTIONS: dict[str, Callable[..., Predictor]] = {
    "classifier": classifier,
    "correlated": correlated,
    "class_mean": class_mean,
    "quantile": quantile,
}


def predictor(predict: object, error: object, seed: int) -> Predictor:
    """A new predictor from the options `predict` and `error` of a policy.

    `predict` is exact, prompt, class_mean, quantile, or {name: options} of one of WITH_OPTIONS. `error` is the sigma
    of a lognormal error, for `exact` only. Raises ValueError for anything else, naming the option.
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
