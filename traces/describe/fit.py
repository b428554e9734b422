"""A synthetic workload with the statistics of a trace, and its distance from the trace.

Lengths: the simplest of a constant, a lognormal and a few quantiles that is close enough (`fit_lengths`), with the
trace's rank correlation of prompts and outputs. Arrivals: piecewise constant rates with gamma-distributed gaps
(`fit_arrivals`), rounded up to ticks if the trace's clock is coarse, or `at_once` if it has no arrivals.

The workload has one tenant and independent requests. Tenants, sessions, shared prefixes and the correlation of
successive requests are not modelled; `Fitted.left_out` lists which of them the trace has.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.accounting.rates import over_span
from sim.request import SECOND
from traces.describe import statistics
from traces.describe.fit_arrivals import arrival_law, first_arrivals
from traces.describe.fit_lengths import length_law
from traces.errors import BadInput
from traces.synthetic.arrivals import Ticks
from traces.synthetic.generator import drawn_together
from traces.synthetic.parser import ARRIVALS, LENGTHS
from traces.synthetic.streams import Stream

Integers = NDArray[np.int64]
JUDGED_BY = 1_000_000
RANKED = 100_000


@dataclass(frozen=True)
class Distance:
    """One statistic of the trace and of the fitted law; `relative` is their difference over the trace's value."""

    name: str
    trace: float
    law: float

    @property
    def relative(self) -> float:
        return (self.law - self.trace) / self.trace if self.trace else math.inf if self.law else 0.0


@dataclass(frozen=True)
class Fitted:
    """A workload in scenario syntax (durations in ns), its distances from the trace, and what it does not model."""

    workload: dict[str, Any]
    distances: list[Distance]
    left_out: list[str]


def fit(frame: pd.DataFrame, seed: int = 0) -> Fitted:
    """Fit a workload to a frame; its distances are those of a million draws under `seed`.

    Without arrivals in the frame the workload's are `at_once`. Raises BadInput for a frame without outputs, with
    fewer than two requests, or with all arrivals at one time.
    """
    if "output" not in frame:
        raise BadInput("has no output lengths; a workload can be fitted only to both lengths")
    prompts, outputs = (frame[name].to_numpy(np.int64) for name in ("prompt", "output"))
    if len(prompts) < 2:
        raise BadInput(f"{len(prompts)} request; expected at least two at different times")
    judge = Stream(seed, "fit/judging")
    arrivals, distances = fitted_arrivals(frame, seed, judge)
    prompt, output = length_law(prompts), length_law(outputs)
    ranks = statistics.rank_correlation(prompts, outputs)
    correlation = None if ranks is None else round(2 * math.sin(math.pi * ranks / 6), 4)
    workload: dict[str, Any] = {
        "requests": len(prompts),
        "arrivals": arrivals,
        "prompt": written(prompt),
        "output": written(output),
    }
    if correlation is not None:
        workload["correlation"] = correlation
    drawn = drawn_together(prompt, output, correlation, judge, JUDGED_BY)
    distances += length_distances("prompt", prompts, drawn[0]) + length_distances("output", outputs, drawn[1])
    if ranks is not None:
        distances.append(
            Distance(
                "rank correlation", ranks, statistics.rank_correlation(*(each[:RANKED] for each in drawn)) or 0.0
            )
        )
    return Fitted(workload, distances, left_out(frame))


def fitted_arrivals(frame: pd.DataFrame, seed: int, judge: Stream) -> tuple[dict[str, Any] | str, list[Distance]]:
    """The law of a frame's arrivals in scenario syntax, and its distances."""
    if "arrival_ns" not in frame:
        return "at_once", []
    times = frame["arrival_ns"].to_numpy(np.int64)
    if times[0] == times[-1]:
        raise BadInput(f"{len(times)} requests arrive at once; expected different times")
    law = arrival_law(times - times[0], Stream(seed, "fit/tuning"))
    return written(law), time_distances(times - times[0], first_arrivals(law, judge, JUDGED_BY), law.rate)


def time_distances(times: Integers, drawn: Integers, rate: float) -> list[Distance]:
    """Distances of rate, CV of the gaps, and dispersion per 1, 10 and 60 seconds where the trace has them."""
    found = [Distance("rate /s", over_span(times) or 0.0, rate)]
    pairs = [("CV of gaps", statistics.gap_cv(times), statistics.gap_cv(drawn))]
    for window in statistics.WINDOWS[1:]:
        mine, law = (statistics.dispersion(sample, window) for sample in (times, drawn))
        pairs.append((f"dispersion per {window // SECOND} s", mine, law))
    return found + [Distance(name, mine, law) for name, mine, law in pairs if mine is not None and law is not None]


def length_distances(name: str, values: Integers, drawn: Integers) -> list[Distance]:
    """Distances of mean, median and 99th percentile."""
    both = ((values.mean(), drawn.mean()), *zip(*(np.percentile(v, [50, 99]) for v in (values, drawn)), strict=True))
    return [
        Distance(f"{name} {what}", float(mine), float(law))
        for what, (mine, law) in zip(("mean", "p50", "p99"), both, strict=True)
    ]


def left_out(frame: pd.DataFrame) -> list[str]:
    """What the trace contains and the fitted law does not model, one line each."""
    lines = []
    if "arrival_ns" not in frame:
        lines.append(
            "arrivals: the trace has none; those of the workload are all at once, for clients that ignore them"
        )
    if "tenant" in frame and (tenants := frame["tenant"].nunique()) > 1:
        lines.append(f"{tenants} tenants: the workload has one")
    if "session" in frame and frame["session"].notna().any():
        lines.append(f"{frame['session'].nunique()} sessions: requests of the workload are independent")
    if "blocks" in frame or "tokens" in frame:
        lines.append("contents of prompts: those of the workload share nothing")
    if "max_output" in frame and frame["max_output"].notna().any():
        lines.append("declared limits: those of the workload are the outputs")
    return lines


def written(law: object) -> dict[str, Any]:
    """A law in scenario syntax: {name: options}, durations in ns."""
    names = {kind: name for name, kind in (ARRIVALS | LENGTHS).items()}
    if isinstance(law, Ticks):
        return {"ticks": {"arrivals": written(law.arrivals), "every": law.every}}
    options = {name: value for name, value in asdict(law).items() if value is not None}  # type: ignore[call-overload]
    return {names[type(law)]: {name: listed(value) for name, value in options.items()}}


def listed(value: Any) -> Any:
    """A tuple as a list; any other value unchanged."""
    return list(value) if isinstance(value, tuple) else value
