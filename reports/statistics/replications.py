"""Replications: runs of several policies on the same seeds, with estimates of each metric and of each difference.

Latencies are arrays by request in order of arrival: NaN where undefined (the TPOT of one token), infinite where the
event never occurred (the first token of a rejected request).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reports.statistics.intervals import CONFIDENCE, Estimate, mean, pooled_percentile, quantile
from reports.statistics.paired import Difference, difference
from reports.statistics.warmup import Cut, mser5
from reports.text.metric_comparison import Kind, over_seeds

Floats = NDArray[np.float64]

LATENCIES = ("wait_s", "ttft_s", "tpot_s", "e2e_s")
P99 = 0.99


@dataclass(frozen=True)
class Replication:
    """One run: `latencies` (s) holds an array by request for each of LATENCIES, `whole` the metrics of the whole run.

    `grows` says whether the queue grows to the end; None if that is not known.
    """

    latencies: Mapping[str, Floats]
    whole: Mapping[str, float | None]
    grows: bool | None

    @cached_property
    def cut(self) -> Cut:
        """The warm-up: MSER-5 over the finite TTFTs."""
        series = self.latencies["ttft_s"]
        return mser5(series[np.isfinite(series)])

    def samples(self, latency: str, warm: bool) -> Floats:
        """A latency (s) of the requests for which it is defined; `warm`: without the requests of the warm-up."""
        values = self.latencies[latency][self.cut.samples if warm else 0 :]
        kept: Floats = values[~np.isnan(values)]
        return kept


@dataclass(frozen=True)
class ReplicationMetric:
    """A metric of replications: `key` in JSON, `name` in tables, and the latency and statistic it is computed from.

    `latency` is None for a metric of the whole run. `unit` is that of a rate or a count.
    """

    key: str
    name: str
    kind: Kind
    latency: str | None = None
    statistic: Literal["mean", "p99"] = "mean"
    unit: str = ""

    def of_run(self, run: Replication, warm: bool = False) -> float:
        """Its value in one run, NaN if there is none. A mean is over the requests with a finite latency."""
        if self.latency is None:
            value = run.whole[self.key]
            return math.nan if value is None else value
        samples = run.samples(self.latency, warm)
        if self.statistic == "p99":
            return quantile(np.sort(samples), P99) if len(samples) else math.nan
        came = samples[np.isfinite(samples)]
        return float(came.mean()) if len(came) else math.nan

    def of_all(
        self, runs: Sequence[Replication], warm: bool = False, confidence: float = CONFIDENCE
    ) -> Estimate | None:
        """Its estimate from all runs: the mean of their values, or a percentile of all their requests pooled.

        `n` of the estimate is the number of runs, for a percentile that of requests. None if no run has a value.
        """
        if self.latency is not None and self.statistic == "p99":
            groups = [run.samples(self.latency, warm) for run in runs]
            return pooled_percentile(groups, P99, confidence) if any(map(len, groups)) else None
        values = [value for run in runs if not math.isnan(value := self.of_run(run, warm))]
        return mean(values, confidence) if values else None


OF_LATENCIES = tuple(
    ReplicationMetric(f"{key}_{statistic}", f"{statistic} {name}", "time", key, statistic)
    for key, name in (("wait_s", "wait"), ("ttft_s", "TTFT"), ("tpot_s", "TPOT"), ("e2e_s", "E2E"))
    for statistic in ("mean", "p99")
)


@cache
def metrics_of_the_run(more: tuple[str, ...] = ()) -> Mapping[str, ReplicationMetric]:
    """The compared metrics of a whole run by their path in a summary; `more` names those that a scenario adds."""
    found = {}
    for path, metric in over_seeds(more).items():
        *section, key = path.split(".")
        key = key if section == ["rates"] else path.replace(".", "_")
        found[path] = ReplicationMetric(key, metric.subject, metric.kind, unit=metric.unit)
    return found


@dataclass(frozen=True)
class Replications:
    """Runs by policy, in order of `seeds`; the other policies are compared with the first one.

    `more` names the metrics that the scenario adds to the built-in ones.
    """

    seeds: tuple[int, ...]
    runs: Mapping[str, Sequence[Replication]]
    confidence: float = field(default=CONFIDENCE)
    more: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[ReplicationMetric, ...]:
        """The metrics of the table: latencies, then those of the whole run."""
        return (*OF_LATENCIES, *metrics_of_the_run(self.more).values())

    def unstable(self, policy: str) -> int:
        """The number of a policy's runs in which the queue grows."""
        return sum(run.grows is True for run in self.runs[policy])

    def censored(self, policy: str) -> tuple[int, int]:
        """The number of a policy's requests that never finished, and the number of all its requests."""
        ends = np.concatenate([run.latencies["e2e_s"] for run in self.runs[policy]])
        return int(np.isinf(ends).sum()), len(ends)

    def estimate(self, policy: str, metric: ReplicationMetric, warm: bool = False) -> Estimate | None:
        """The estimate of a metric under a policy; None if no run has a value."""
        return metric.of_all(self.runs[policy], warm, self.confidence)

    def difference(self, metric: ReplicationMetric, first: str, second: str) -> Difference:
        """The paired difference, second minus first, of a metric under two policies."""
        values = [[metric.of_run(run) for run in self.runs[policy]] for policy in (first, second)]
        return difference(values[0], values[1], self.confidence)


def sentence(names: tuple[str, str], metric: str, found: Difference, written: Callable[[float], str]) -> str:
    """A difference in words: `fcfs and fair differ in p99 TTFT by -1.2 s [-1.6 s, -0.9 s], 20 seeds.`

    `names` are the policies, `metric` the name of the metric; `written` formats a value.
    """
    pair = f"{names[0]} and {names[1]}"
    estimate = found.estimate
    if estimate is None:
        return f"{pair} cannot be compared in {metric}: no seed in which both have one."
    of = f"{estimate.n} seeds" + (f", {found.left_out} without a value left out" if found.left_out else "")
    if estimate.low == estimate.high == 0:
        return f"{pair} are equal in {metric}, {of}."
    span = f"[{written(estimate.low)}, {written(estimate.high)}]"
    if found.differ:
        return f"{pair} differ in {metric} by {written(estimate.value)} {span}, {of}."
    return f"{pair} are not told apart in {metric}: {written(estimate.value)} {span}, {of}."
