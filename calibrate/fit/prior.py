"""What is known of a roofline before any run: where a fit to requests starts, and what it cannot leave.

A device reads no faster than its data sheet says, and an engine that reads at less than half of that, or multiplies
at less than four tenths, has another limit: what such a run took longer belongs to another term. Latencies alone do
not tell the terms of one or two light runs apart, and a run at a higher rate then shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calibrate.hardware.devices import Device
from calibrate.models.architecture import Anatomy
from calibrate.profiles.analytic import Efficiency, roofline
from sim.cost.forms import Curve, Roofline

SLOWEST = {"weight_pass": 0.5, "per_context_token": 0.5, "per_token": 0.4}
"""Least shares of the data sheet, of bandwidth and of the rate of matrix products."""
NEAR = 0.03
"""A term so near to an end of its range was kept there: a search ends a little before it."""


@dataclass(frozen=True)
class Prior:
    """A roofline to start at, and the lowest and highest value of some of its terms, ns."""

    start: Roofline
    within: Mapping[str, tuple[float, float]]

    def edges(self, cost: Curve) -> list[str]:
        """The terms of a fit that are at the end of what is possible, in words."""
        said = []
        for term, (low, high) in self.within.items():
            value = getattr(cost, term)
            end = 1.0 if value <= low * (1 + NEAR) else SLOWEST[term] if value >= high * (1 - NEAR) else None
            if end is not None:
                said.append(f"{term}: at the end of its range, {end:.0%} of the data sheet")
        return said


def prior(model: Anatomy, device: Device, dtype: str | None = None, tensor_parallel: int = 1) -> Prior:
    """What shapes say of a model on so many of a device, in a dtype (None: as published).

    The matrix products of a mixture's experts are small and uneven: their rate has no lower end. Raises ValueError
    for a model with windows, whose cache is read in part, and as `calibrate.profiles.analytic.roofline`.
    """
    if model.window:
        raise ValueError(f"{model.name} has layers with a window: what it reads depends on the contexts")
    sheet = roofline(
        model,
        device,
        dtype=dtype,
        efficiency=Efficiency(weights=1.0, cache=1.0, arithmetic=1.0),
        tensor_parallel=tensor_parallel,
    )
    likely = roofline(model, device, dtype=dtype, tensor_parallel=tensor_parallel)
    bounded = [term for term in SLOWEST if not (model.experts and term == "per_token")]
    within = {term: (getattr(sheet, term), getattr(sheet, term) / SLOWEST[term]) for term in bounded}
    core = {term: getattr(likely, term) for term in SLOWEST}
    return Prior(Roofline(graph_sizes=(), **core), within)
