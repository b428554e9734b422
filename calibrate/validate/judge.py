"""How a prediction of a replay is judged: step by step, as a whole run, and against the differences of replays.

Three layers, separate because their errors have different causes. *Teacher-forced*: the replays' own steps through
the cost, so that only the cost can be wrong; in all, and in groups of steps in which one part of a cost is large.
*Free-running*: a simulation of the same requests, where small errors change what is in a batch, and queues amplify
them. *Replay against replay*: the noise, below which no difference is significant.

Busy time alone shows little: an engine that always has work is busy all the time, whatever its steps cost.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrate.arrays import Floats
from sim.accounting.latencies import describe, request_latencies
from sim.accounting.requests import RequestRecords
from sim.accounting.work.wasted import decoding
from sim.cost.forms import StepCost
from sim.cost.shape import Shape
from sim.log.events import EventLog

METRICS = ("ttft", "tpot", "e2e")
PARTS = ("mean", "p50", "p99")
JUDGED = tuple(f"{metric}_mean" for metric in METRICS)
"""The latencies that are judged; the other figures are only reported."""
OF_LATENCIES = 5 / 3
"""Tolerance of a mean latency over that of busy time: 5% for 3%."""
OF_GROUPS = 2 / 3
"""Tolerance of a group of steps over that of busy time: its noise averages out, and nothing is amplified."""
FEWEST = 40
"""Least steps of a group that is judged: with a noise of 5% its total is known to 0.8%."""


def shapes(log: EventLog) -> list[Shape]:
    """The shape of every step of a log, as a cost takes it."""
    runs, steps = log.run_table(), log.run_table()["steps"]
    within = np.arange(log.steps) - np.repeat(np.cumsum(steps) - steps, steps)
    decodes = np.repeat(runs["decode"], steps)
    tokens = np.repeat(runs["tokens"], steps)
    context = np.repeat(runs["context"], steps) + within * decodes
    filled = log.filled_by_step() if log.steps else tokens
    made = []
    for place in range(log.steps):
        shape = Shape()
        shape.decodes, shape.context, shape.pages = int(tokens[place]), int(context[place]), int(filled[place])
        made.append(shape)
    reached: dict[int, list[tuple[int, int]]] = {}  # of each request: after which step it had how many positions
    for step, index, start, count in log.chunk_table().tolist():
        reached.setdefault(index, []).append((step, start + count))
        shape = made[step]
        shape.decodes -= count
        if count == 1 and start >= log.requests[index].prompt:
            shape.decodes += 1
            shape.context += start
            shape.longest = max(shape.longest, start)
        else:
            shape.add_chunk(start, count)
    still = log.still()
    for index, first, end in log.stint_table().tolist():
        begins = reached[index][bisect_left(reached[index], (first, 0)) - 1][1]
        for begun, stop in decoding(first, end, still):
            for step in range(begun, stop):
                made[step].longest = max(made[step].longest, begins)
                begins += 1
    return made


def groups(made: Sequence[Shape]) -> dict[str, NDArray[np.bool_]]:
    """Which steps are in which group, by their shapes alone: the quarters in which one part of a cost is largest.

    Groups of fewer than `FEWEST` steps are left out.
    """
    columns = ("decodes", "context", "chunks", "chunk_tokens", "double_work")
    decodes, context, chunks, tokens, work = (np.array([getattr(shape, key) for shape in made]) for key in columns)
    pure = chunks == 0
    found = {
        "decodes, little context": quarter(pure, -context),
        "decodes, much context": quarter(pure, context),
        "decodes, many rows": quarter(pure, decodes),
        "chunks, few tokens": quarter(~pure, -tokens),
        "chunks, many tokens": quarter(~pure, tokens),
        "chunks, long prompts": quarter(~pure, work),
    }
    return {name: chosen for name, chosen in found.items() if chosen.sum() >= FEWEST}


def quarter(among: NDArray[np.bool_], value: NDArray[Any]) -> NDArray[np.bool_]:
    """The quarter of the chosen steps in which a value is largest; those equal to the least of them included."""
    return among & (value >= np.quantile(value[among], 0.75)) if among.any() else among


def teacher_forced(cost: StepCost, *logs: EventLog) -> dict[str, Any]:
    """The errors of a cost on the steps of logs: `n`, `median_abs`, `p90_abs`, and `total`, of their sum.

    `groups` has the error of the sum of each group.
    """
    made = [shape for log in logs for shape in shapes(log)]
    measured = np.concatenate([log.step_durations() for log in logs]).astype(np.float64)
    predicted = np.array([cost.step(shape) for shape in made], np.float64)
    off = np.abs(predicted / measured - 1)
    return {
        "n": len(off),
        "median_abs": float(np.median(off)),
        "p90_abs": float(np.percentile(off, 90)),
        "total": float(predicted.sum() / measured.sum() - 1),
        "groups": {
            name: float(predicted[chosen].sum() / measured[chosen].sum() - 1) for name, chosen in groups(made).items()
        },
    }


def figures(log: EventLog) -> dict[str, float]:
    """The figures by which two runs of the same requests are compared, in seconds: busy time, makespan, latencies."""
    records = RequestRecords(log)
    latencies = request_latencies(records)
    ends = records.ended.max(initial=0)
    found = {
        "busy": float(log.step_durations().sum()) / 1e9,
        "steps": float(log.steps),
        "makespan": float(ends) / 1e9,
    }
    for metric in METRICS:
        values: Floats = latencies[f"{metric}_s"]
        described: Mapping[str, Any] = describe(values[np.isfinite(values)])
        found |= {f"{metric}_{part}": float(described[part]) for part in PARTS if described[part] is not None}
    return found


def relative(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, float]:
    """Ours over theirs, less 1, of every figure that both have and theirs is not 0."""
    return {key: ours[key] / value - 1 for key, value in theirs.items() if key in ours and value}


def averaged(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each figure over several runs."""
    return {key: float(np.mean([each[key] for each in several])) for key in several[0]}


