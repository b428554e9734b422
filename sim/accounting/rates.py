"""Requests per second by two counts: n over the time from the first to the last, or the n - 1 gaps between them.

Of a stationary stream the second is the unbiased one; the first counts one request too many for that time.
"""

from __future__ import annotations

from sim.log.events import Integers
from sim.request import SECOND


def over_span(times: Integers) -> float | None:
    """n requests per second over the time from the first to the last (ns); None if that has no length."""
    span = int(times.max() - times.min()) if len(times) else 0
    return len(times) * SECOND / span if span else None


def by_gaps(times: Integers) -> float | None:
    """The n - 1 gaps between requests, per second of the same time; None if that has no length."""
    rate = over_span(times)
    return None if rate is None else rate * (len(times) - 1) / len(times)


def ratio(part: float, whole: float) -> float | None:
    """part / whole, None when there is no whole."""
    return part / whole if whole else None
