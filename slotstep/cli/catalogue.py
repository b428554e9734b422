"""What else there is to choose beside the order: rules of admission, victims and predictors, each with a line.

Options and their defaults are read from where they are defined. Knows nothing of orders.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

from pydantic import BaseModel

from policies import victims
from policies.predictors import registry as predictors
from slotstep.scenario.engine import Engine, QuantileRule, RatioRule

LINES = {
    "admission": {
        "optimistic": ("Pages for the tokens known so far are free; taken as needed.", "vLLM"),
        "reserve": ("Pages for prompt and maximum output are taken at once; never a preemption.", ""),
        "peak": ("The memory lasts if everyone runs to its maximum and leaves then; never a preemption.", "LightLLM"),
        "ratio": ("Room for its whole life beside a drifting share of what the running ones may need.", "SGLang"),
        "quantile": (
            "The running ones outgrow the memory with a small chance, by the lengths of those that ended.",
            "after Gong et al., ASPLOS 2025",
        ),
    },
    "victim": {
        "last_admitted": ("Who came in last: the least is lost.", "vLLM"),
        "least_urgent": ("The lowest priority, of these the last to arrive.", "vLLM"),
        "fewest_generated": ("Who has been given the fewest tokens.", ""),
        "least_served": ("Who has the fewest positions computed.", ""),
        "largest_remaining": ("Who is predicted to hold its pages longest.", ""),
    },
    "predict": {
        "exact": ("The truth, or with an error the truth times a lognormal factor.", ""),
        "prompt": ("The prompt's length.", ""),
        "classifier": ("A bucket of lengths, by a confusion matrix.", ""),
        "correlated": ("Ranks that agree with the truth as Kendall's tau says.", ""),
        "class_mean": ("The mean of ended requests of the same tenant and prompt size.", ""),
        "quantile": ("A quantile of all ended requests.", ""),
    },
}
"""By key of the scenario and name: what it does, and where it comes from."""
RULES: dict[str, type[BaseModel]] = {"ratio": RatioRule, "quantile": QuantileRule}
OPTIMISTIC = ("reserve_full_prompt", "watermark")


def choices() -> dict[str, list[dict[str, Any]]]:
    """`name`, `about`, `options` (with defaults, null for those without) and `source`, by axis."""
    return {
        axis: [
            {"name": name, "about": about, "options": options(axis, name), "source": source}
            for name, (about, source) in lines.items()
        ]
        for axis, lines in LINES.items()
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
    elif name in predictors.WITH_OPTIONS:
        made = predictors.WITH_OPTIONS[name]
    else:
        return {"error": 0} if name == "exact" else {}
    known = {key: option.default for key, option in signature(made).parameters.items() if key != "seed"}
    return {key: None if default is signature(made).empty else default for key, default in known.items()}
