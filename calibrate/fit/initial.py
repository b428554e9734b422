"""Where a fit to requests starts: an initial estimate from latencies, or a model's bytes on a device's data sheet.

`initial_estimate` gives the order of magnitude by arithmetic on latencies and needs no device. `prior` starts from
shapes and bounds the terms: a device reads no faster than its data sheet states, and an engine that reads at less
than half of that, or multiplies at less than four tenths, has another bottleneck, whose time belongs to another term.
Latencies alone do not separate the terms of one or two runs at low load, and a run at a higher rate then shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibrate.arrays import Floats
from calibrate.hardware.attained import Efficiency
from calibrate.hardware.devices import Device
from calibrate.models.architecture import Architecture
from calibrate.profiles.analytic import roofline
from calibrate.profiles.shapes import shapes
from sim.cost.forms import Curve, Roofline
from sim.request import SECOND

PAIR = 5e-5
"""Work of one attention pair over that of one token's matrix products: 1 / (6 x width) for a width of about 4000."""
SLOWEST = {"weight_pass": 0.5, "per_context_token": 0.5, "per_token": 0.4}
"""Least shares of the data sheet, of bandwidth and of the rate of matrix products."""
OF_KERNELS = ("per_mixed_context_token", "per_tail_token", "unsplit")
"""Terms that follow from how the device's attention kernels divide their work; they are kept, not fitted."""
NEAR = 0.03
"""A term within this relative distance of a bound was held there: a search ends a little before it."""


def initial_estimate(runs: Sequence[pd.DataFrame]) -> Roofline:
    """A roofline from runs with `prompt`, `output`, `sent_s`, `e2e_s` and optionally `ttft_s`, `tpot_s`, in s.

    The fastest decoding seen is taken for a step of few sequences: most of it the weight pass. The fastest first
    token is the arithmetic of a prompt; half of the additional decode time in the busiest run is attributed to its
    context.
    """
    whole = pd.concat(runs, ignore_index=True)
    per_token = step_times(whole)
    base = float(np.percentile(per_token, 5)) * SECOND
    prompt = max(float(whole["prompt"].median()), 1.0)
    first = first_token(whole, base)
    busiest = max(runs, key=concurrency)
    tokens = concurrency(busiest) * (float(busiest["prompt"].mean()) + float(busiest["output"].mean()) / 2)
    slower = max(float(step_times(busiest).mean()) * SECOND - base, 0.1 * base)
    return Roofline(
        weight_pass=0.8 * base,
        host=0.1 * base,
        per_token=0.7 * first / prompt,
        per_sequence=1e-3 * base,
        per_context_token=0.5 * slower / max(tokens, 1.0),
        per_chunk=0.1 * base,
        prompt_launches=base,
        per_chunk_work=PAIR * 0.7 * first / prompt,
    )


def step_times(run: pd.DataFrame) -> Floats:
    """Seconds per token of each request: its TPOT, or its share of the whole where that is not known."""
    shares = run["e2e_s"] / run["output"].astype(np.float64)
    found = run["tpot_s"].where(run["tpot_s"] > 0, shares) if "tpot_s" in run else shares
    values = found.to_numpy(np.float64)
    return values[values > 0]


def first_token(run: pd.DataFrame, base: float) -> float:
    """A fast first token, ns; a few steps where none was measured."""
    known = run["ttft_s"].dropna() if "ttft_s" in run else pd.Series(dtype=np.float64)
    return float(np.percentile(known, 10)) * SECOND if len(known) else 3 * base


def concurrency(run: pd.DataFrame) -> float:
    """Requests in the system on average, by Little's law."""
    span = float((run["sent_s"] + run["e2e_s"]).max() - run["sent_s"].min())
    return float(run["e2e_s"].sum()) / span if span > 0 else 1.0


@dataclass(frozen=True)
class Prior:
    """A roofline to start at, and the lowest and highest value of some of its terms, ns."""

    start: Roofline
    within: Mapping[str, tuple[float, float]]

    def edges(self, cost: Curve) -> list[str]:
        """The terms of a fit that are at a bound, a sentence each."""
        said = []
        for term, (low, high) in self.within.items():
            value = getattr(cost, term)
            end = 1.0 if value <= low * (1 + NEAR) else SLOWEST[term] if value >= high * (1 - NEAR) else None
            if end is not None:
                said.append(f"{term}: at the end of its range, {end:.0%} of the data sheet")
        return said


def prior(model: Architecture, device: Device, dtype: str | None = None, tensor_parallel: int = 1) -> Prior:
    """Start and bounds of a model on `tensor_parallel` devices, in a dtype (None: as published).

    The matrix products of a mixture's experts are small and uneven: their rate has no lower bound. Raises ValueError
    for a model with windows, whose cache is read in part, and as `calibrate.profiles.analytic.roofline`.
    """
    if model.window:
        raise ValueError(f"{model.name} has layers with a window: what it reads depends on the contexts")
    perfect = Efficiency(weights=1.0, cache=1.0, arithmetic=1.0)
    sheet, likely = (
        roofline(shapes(model, device, dtype=dtype, efficiency=given, tensor_parallel=tensor_parallel))
        for given in (perfect, None)
    )
    bounded = [term for term in SLOWEST if not (model.experts and term == "per_token")]
    within = {term: (getattr(sheet, term), getattr(sheet, term) / SLOWEST[term]) for term in bounded}
    known = {term: getattr(likely, term) for term in (*SLOWEST, *OF_KERNELS)}
    return Prior(Roofline(graph_sizes=(), **known), within)
