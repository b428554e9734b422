"""Quantities over time as time-weighted means over equal intervals, exact, without sampling.

A quantity is given by spans [start, end) with a value; where spans overlap their values add up, elsewhere it is 0.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reports import ledger_rows
from reports.page.report import Run

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

AT_WORK = ("decode", "prefill", "recomputed", "held", "no_budget")
EMPTY = ("no_budget", "no_memory", "blocked", "limited")


def means(start: Whole, end: Whole, value: Floats | Whole, edges: Whole) -> Floats:
    """The time-weighted mean of a quantity in each interval between consecutive edges.

    `start`, `end` and `value` describe its spans (ns); the result has one element less than `edges` (ns, ascending).
    """
    times = np.concatenate([start, end])
    change = np.concatenate([value, -value]).astype(np.float64)
    order = np.argsort(times, kind="stable")
    times, level = times[order], np.cumsum(change[order])
    if not len(times):
        return np.zeros(len(edges) - 1)
    area = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])
    inside = np.searchsorted(times, edges, side="right") - 1
    known = np.maximum(inside, 0)
    reached = np.where(inside < 0, 0.0, area[known] + level[known] * (edges - times[known]))
    lengths = np.diff(edges)
    return np.diff(reached) / np.where(lengths > 0, lengths, 1)


def edges(run: Run, count: int) -> Whole:
    """Edges (ns) of `count` equal intervals from the run's begin to its end; fewer if it lasts fewer nanoseconds."""
    begin, end = run.begin, max(run.end, run.begin + 1)
    return np.unique(np.linspace(begin, end, count + 1).round().astype(np.int64))


def of_steps(run: Run, value: Floats | Whole, over: Whole) -> Floats:
    """The mean of a per-step value in each interval; it counts as 0 while no step runs."""
    start = run.steps["start_ns"].to_numpy(np.int64)
    return means(start, start + run.steps["duration_ns"].to_numpy(np.int64), value, over)


def queue(run: Run, over: Whole) -> Floats:
    """The mean number of requests waiting for their first admission in each interval."""
    requests = run.requests[run.requests["queued_ns"].notna()]
    start = requests["queued_ns"].to_numpy(np.int64)
    end = requests["admitted_ns"].fillna(requests["ended_ns"]).fillna(run.end).to_numpy(np.int64)
    return means(start, end, np.ones(len(start)), over)


def step_rows(run: Run) -> pd.DataFrame:
    """The number of slots in each row of the ledger, per step: a column per row, a row per step.

    There are no columns `wasted` and `idle`: work for requests that were cancelled later is in `decode` or `prefill`.
    The columns of a step add up to the slots of its engine.
    """
    steps = run.steps
    found = pd.DataFrame({row: steps[row].to_numpy(np.int64) for row in AT_WORK})
    engine = steps["replica"].to_numpy(np.int64) if "replica" in steps else np.zeros(len(steps), np.int64)
    empty = np.array(run.engine_slots, np.int64)[engine] - found.sum(axis=1)
    wanted = np.minimum(empty, steps["waiting"].to_numpy(np.int64))
    reason = steps["reason"].to_numpy()
    for row in EMPTY:
        here = np.where(reason == row, wanted, 0)
        found[row] = found[row] + here if row in found else here
    known = np.isin(reason, EMPTY)
    found["no_demand"] = empty - np.where(known, wanted, 0)
    return found


def ledger(run: Run, over: Whole) -> Mapping[str, Floats]:
    """The share of the slots in each row of the ledger, per interval; `idle` is what remains."""
    found = step_rows(run)
    shares = {row: of_steps(run, found[row].to_numpy(), over) / max(run.slots, 1) for row in found}
    shares["idle"] = np.maximum(0.0, 1.0 - np.sum(list(shares.values()), axis=0))
    return {row.key: shares[row.key] for row in ledger_rows.ROWS if row.key in shares}
