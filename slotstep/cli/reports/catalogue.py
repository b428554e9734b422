"""The choices beside the order: admission rules, victims and predictors, each with its description and options.

The description is the first line of the docstring of the class or function itself.
"""

from __future__ import annotations

from inspect import getdoc, signature
from typing import Any

from pydantic import BaseModel

from policies import victims
from policies.predictors import base, learned, registry
from policies.predictors.classifier import Classifier
from policies.predictors.correlated import Correlated
from sim.policy.base import LastAdmitted, LeastUrgent, Optimistic, Reserve
from sim.policy.peak import Peak
from sim.policy.quantile import Quantile
from sim.policy.ratio import Ratio
from slotstep.scenario.engine import Engine, QuantileRule, RatioRule

CHOICES: dict[str, dict[str, type]] = {
    "admission": {
        "optimistic": Optimistic,
        "reserve": Reserve,
        "peak": Peak,
        "ratio": Ratio,
        "quantile": Quantile,
    },
    "victim": {
        "last_admitted": LastAdmitted,
        "least_urgent": LeastUrgent,
        "fewest_generated": victims.FewestGenerated,
        "least_served": victims.LeastServed,
        "largest_remaining": victims.LargestRemaining,
    },
    "predict": {
        "exact": base.Exact,
        "prompt": base.PromptLength,
        "classifier": Classifier,
        "correlated": Correlated,
        "class_mean": learned.ClassMean,
        "quantile": learned.Quantile,
    },
}
"""By key of the scenario and name: the class that implements the choice."""
SOURCES = {
    ("admission", "optimistic"): "vLLM",
    ("admission", "peak"): "LightLLM",
    ("admission", "ratio"): "SGLang",
    ("admission", "quantile"): "after Gong et al., ASPLOS 2025",
    ("victim", "last_admitted"): "vLLM",
    ("victim", "least_urgent"): "vLLM",
}
"""Where a choice comes from, by key of the scenario and name."""
RULES: dict[str, type[BaseModel]] = {"ratio": RatioRule, "quantile": QuantileRule}
OPTIMISTIC = ("reserve_full_prompt", "watermark")


def choices() -> dict[str, list[dict[str, Any]]]:
    """`name`, `about`, `options` (with defaults, null for those without) and `source`, by axis."""
    return {
        axis: [
            {
                "name": name,
                "about": (getdoc(kind) or "").partition("\n")[0],
                "options": options(axis, name),
                "source": SOURCES.get((axis, name), ""),
            }
            for name, kind in kinds.items()
        ]
        for axis, kinds in CHOICES.items()
    }


def options(axis: str, name: str) -> dict[str, Any]:
    """The options of a choice with their defaults, None where one has to be given."""
    if axis == "admission":
        if name == "optimistic":
            return {key: Engine.model_fields[key].default for key in OPTIMISTIC}
        fields = RULES[name].model_fields if name in RULES else {}
        return {key: field.default for key, field in fields.items()}
    if axis == "victim":
        made: Any = victims.VICTIMS[name]
    elif name in registry.WITH_OPTIONS:
        made = registry.WITH_OPTIONS[name]
    else:
        return {"error": 0} if name == "exact" else {}
    known = {key: option.default for key, option in signature(made).parameters.items() if key != "seed"}
    return {key: None if default is signature(made).empty else default for key, default in known.items()}
