"""Runs of several policies compared in sentences: which is best in which metric, by how much against the first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from reports import latency_origin
from reports.text.metric_comparison import (
    Metric,
    MetricComparison,
    Summary,
    compare,
    engine_metrics,
    latency_metrics,
    written,
)
from reports.text.run_facts import GROWS, censored, what_became
from reports.units import ABSENT, percent, printable

NAMES = {"wait_s": "wait", "ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "E2E"}


def labels(runs: Sequence[Summary]) -> list[str]:
    """A distinct name for each run: its policy; its engine where each run has another preset; or longer ones.

    If policies repeat, the scenario or else the number of the run is added. Raises ValueError without runs.
    """
    if not runs:
        raise ValueError("nothing to compare: no runs")
    presets = [printable(run.get("preset") or "") for run in runs]
    if len(runs) > 1 and all(presets) and len(set(presets)) == len(presets):
        return presets
    policies = [printable(run["policy"]) for run in runs]
    longer = [f"{policy}, {printable(run['scenario'])}" for policy, run in zip(policies, runs, strict=True)]
    numbered = [f"{policy} ({place})" for place, policy in enumerate(policies, start=1)]
    return next((names for names in (policies, longer) if len(set(names)) == len(names)), numbered)


def sentences(runs: Sequence[Summary]) -> list[str]:
    """The best run in each metric, the metrics in which all are equal, then what the numbers leave out or assume.

    For a single run only the last. Raises ValueError without runs.
    """
    names = labels(runs)
    found = []
    if len(runs) > 1:
        compared = [comparison for metric in engine_metrics(runs) for comparison in compare([metric], runs)]
        found += [_sentence(comparison, names) for comparison in compared if comparison.best]
        pairs = [compare(pair, runs) for pair in latency_metrics(runs)]
        found += [sentence for mean, p99 in pairs for sentence in _of_latency(mean, p99, names)]
        everything = compared + [comparison for pair in pairs for comparison in pair]
        equal = [c.metric.subject for c in everything if c.all_equal and c.cells[0] != ABSENT]
        if equal:
            found.append(f"Equal for all: {', '.join(equal)}.")
        found += _complete(runs, names)
    return (
        found
        + _since(runs, names)
        + _predictors(runs, names)
        + _unlike(runs, names)
        + _left_out(runs, names)
        + _unstable(runs, names)
    )


def _of_latency(mean: MetricComparison, p99: MetricComparison, names: Sequence[str]) -> list[str]:
    """The run with the lowest mean and its p99; the run with the lowest p99 if that is another."""
    if len(mean.best) != 1:
        return [_sentence(comparison, names) for comparison in (mean, p99) if comparison.best]
    (winner,) = mean.best
    found = _sentence(mean, names)
    if p99.best == mean.best:
        return [f"{found.removesuffix('.')}; its p99 is the lowest too: {_standing(p99, names)}."]
    if winner != 0:
        its = relation(p99.metric, p99.values[winner], p99.values[0], names[0])
        found = f"{found.removesuffix('.')}; its p99 is {its}."
    return [found, _sentence(p99, names)] if p99.best else [found]


def _sentence(comparison: MetricComparison, names: Sequence[str]) -> str:
    winners = [names[i] for i in sorted(comparison.best)]
    have = "has" if len(winners) == 1 else "have"
    what = f"{comparison.metric.superlative} {comparison.metric.subject}"
    return f"{_joined(winners)} {have} the {what}: {_standing(comparison, names)}."


def _standing(comparison: MetricComparison, names: Sequence[str]) -> str:
    """The best value and its distance from the first run's; the second best value if the first run is best."""
    metric, values = comparison.metric, comparison.values
    won = values[min(comparison.best)]
    if 0 not in comparison.best:
        return f"{written(metric, won)}, {relation(metric, won, values[0], names[0])}"
    others = [value for i, value in enumerate(values) if i not in comparison.best and not math.isnan(value)]
    if not others:
        return written(metric, won)
    behind = metric.better(others)
    return f"{written(metric, won)} (next: {names[values.index(behind)]}, {written(metric, behind)})"


