"""The ledger: how every slot-step, slot-nanosecond and page was used, as exact sums over the log.

slots x steps is the sum of the rows, in every mode; the same rows in time, where bought = slots x makespan and `idle`
is the time in which no step ran. Page positions are live + tail + reserved + cached + free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.accounting.requests import Bools, RequestRecords
from sim.accounting.work.plan_times import planned_by_step
from sim.accounting.work.wasted import wasted_stretches
from sim.log.events import Integers, Kind, Reason

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


def begins(fleet: Sequence[RequestRecords]) -> int:
    """The first queue entry over all replicas, ns; 0 if there is none."""
    return min(
        (int(records.queued[records.queued >= 0].min()) for records in fleet if (records.queued >= 0).any()),
        default=0,
    )


def makespan(fleet: Sequence[RequestRecords]) -> int:
    """Nanoseconds from the first queue entry to the last end, be it a request's or a step's, over all replicas."""
    entered = [records for records in fleet if (records.queued >= 0).any()]
    if not entered:
        return 0
    last = max(int(records.ended[records.queued >= 0].max()) for records in entered)
    return max(last, *(int(records.step_ends[-1]) for records in entered if len(records.step_ends))) - begins(fleet)


def waiting_by_step(records: RequestRecords) -> Integers:
    """How many sequences waited once each step had been planned, int64 of shape (steps,).

    Those that its plan left, and those that arrived since.
    """
    runs = records.log.run_table()
    change = np.zeros(len(Kind), np.int64)
    change[Kind.QUEUED], change[Kind.DEQUEUED] = 1, -1
    came = np.concatenate(([0], np.cumsum(change[records.kind])))
    before = came[np.searchsorted(records.time, runs["planned"], side="right")]
    present: Integers = came[np.searchsorted(records.time, planned_by_step(records), side="right")]
    return present + np.repeat(runs["waiting"] - before, runs["steps"])


def slot_rows(
    records: RequestRecords, span: int, wasted: Bools | None = None, down: int | None = None
) -> tuple[dict[str, int], dict[str, int]]:
    """(slot-steps, slot-nanoseconds over `span`) by row of the ledger, `bought` first; the second also has `idle`.

    span     ns of the run
    wasted  bools of shape (requests,): the entries of the log whose work was wasted; None: as the log says
    down     ns for which the engine had failed, a row of its own; None: engines do not fail in this run
    """
    log = records.log
    steps = {"bought": log.slots * log.steps} | dict.fromkeys(ROWS, 0)
    time = {"bought": log.slots * span} | dict.fromkeys(ROWS, 0)
    durations = log.step_durations()
    time["idle"] = log.slots * (span - int(durations.sum()) - (down or 0))
    if down is not None:
        time["down"] = log.slots * down
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
    wanted = np.minimum(np.repeat(empty, runs["steps"]), waiting_by_step(records))
    wanted_steps = np.add.reduceat(wanted, first)
    wanted_time = np.add.reduceat(wanted * durations, first)
    for reason, row in EMPTY_ROW.items():
        here = runs["reason"] == reason
        steps[row] += int(wanted_steps[here].sum())
        time[row] += int(wanted_time[here].sum())
    steps["no_demand"] = int(empty @ runs["steps"]) - int(wanted_steps.sum())
    time["no_demand"] = int(empty @ lasted) - int(wanted_time.sum())
    elapsed = np.concatenate(([0], np.cumsum(durations)))
    for row, first_step, end in wasted_stretches(records, records.wasted if wasted is None else wasted):
        steps[row] -= end - first_step
        steps["wasted"] += end - first_step
        time[row] -= int(elapsed[end] - elapsed[first_step])
        time["wasted"] += int(elapsed[end] - elapsed[first_step])
    return steps, time


@dataclass(frozen=True)
class Pages:
    """Time-weighted use of the page pool over the makespan.

    total      pages
    mean_used  pages held, mean over time
    peak_used  most pages held at one instant
    positions  mean positions live, tail, reserved, cached and free; they add up to pages x page_size
    """

    total: int
    mean_used: float
    peak_used: int
    positions: dict[str, float]

    @property
    def mean_live_fraction(self) -> float | None:
        """Live positions over those in pages held, both over time; None if none were held."""
        held = sum(self.positions[kind] for kind in ("live", "tail", "reserved"))
        return self.positions["live"] / held if held else None


def pages(records: RequestRecords, start: int, span: int) -> Pages:
    """The use of the pages of one replica from `start` on, for `span` ns."""
    log = records.log
    size = log.page_size
    resting = cached_at_rest(records, start, start + span) / span if span else 0.0
    if not log.steps:
        free = (log.pages - resting) * size
        return Pages(
            log.pages, 0.0, 0, {"live": 0.0, "tail": 0.0, "reserved": 0.0, "cached": resting * size, "free": free}
        )
    runs, durations = log.run_table(), log.step_durations()
    first = np.cumsum(runs["steps"]) - runs["steps"]
    within = np.arange(log.steps) - np.repeat(first, runs["steps"])
    live = np.repeat(runs["live"], runs["steps"]) + within * np.repeat(runs["tokens"], runs["steps"])
    filled, held, cached = log.filled_by_step(), log.held_by_step(), log.cached_by_step()
    weights = durations / span

    def mean(per_step: Integers) -> float:
        return float(np.sum(per_step * weights))

    idle = 1.0 - float(weights.sum())
    positions = {
        "live": mean(live),
        "tail": mean(filled * size - live),
        "reserved": mean((held - filled) * size),
        "cached": mean(cached * size) + resting * size,
        "free": mean((log.pages - held - cached) * size) + (log.pages * idle - resting) * size,
    }
    return Pages(log.pages, mean(held), int(held.max()), positions)


def fleet_pages(fleet: Sequence[RequestRecords], start: int, span: int) -> Pages:
    """The use of the pages of all replicas together from `start` on, for `span` ns."""
    each = [pages(records, start, span) for records in fleet]
    positions = {kind: sum(use.positions[kind] for use in each) for kind in each[0].positions}
    peak = each[0].peak_used if len(each) == 1 else peak_pages(fleet)
    return Pages(sum(use.total for use in each), sum(use.mean_used for use in each), peak, positions)


def peak_pages(fleet: Sequence[RequestRecords]) -> int:
    """The most pages that all replicas together held at one instant."""
    times, changes = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    for records in fleet:
        if records.log.steps:
            held = records.log.held_by_step()
            times += [records.step_ends - records.log.step_durations(), records.step_ends]
            changes += [held, -held]
    instants, place = np.unique(np.concatenate(times), return_inverse=True)
    net = np.zeros(len(instants), np.int64)
    np.add.at(net, place, np.concatenate(changes))
    return int(np.cumsum(net).max())


def cached_at_rest(records: RequestRecords, start: int, end: int) -> float:
    """Page-nanoseconds in the prefix cache while no step ran: before the first, between them, after the last."""
    log = records.log
    if log.cache is None:
        return 0.0
    rests = log.rest_table()
    times = np.concatenate(([start], rests[:, 0]))
    cached = np.concatenate(([log.cache.warm_pages], rests[:, 1])).astype(float)
    before = np.concatenate(([0.0], np.cumsum(cached[:-1] * np.diff(times))))

    def until(instants: Integers) -> NDArray[np.float64]:
        latest = np.searchsorted(times, instants, side="right") - 1
        area: NDArray[np.float64] = before[latest] + cached[latest] * (instants - times[latest])
        return area

    idle_from = np.concatenate(([start], records.step_ends))
    idle_to = np.concatenate((records.step_ends - log.step_durations(), [end]))
    return float(np.sum(until(idle_to) - until(idle_from)))
