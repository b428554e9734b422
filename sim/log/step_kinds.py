"""How long an engine ran steps of each kind: prefill, decode, or both at once; a pure function of its log."""

from __future__ import annotations

import numpy as np

from sim.log.events import EventLog, Integers

KINDS = ("prefill", "decode", "mixed")


def kinds_by_step(log: EventLog) -> Integers:
    """The kind of each step as its place in KINDS: int64 of shape (steps,).

    A step that computes parts of prompts, or what a preemption threw away, is a prefill; with decodes beside, mixed.
    """
    runs = log.run_table()
    computes = runs["prefill"] + runs["recomputed"] > 0
    kind = np.where(computes, np.where(runs["decode"] > 0, 2, 0), 1)
    return np.repeat(kind, runs["steps"])


def time_by_kind(logs: list[EventLog]) -> dict[str, int]:
    """Nanoseconds in steps of each kind, over all replicas."""
    kinds = np.concatenate([kinds_by_step(log) for log in logs])
    durations = np.concatenate([log.step_durations() for log in logs])
    return {kind: int(durations[kinds == place].sum()) for place, kind in enumerate(KINDS)}
