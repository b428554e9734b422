"""Requests per second, by either count: n over the time from the first to the last, or the n - 1 gaps between them.

Of a stationary stream the second is the rate; the first counts one request more than the time between them holds.
"""

from __future__ import annotations

from sim.log.events import Integers
from sim.request import SECOND


def over_span(times: Integers) -> float | None:
    """n requests over the time from the first to the last; None without any time between them."""
    span = int(times.max() - times.min()) if len(times) else 0
    return len(times) * SECOND / span if span else None


def by_gaps(times: Integers) -> float | None:
    """The n - 1 gaps between requests over the same time."""
    rate = over_span(times)
    return None if rate is None else rate * (len(times) - 1) / len(times)