def relation(metric: Metric, value: float, base: float, first: str) -> str:
    """A value relative to `base`, the value of the run `first`: `38% below fcfs's`, `2.3x fcfs's`."""
    side = "above" if value > base else "below"
    if math.isnan(base):
        return f"where {first} has none"
    if written(metric, value) == written(metric, base):
        return f"equal to {first}'s"
    if metric.kind == "share":
        return f"{100 * abs(value - base):.1f} points {side} {first}'s"
    if base == 0 or math.isinf(base) or math.isinf(value):
        return f"against {first}'s {written(metric, base)}"
    ratio = value / base
    if ratio >= 2:
        return f"{_brief(ratio)}x {first}'s"
    if 0 < ratio <= 0.1:
        return f"1/{_brief(1 / ratio)} of {first}'s"
    return f"{_brief(100 * abs(ratio - 1))}% {side} {first}'s"


def _brief(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def _since(runs: Sequence[Summary], names: Sequence[str]) -> list[str]:
    late = [name for name, run in zip(names, runs, strict=True) if latency_origin.held_back(run)]
    return [f"{_joined(late)}: {latency_origin.FROM_SENT}"] if late else []


def _predictors(runs: Sequence[Summary], names: Sequence[str]) -> list[str]:
    using: dict[str, list[str]] = {}
    for name, run in zip(names, runs, strict=True):
        if "predictor" in run:
            using.setdefault(printable(run["predictor"]), []).append(name)
    return [
        f"{_joined(whose)}: predictor {predictor}"
        + (", which sees the true output lengths, as no engine can." if predictor == "exact" else ".")
        for predictor, whose in using.items()
    ]


def _unlike(runs: Sequence[Summary], names: Sequence[str]) -> list[str]:
    counts = [run["requests"]["injected"] for run in runs]
    if len(set(counts)) == 1:
        return []
    listed = ", ".join(f"{name} {count:,}" for name, count in zip(names, counts, strict=True))
    return [f"These runs did not get the same requests ({listed}), so their numbers do not compare policies."]


def _left_out(runs: Sequence[Summary], names: Sequence[str]) -> list[str]:
    concerned: dict[str, list[str]] = {}
    for name, run in zip(names, runs, strict=True):
        requests = run["requests"]
        injected, missing = requests["injected"], requests["injected"] - requests["finished"]
        if missing:
            share = f"{missing:,} of {injected:,} requests ({percent(missing / injected)})"
            ends = what_became({**requests, "finished": 0}, run["rejections"])
            found = (
                f"{share} did not finish: {ends}. Latencies cover only requests that got that far: n = {_sizes(run)}"
            )
            concerned.setdefault(f"{found}; censored: {censored(run, NAMES)}.", []).append(name)
    return [f"{_joined(whose)}: {found}" for found, whose in concerned.items()]


def _complete(runs: Sequence[Summary], names: Sequence[str]) -> list[str]:
    """The sample sizes of the latencies, for runs in which all requests finished."""
    sizes: dict[str, list[str]] = {}
    for name, run in zip(names, runs, strict=True):
        if run["requests"]["finished"] == run["requests"]["injected"]:
            sizes.setdefault(_sizes(run), []).append(name)
    everyone = [list(names)] == list(sizes.values())
    return [
        f"Latencies{'' if everyone else f' of {_joined(whose)}'}: n = {size}; none censored."
        for size, whose in sizes.items()
    ]


def _sizes(run: Summary) -> str:
    """The sample size of each latency; one number if all are equal."""
    named: dict[int, list[str]] = {}
    for key, name in NAMES.items():
        named.setdefault(run[key]["n"], []).append(name)
    if len(named) == 1:
        return f"{next(iter(named)):,}"
    return ", ".join(f"{count:,} ({', '.join(whose)})" for count, whose in named.items())


def _unstable(runs: Sequence[Summary], names: Sequence[str]) -> list[str]:
    growing = [name for name, run in zip(names, runs, strict=True) if run["queue_grows"]]
    return [f"{_joined(growing)}: unstable, {GROWS}"] if growing else []


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
