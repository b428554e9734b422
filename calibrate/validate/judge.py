"""How a prediction of a replay is judged: step by step, as a whole run, and against the difference of two replays.

Three layers, separate because their errors have different causes. *Teacher-forced*: the replay's own steps through
the cost, so that only the cost can be wrong. *Free-running*: a simulation of the same requests, where small errors
change what is in a batch. *Replay against replay*: the noise, below which no difference is significant.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrate.arrays import Floats
from sim.accounting.latencies import describe, request_latencies
from sim.accounting.ledger import decoding
from sim.accounting.requests import RequestRecords
from sim.cost.forms import StepCost
from sim.cost.shape import Shape
from sim.log.events import EventLog

METRICS = ("ttft", "tpot", "e2e")
PARTS = ("mean", "p50", "p99")


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


def teacher_forced(cost: StepCost, log: EventLog) -> dict[str, float]:
    """The errors of a cost on the steps of a log: `n`, `median_abs`, `p90_abs`, and `total`, of their sum."""
    measured = log.step_durations().astype(np.float64)
    predicted = np.array([cost.step(shape) for shape in shapes(log)], np.float64)
    off = np.abs(predicted / measured - 1)
    return {
        "n": len(off),
        "median_abs": float(np.median(off)),
        "p90_abs": float(np.percentile(off, 90)),
        "total": float(predicted.sum() / measured.sum() - 1),
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


@dataclass(frozen=True)
class Judgement:
    """The three layers, and the verdict.

    forced     errors of the replay's steps through the cost
    free       figures of the simulation over the replay's, less 1
    noise      figures of a second replay over the first's, less 1
    unfit      reasons why there is no verdict; empty: there is one
    tolerance  of the error in busy time
    """

    forced: dict[str, float]
    free: dict[str, float]
    noise: dict[str, float]
    unfit: tuple[str, ...]
    tolerance: float

    @property
    def allowed(self) -> float:
        """The largest error in busy time that passes: the tolerance, or twice the noise where that is more."""
        return max(self.tolerance, 2 * abs(self.noise["busy"]))

    @property
    def verdict(self) -> str:
        """`within`, `beyond` or `not measurable here`."""
        if self.unfit:
            return "not measurable here"
        return "within" if abs(self.free["busy"]) <= self.allowed else "beyond"

    def lines(self) -> list[str]:
        """All of it as lines of text; an error below the noise is not called better than the noise."""
        forced, free, noise = self.forced, self.free["busy"], abs(self.noise["busy"])
        said = [
            f"teacher-forced  {forced['n']:,.0f} steps, each off by {forced['median_abs']:.1%} (median), "
            f"{forced['p90_abs']:.1%} (one in ten), {forced['total']:+.1%} in all",
            f"free-running    busy time {free:+.1%}"
            + (f", within the {noise:.1%} by which two replays differ" if abs(free) <= noise else ""),
            f"noise           a second replay differs by {self.noise['busy']:+.1%} in busy time",
        ]
        if self.unfit:
            return [*said, f"verdict         not measurable here: {'; '.join(self.unfit)}"]
        return [*said, f"verdict         {self.verdict} {self.allowed:.1%} of the measured busy time"]

    def told(self) -> dict[str, Any]:
        """All of it as values for JSON."""
        return {
            "verdict": self.verdict,
            "reasons": list(self.unfit),
            "tolerance": self.tolerance,
            "allowed": self.allowed,
            "teacher_forced": self.forced,
            "free_running": self.free,
            "noise": self.noise,
        }
