"""The error model of costs by how they were made, learned from measured runs declared open.

`python -m benchmarks.uncertainty` writes sizes.yaml; docs/uncertainty.md has the coverage of its intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import yaml

from calibrate.arrays import Floats
from calibrate.uncertainty.model import Uncertainty, from_mapping

MADE = {
    "shapes": "from shapes alone",
    "database": "from a kept database of operators",
    "tables": "of measured operators",
    "fit": "fitted to steps or requests",
}


@cache
def sizes() -> Mapping[str, Uncertainty]:
    """The error model of each of MADE."""
    file = resources.files("calibrate") / "uncertainty" / "sizes.yaml"
    return {name: from_mapping(content) for name, content in yaml.safe_load(file.read_text()).items()}


def made(content: Mapping[str, Any]) -> str:
    """How the cost of a profile was made: one of MADE."""
    details = content.get("details") or {}
    if "efficiency" in details:
        return "shapes"
    if "sampler" in details:
        return "database"
    return "tables" if "table" in content["curve"] else "fit"


def of(content: Mapping[str, Any]) -> Uncertainty:
    """The uncertainty of a profile's cost: what the profile states, or that of costs made like it.

    A profile whose prompts were made longer by a factor (`details.prompt_factor`) has that much less of the median.
    """
    if content.get("uncertainty") is not None:
        return from_mapping(content["uncertainty"])
    found = sizes()[made(content)]
    factor = float((content.get("details") or {}).get("prompt_factor", 1.0))
    return replace(found, prompts_median=found.prompts_median / factor)


def of_fit(terms: Mapping[str, float], covariance: Floats, others: Mapping[str, Any] | None = None) -> Uncertainty:
    """The uncertainty of a fitted cost: the covariance of its coefficients, and the error that fits have besides.

    terms   the fitted coefficients, ns, in the order of `covariance` (ns^2, shape (terms, terms)); those at 0 are
            left out: they are terms that the data did not show
    others  the content of the profile of all other coefficients: then the spread is that of its costs, around 1, as
            the fit met what was measured
    """
    kept = [place for place, value in enumerate(terms.values()) if value > 0]
    names = tuple(name for name, value in terms.items() if value > 0)
    rows = tuple(tuple(row) for row in covariance[kept][:, kept].tolist())
    base = sizes()["fit"] if others is None else replace(of(others), decode_median=1.0, prompts_median=1.0)
    return replace(base, terms=names, covariance=rows)