def noise_of(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The largest less the smallest of each figure, over their mean, which is not 0."""
    means = averaged(several)
    return {key: float(np.ptp([each[key] for each in several])) / mean for key, mean in means.items() if mean}


@dataclass(frozen=True)
class Judgement:
    """The three layers, and the verdict.

    forced     errors of the replays' steps through the cost (`teacher_forced`)
    free       figures of the simulation over the mean of the replays, less 1
    noise      figures of the replays: largest less smallest, over the mean
    unfit      reasons why there is no verdict; empty: there is one
    tolerance  of the error in busy time; `OF_LATENCIES` and `OF_GROUPS` times that of a mean latency and of a group
    """

    forced: dict[str, Any]
    free: dict[str, float]
    noise: dict[str, float]
    unfit: tuple[str, ...]
    tolerance: float

    @property
    def allowed(self) -> dict[str, float]:
        """The largest error of each figure that passes: its tolerance, or twice the noise where that is more."""
        busy = 2 * self.noise["busy"]
        found = {"busy": max(self.tolerance, busy), "group": max(OF_GROUPS * self.tolerance, busy)}
        for key in JUDGED:
            if key in self.free:
                found[key] = max(OF_LATENCIES * self.tolerance, 2 * self.noise.get(key, 0.0))
        return found

    @property
    def exceeded(self) -> list[str]:
        """Each error that is larger than allowed, in words."""
        allowed = self.allowed
        judged = {"forced, all steps": (self.forced["total"], allowed["busy"])}
        judged |= {f"forced, {name}": (error, allowed["group"]) for name, error in self.forced["groups"].items()}
        judged |= {
            key.replace("_", " "): (self.free[key], allowed[key]) for key in ("busy", *JUDGED) if key in self.free
        }
        return [
            f"{what} {error:+.1%} (allowed {most:.1%})" for what, (error, most) in judged.items() if abs(error) > most
        ]

    @property
    def verdict(self) -> str:
        """`within`, `beyond` or `not measurable here`."""
        if self.unfit:
            return "not measurable here"
        return "beyond" if self.exceeded else "within"

    def lines(self) -> list[str]:
        """All of it as lines of text; an error below the noise is not called better than the noise."""
        forced, free, noise = self.forced, self.free["busy"], self.noise["busy"]
        worst = max(forced["groups"].items(), key=lambda item: abs(item[1]), default=None)
        said = [
            f"teacher-forced  {forced['n']:,.0f} steps, each off by {forced['median_abs']:.1%} (median), "
            f"{forced['p90_abs']:.1%} (one in ten), {forced['total']:+.1%} in all"
            + (f"; the worst group, {worst[0]}: {worst[1]:+.1%}" if worst else ""),
            f"free-running    busy time {free:+.1%}"
            + (f", within the {noise:.1%} by which replays differ" if abs(free) <= noise else ""),
            f"noise           replays differ by {noise:.1%} in busy time",
        ]
        if self.unfit:
            return [*said, f"verdict         not measurable here: {'; '.join(self.unfit)}"]
        if self.exceeded:
            return [*said, f"verdict         beyond: {'; '.join(self.exceeded)}"]
        allowed = ", ".join(f"{most:.1%} of {key.replace('_', ' ')}" for key, most in self.allowed.items())
        return [*said, f"verdict         within {allowed}"]

    def told(self) -> dict[str, Any]:
        """All of it as values for JSON."""
        return {
            "verdict": self.verdict,
            "exceeded": self.exceeded,
            "reasons": list(self.unfit),
            "tolerance": self.tolerance,
            "allowed": self.allowed,
            "teacher_forced": self.forced,
            "free_running": self.free,
            "noise": self.noise,
        }
