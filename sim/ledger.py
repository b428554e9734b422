"""Where every slot-step, every slot-second and every page went: exact sums over the log.

slots x steps = the sum of the rows, in every mode; the same rows in time, where bought = slots x makespan
and `idle` is the time in which no step ran. Page positions are live + tail + reserved + cached + free.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from sim.events import EventLog, Integers, Kind, Reason
from sim.lives import CANCELLED, TIMED_OUT, Lives
from sim.request import Request

ROWS = (
    "decode",
    "prefill",
    "recomputed",
    "wasted",
    "held",
    "no_demand",
    "no_memory",
    "no_budget",
    "blocked",
    "limited",
)
USEFUL = ("decode", "prefill")
EMPTY_ROW = {
    Reason.NO_BUDGET: "no_budget",
    Reason.NO_MEMORY: "no_memory",
    Reason.BLOCKED: "blocked",
    Reason.LIMITED: "limited",
}

Work = tuple[int, int, int | None, int]
"""(first step, end, positions computed before, positions computed): a chunk, or a stint (before: None)."""


def makespan(log: EventLog, lives: Lives) -> int:
    """Nanoseconds from the first queue entry to the last end, be it a request's or a step's."""
    entries = lives.queued[lives.queued >= 0]
    if not len(entries):
        return 0
    last_step = int(lives.step_ends[-1]) if log.steps else 0
    return max(last_step, int(lives.ended[lives.queued >= 0].max())) - int(entries.min())


def waiting_by_step(log: EventLog, lives: Lives) -> Integers:
    """How many still waited once each step had been planned: those its plan left, and who came since.

    A step is planned when it starts, or at depth 2 when the one before it does, but never before its batch.
    """
    runs = log.run_table()
    steps = runs["steps"]
    starts = lives.step_ends - log.step_durations()
    if log.depth > 1:
        starts = np.concatenate(([0], starts[:-1]))
    planned = np.maximum(starts, np.repeat(runs["planned"], steps))
    change = np.zeros(len(Kind), np.int64)
    change[Kind.QUEUED], change[Kind.DEQUEUED] = 1, -1
    came = np.concatenate(([0], np.cumsum(change[lives.kind])))
    before = came[np.searchsorted(lives.time, runs["planned"], side="right")]
    present: Integers = came[np.searchsorted(lives.time, planned, side="right")]
    return present + np.repeat(runs["waiting"] - before, steps)


def slot_rows(log: EventLog, lives: Lives) -> tuple[dict[str, int], dict[str, int]]:
    """(slot-steps, slot-nanoseconds) by row of the ledger, `bought` first; the second also has `idle`."""
    span = makespan(log, lives)
    steps = {"bought": log.slots * log.steps} | dict.fromkeys(ROWS, 0)
    time = {"bought": log.slots * span} | dict.fromkeys(ROWS, 0)
    durations = log.step_durations()
    time["idle"] = log.slots * (span - int(durations.sum()))
    if not log.steps:
        return steps, time
    runs = log.run_table()
    first = np.cumsum(runs["steps"]) - runs["steps"]
    lasted = np.add.reduceat(durations, first)
    empty = np.full(len(first), log.slots)
    for row in ("decode", "prefill", "recomputed", "held", "no_budget"):
        steps[row] += int(runs[row] @ runs["steps"])
        time[row] += int(runs[row] @ lasted)
        empty -= runs[row]
    wanted = np.minimum(np.repeat(empty, runs["steps"]), waiting_by_step(log, lives))
    wanted_steps = np.add.reduceat(wanted, first)
    wanted_time = np.add.reduceat(wanted * durations, first)
    for reason, row in EMPTY_ROW.items():
        here = runs["reason"] == reason
        steps[row] += int(wanted_steps[here].sum())
        time[row] += int(wanted_time[here].sum())
    steps["no_demand"] = int(empty @ runs["steps"]) - int(wanted_steps.sum())
    time["no_demand"] = int(empty @ lasted) - int(wanted_time.sum())
    elapsed = np.concatenate(([0], np.cumsum(durations)))
    for row, first_step, end in vain_stretches(log, lives):
        steps[row] -= end - first_step
        steps["wasted"] += end - first_step
        time[row] -= int(elapsed[end] - elapsed[first_step])
        time["wasted"] += int(elapsed[end] - elapsed[first_step])
    return steps, time


def vain_stretches(log: EventLog, lives: Lives) -> Iterator[tuple[str, int, int]]:
    """(row, first step, end) of all that was booked for requests that were cancelled or timed out."""
    over = lives.values(Kind.RELEASED, 0)
    in_vain = np.flatnonzero(np.isin(lives.status, (CANCELLED, TIMED_OUT)))
    if not len(in_vain):
        return
    stays, stints, chunks = (
        rows_of(table, column, in_vain)
        for table, column in ((log.stay_table(), 0), (log.stint_table(), 0), (log.chunk_table(), 1))
    )
    for index in in_vain.tolist():
        worked: list[Work] = [(first, end, None, end - first) for _, first, end in stints.get(index, [])]
        worked += [(step, step + 1, start, tokens) for step, _, start, tokens in chunks.get(index, [])]
        worked.sort(key=itemgetter(0))
        yield from stretches(log.requests[index], stays.get(index, []), worked, bool(over[index]))


def rows_of(table: Integers, column: int, chosen: Integers) -> dict[int, list[list[int]]]:
    """The rows of some requests, by request."""
    rows: dict[int, list[list[int]]] = {}
    for row in table[np.isin(table[:, column], chosen)].tolist():
        rows.setdefault(row[column], []).append(row)
    return rows


def stretches(
    request: Request, stays: list[list[int]], worked: list[Work], over: bool
) -> Iterator[tuple[str, int, int]]:
    """The rows in which one request was booked: by what it computed, in order, and `held` or `no_budget` between."""
    computed = peak = 0
    for _, entered, left in stays:
        at = entered
        for first, end, start, tokens in worked:
            if not entered <= first < left:
                continue
            if at < first:
                yield "no_budget", at, first
            if start is None:
                row = "decode"
                computed += tokens
            elif request.cancel_tokens and start >= request.prompt + request.cancel_tokens - 1:
                row = "held"
            else:
                row = "recomputed" if start < peak else "prefill" if start < request.prompt else "decode"
                computed = start + tokens
            peak = max(peak, computed)
            yield row, first, end
            at = end
        if at < left:
            yield ("held" if over and left == stays[-1][2] else "no_budget"), at, left


@dataclass(frozen=True)
class Pages:
    """Time-weighted use of the page pool over the makespan; position means add up to pages x page_size."""

    total: int
    mean_used: float
    peak_used: int
    mean_live_fraction: float | None
    positions: dict[str, float]


def pages(log: EventLog, lives: Lives) -> Pages:
    """Where the pages went: live tokens, unfilled tails, reserved pages without a token, free ones."""
    span, size = makespan(log, lives), log.page_size
    if not log.steps:
        free = {"live": 0.0, "tail": 0.0, "reserved": 0.0, "cached": 0.0, "free": float(log.pages * size)}
        return Pages(log.pages, 0.0, 0, None, free)
    runs, durations = log.run_table(), log.step_durations()
    first = np.cumsum(runs["steps"]) - runs["steps"]
    within = np.arange(log.steps) - np.repeat(first, runs["steps"])
    live = np.repeat(runs["live"], runs["steps"]) + within * np.repeat(runs["tokens"], runs["steps"])
    filled, held, cached = log.filled_by_step(), log.held_by_step(), log.cached_by_step()
    weights = durations / span

    def mean(per_step: Integers) -> float:
        return float(np.sum(per_step * weights))

    positions = {
        "live": mean(live),
        "tail": mean(filled * size - live),
        "reserved": mean((held - filled) * size),
        "cached": mean(cached * size),
        "free": mean((log.pages - held - cached) * size) + log.pages * size * (1.0 - float(weights.sum())),
    }
    return Pages(log.pages, mean(held), int(held.max()), mean(live) / (mean(held) * size), positions)
