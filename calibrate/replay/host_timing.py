"""Host time of a replay: how late arrivals were processed, and the host's work in each step.

A request is late by the time from its due instant until it is submitted. While a step runs no request is submitted,
so it is late by the rest of that step; with relative pacing lateness would grow from request to request.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from sim.log.events import Integers
from sim.request import Nanoseconds


class HostTiming:
    """One entry per request (`lateness`), per wait (`oversleep`) and per step (the others); nanoseconds.

    planning     the scheduler's plan
    launching    the executor's launch, until it returned
    committing   the commit, with the arrivals and ends processed before it
    """

    def __init__(self) -> None:
        self.lateness = array("q")
        self.oversleep = array("q")
        self.planning = array("q")
        self.launching = array("q")
        self.committing = array("q")

    def received(self, late: Nanoseconds) -> None:
        """Record a request that was submitted this long after it was due."""
        self.lateness.append(late)

    def woke(self, late: Nanoseconds) -> None:
        """Record a wait that ended this long after its instant."""
        self.oversleep.append(late)

    def planned(self, planning: Nanoseconds, launching: Nanoseconds) -> None:
        """Record the planning and the launch of a batch."""
        self.planning.append(planning)
        self.launching.append(launching)

    def committed(self, spent: Nanoseconds) -> None:
        """Record the commit of a step."""
        self.committing.append(spent)

    def summary(self) -> dict[str, Any]:
        """Seconds: lateness of arrivals and its trend, oversleep, host time per step by part and in all.

        `lateness_per_request_s` is the slope of lateness over the number of the request, least squares.
        """
        booked = np.frombuffer(self.planning, np.int64) + np.frombuffer(self.committing, np.int64)
        return {
            "lateness_s": spread(np.frombuffer(self.lateness, np.int64)),
            "lateness_per_request_s": slope(np.frombuffer(self.lateness, np.int64)),
            "oversleep_s": spread(np.frombuffer(self.oversleep, np.int64)),
            "scheduling_and_bookkeeping_s": spread(booked),
            "planning_s": spread(np.frombuffer(self.planning, np.int64)),
            "committing_s": spread(np.frombuffer(self.committing, np.int64)),
            "launching_s": spread(np.frombuffer(self.launching, np.int64)),
        }


def spread(nanoseconds: Integers) -> dict[str, float | None]:
    """n, mean, p50, p99 and max in seconds; None without samples."""
    if not len(nanoseconds):
        return {"n": 0, "mean": None, "p50": None, "p99": None, "max": None}
    p50, p99 = (float(np.percentile(nanoseconds, q)) / 1e9 for q in (50, 99))
    return {
        "n": len(nanoseconds),
        "mean": float(nanoseconds.mean()) / 1e9,
        "p50": p50,
        "p99": p99,
        "max": int(nanoseconds.max()) / 1e9,
    }


def slope(nanoseconds: Integers) -> float | None:
    """Seconds by which each value exceeds the one before, least squares; None for fewer than two."""
    if len(nanoseconds) < 2:
        return None
    return float(np.polynomial.Polynomial.fit(np.arange(len(nanoseconds)), nanoseconds, 1).convert().coef[-1]) / 1e9
