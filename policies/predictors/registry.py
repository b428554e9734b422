"""Predictors of output length by name. A new one is its file and one line here.

    predictor("exact", 0.5, seed=0)                               the truth with a lognormal error
    predictor({"quantile": {"quantile": 0.9}}, 0, seed=0)         learned from ended requests

`exact` and the models of an erroneous predictor (`error`, `classifier`, `correlated`) read the true output length;
all others use only what a server observes.
"""

from __future__ import annotations

from policies.base.choices import Reader, choice, settings
from policies.base.entry import Choice
from policies.predictors.base import Predictor
from sim.registry import Registry, suggestion

PREDICTORS: Registry[Choice[Predictor]] = Registry(
    "predictor",
    "slotstep.predictors",
    {
        "exact": "policies.predictors.lognormal_error:EXACT",
        "prompt": "policies.predictors.base:PROMPT",
        "classifier": "policies.predictors.classifier:ENTRY",
        "correlated": "policies.predictors.correlated:ENTRY",
        "class_mean": "policies.predictors.learned:CLASS_MEAN",
        "quantile": "policies.predictors.learned:QUANTILE",
    },
    Reader[Choice[Predictor]](Choice, "a class with name and __call__, or a Choice", methods=("__call__",)),
)


def predictor(predict: object, error: object, seed: int) -> Predictor:
    """A new predictor from the options `predict` and `error` of a policy.

    `predict` is a name of PREDICTORS or {name: options}. `error` is the sigma of a lognormal error, for `exact` only.
    Raises ValueError for anything else, naming the option.
    """
    try:
        name, options = choice(predict, "a predictor")
    except ValueError:
        raise ValueError(f"predict is {predict!r}; {suggestion(predict, PREDICTORS.names())}") from None
    if not PREDICTORS.knows(name):
        raise ValueError(f"predict is {predict!r}; {suggestion(name, PREDICTORS.names())}")
    if name == "exact":
        options = {"error": error, **options}
    elif isinstance(error, bool) or not isinstance(error, int | float) or error:
        raise ValueError(f"error is {error!r}; expected a number of 0 or more, above 0 with predict: exact only")
    entry = PREDICTORS.find(name)
    try:
        given = settings(name, entry, options)
    except ValueError as wrong:
        raise ValueError(f"predict.{wrong}") from None
    made = entry.make(seed=seed, **given)
    try:
        made.name  # noqa: B018 - it is what is tried
    except AttributeError:
        raise ValueError(f"predict is {predict!r}, which has no name; expected one for the results") from None
    return made
