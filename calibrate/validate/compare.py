"""A predicted run compared with a measured one: every metric by itself, by load, over time, and who did not finish.

Latencies are compared over the requests that finished in both runs; the counts of other outcomes are reported beside
them. Where a run does not state when its requests were sent, nothing over time or by load is compared. No number here
is an average over metrics or runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibrate.arrays import Floats
from calibrate.fit.measured_run import STATISTICS, statistics

METRICS = ("ttft_s", "tpot_s", "e2e_s", "wait_s")
LEVELS = ("low", "middle", "high")
POINTS = 240
"""Instants of the series, evenly over the longer of the two runs."""


def timed(run: pd.DataFrame) -> bool:
    """Whether it is known when the requests of a run were sent."""
    return bool(run["sent_s"].notna().any())


def both(measured: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    """The requests that finished in both runs, a row each: metrics with the suffixes `_measured` and `_predicted`.

    Both frames have `id`, `sent_s`, `first_s`, `end_s` (NaN where it did not happen), `well` and some of METRICS;
    `measured` also has `output`. `load`: measured requests in flight when one was sent.
    """
    told = measured.assign(load=in_flight_at(measured, measured["sent_s"].to_numpy(np.float64)))
    joined = told[told["well"]].merge(predicted[predicted["well"]], on="id", suffixes=("_measured", "_predicted"))
    return joined.reset_index(drop=True)


def in_flight_at(run: pd.DataFrame, instants: Floats, until: str = "end_s") -> NDArray[np.int64]:
    """The number of requests that had been sent at each instant and had not reached `until`, shape of `instants`."""
    sent, ends = np.sort(run["sent_s"].to_numpy(np.float64)), run[until].fillna(run["end_s"]).to_numpy(np.float64)
    gone = np.searchsorted(np.sort(ends[~np.isnan(ends)]), instants, side="right")
    found: NDArray[np.int64] = np.searchsorted(sent, instants, side="left") - gone
    return np.maximum(found, 0)


def errors(pairs: pd.DataFrame) -> dict[str, Any]:
    """Each metric that both runs have: `n`, its statistics on both sides and their relative error, and `each`.

    `each` is the mean size of the error of single requests, over the measured mean: what averages hide.
    """
    found: dict[str, Any] = {}
    for name in METRICS:
        if f"{name}_measured" not in pairs or f"{name}_predicted" not in pairs:
            continue
        good = pairs[[f"{name}_measured", f"{name}_predicted"]].dropna().to_numpy(np.float64)
        if not len(good):
            continue
        truth, said = good.T
        found[name] = {"n": len(good)} | side_by_side(statistics(truth), statistics(said))
        found[name]["each"] = float(np.abs(said - truth).mean() / truth.mean()) if truth.any() else None
    return found


def side_by_side(truth: Floats, said: Floats) -> dict[str, dict[str, float | None]]:
    """STATISTICS of both and their relative error."""
    return {name: compare(float(one), float(other)) for name, one, other in zip(STATISTICS, truth, said, strict=True)}


def compare(truth: float, said: float) -> dict[str, float | None]:
    """Two numbers and the relative error of the second; None where the first is 0."""
    return {"measured": truth, "predicted": said, "error": said / truth - 1 if truth else None}


def by_load(pairs: pd.DataFrame) -> list[dict[str, Any]]:
    """The errors in three equal parts of the requests, by how many were in flight when they were sent."""
    if not len(pairs) or pairs["sent_s_measured"].isna().all():
        return []
    order = pairs.sort_values("load", kind="stable")
    parts = [order.iloc[part] for part in np.array_split(np.arange(len(order)), len(LEVELS))]
    return [
        {"level": level, "in_flight": [int(part["load"].min()), int(part["load"].max())], "metrics": errors(part)}
        for level, part in zip(LEVELS, parts, strict=True)
        if len(part)
    ]


def throughput(measured: pd.DataFrame, predicted: pd.DataFrame) -> dict[str, Any]:
    """Makespan, and requests and output tokens per second, of finished requests in each run; {} without times."""
    if not timed(measured):
        return {}
    spans: list[float] = []
    counts: list[float] = []
    tokens: list[float] = []
    lengths = measured.set_index("id")["output"].astype("Float64")
    for run in (measured, predicted):
        well = run[run["well"]]
        spans.append(float(well["end_s"].max() - run["sent_s"].min()) if len(well) else 0.0)
        counts.append(len(well))
        tokens.append(float(lengths.reindex(well["id"]).sum()))
    found = {"makespan_s": compare(spans[0], spans[1])}
    for name, amounts in (("requests_per_s", counts), ("output_tokens_per_s", tokens)):
        one, other = (amount / span if span else 0.0 for amount, span in zip(amounts, spans, strict=True))
        found[name] = compare(one, other)
    return found


def series(measured: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    """Both runs over time: `t` (s from the first sending), requests in flight, and those without their first token.

    The columns are `in_flight` and `without_token`, each `_measured` and `_predicted`; none without times.
    """
    if not timed(measured):
        return pd.DataFrame()
    starts = [float(run["sent_s"].min()) for run in (measured, predicted)]
    last = max(float(run["end_s"].max()) - start for run, start in zip((measured, predicted), starts, strict=True))
    instants = np.linspace(0, last, POINTS)
    found: dict[str, NDArray[Any]] = {"t": instants}
    for name, run, start in zip(("measured", "predicted"), (measured, predicted), starts, strict=True):
        found[f"in_flight_{name}"] = in_flight_at(run, instants + start)
        found[f"without_token_{name}"] = in_flight_at(run, instants + start, "first_s")
    return pd.DataFrame(found)


def outcomes(measured: Mapping[str, int], predicted: Mapping[str, int], pairs: int) -> dict[str, Any]:
    """The counts of outcomes in both runs, and of requests that finished in both."""
    return {"measured": dict(measured), "predicted": dict(predicted), "compared": pairs}
