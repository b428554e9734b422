"""Admission rules by name: which requests may enter. A new one is its file and a line in ADMISSIONS.

    build("ratio", {"initial": 0.5})

The rules themselves are in `sim.policy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policies.base import choices
from policies.base.choices import Reader
from policies.base.entry import Choice, Option
from policies.base.option_values import flag
from sim.policy.base import Admission, Optimistic, Reserve
from sim.policy.peak import Peak
from sim.policy.quantile import Quantile
from sim.policy.ratio import FewestOutputs, Ratio
from sim.registry import Registry


def optimistic(reserve_full_prompt: Any, watermark: Any) -> Admission:
    """The check of known tokens. Raises ValueError for a watermark that is no share."""
    return Optimistic(reserve_full_prompt, watermark)


def peak(strict: object) -> Admission:
    """The rule by peaks. Raises ValueError for an option that is no truth value."""
    return Peak(flag("strict", strict))


def quantile(epsilon: Any, window: Any, every: Any, outputs: Any) -> Admission:
    """The rule by past outputs, or by those given. Raises ValueError for options out of range."""
    return Quantile(epsilon, window, every, outputs)


OPTIMISTIC = Choice(
    "Admit when pages for all tokens known so far are free: a check, not a reservation.",
    optimistic,
    {"reserve_full_prompt": Option(True), "watermark": Option(0.0)},
    source="vLLM",
)
RESERVE = Choice(
    "Admit when pages for prompt and maximum output are free, and keep them: never a preemption.", Reserve
)
PEAK = Choice(
    "Admit while the memory suffices if every sequence generates up to its maximum: never a preemption.",
    peak,
    {"strict": Option(False)},
    source="LightLLM",
)
RATIO = Choice(
    "Admit when pages for the whole request and for a drifting share of what the running may need are free.",
    Ratio,
    {"initial": Option(0.7), "minimum": Option(0.098), "decay_steps": Option(600), "ahead": Option(20)},
    source="SGLang",
    victim=FewestOutputs(),
)
QUANTILE = Choice(
    "Admit while the running sequences outgrow the memory with small probability, by past output lengths.",
    quantile,
    {"epsilon": Option(0.05), "window": Option(1000), "every": Option(8), "outputs": Option(None, "lengths")},
    source="after Gong et al., ASPLOS 2025",
)

ADMISSIONS: Registry[Choice[Admission]] = Registry(
    "admission rule",
    "slotstep.admissions",
    {
        "optimistic": "policies.admissions:OPTIMISTIC",
        "reserve": "policies.admissions:RESERVE",
        "peak": "policies.admissions:PEAK",
        "ratio": "policies.admissions:RATIO",
        "quantile": "policies.admissions:QUANTILE",
    },
    Reader[Choice[Admission]](
        Choice, "a class of sim.policy.base.Admission, complete, or a Choice", Admission, known=()
    ),
)


def build(name: str, options: Mapping[str, object]) -> Admission:
    """A new admission rule by its name; lengths among the options are numbers of tokens.

    Raises ValueError, in one line, for an unknown name or option and for an impossible value.
    """
    return choices.build(ADMISSIONS, name, options)
