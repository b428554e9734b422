"""Requests to requests: another rate, the first few, a slice of time. Knows nothing of where they come from.

Each takes requests sorted by arrival and returns a new list sorted by arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from sim.request import Nanoseconds, Request
from traces.errors import BadInput, number_within, whole_within
from traces.limits import LATEST


def scale_rate(requests: Sequence[Request], factor: float) -> list[Request]:
    """The same requests at `factor` times the rate: every arrival divided by `factor`.

    The division is exact in integers and rounds to the nearest nanosecond, halves up. A float counts as the
    decimal it prints as: 1.1 is 11/10. Raises BadInput for a factor outside 1e-9 to 1e9, and when an
    arrival would pass 2^62 ns.
    """
    number_within("scale_rate", factor, 1e-9, 1e9)
    up, down = Fraction(str(factor)).as_integer_ratio()
    arrivals = [(2 * request.arrival * down + up) // (2 * up) for request in requests]
    if arrivals and arrivals[-1] > LATEST:
        raise BadInput(f"scale_rate is {factor}; the last arrival would be after {LATEST} ns")
    return [replace(request, arrival=arrival) for request, arrival in zip(requests, arrivals, strict=True)]


def first(requests: Sequence[Request], n: int) -> list[Request]:
    """The first `n` requests, or all of them when there are fewer.

    Raises BadInput unless `n` is a whole number of at least 1, or when there is no request at all.
    """
    whole_within("first", n, least=1)
    return _some(list(requests[:n]), "first", "no request to take")


def between(requests: Sequence[Request], start: Nanoseconds, end: Nanoseconds) -> list[Request]:
    """The requests with start <= arrival < end, their arrivals counted from `start`.

    Raises BadInput unless 0 <= start < end in whole nanoseconds, or when no request arrives in that time.
    """
    whole_within("between.start", start, least=0, most=LATEST)
    whole_within("between.end", end, least=0, most=LATEST)
    if end <= start:
        raise BadInput(f"between.end is {end} ns; expected later than between.start, {start} ns")
    inside = [
        replace(request, arrival=request.arrival - start) for request in requests if start <= request.arrival < end
    ]
    return _some(inside, "between", f"no request arrives from {start} ns to before {end} ns")


def _some(requests: list[Request], name: str, complaint: str) -> list[Request]:
    if not requests:
        raise BadInput(f"{name}: {complaint}")
    return requests
