"""From what replicas bear to a decision: GPUs for each growth, what they cost, the cheapest, and the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil, log
from typing import Any

from slotstep.planning.prices import HOURS, Prices
from slotstep.planning.slices import Slice

Row = dict[str, Any]
EPSILON = 1e-9


def needs(row: Mapping[str, Any], where: Slice, growth: float) -> dict[str, Any]:
    """Replicas and GPUs of a row at so many times today's traffic, as predicted and at the slow end of its cost.

    None where a replica bears nothing; `sure_...` None too where the cost has no interval.
    """
    rate = growth * where.rate
    slow = row["slow_end"]
    sure = None if slow["unknown"] is not None else replicas(rate, slow["at"])
    found = replicas(rate, row["at"])
    each = row["tensor_parallel"]
    return {
        "growth": growth,
        "rate": rate,
        "replicas": found,
        "gpus": None if found is None else found * each,
        "sure_replicas": sure,
        "sure_gpus": None if sure is None else sure * each,
        "headroom": None if found is None else found * row["at"] / rate,
    }


def replicas(rate: float, at: float | None) -> int | None:
    """The replicas that bear a rate, of which each bears `at`; None if it bears nothing."""
    return None if not at else max(ceil(rate / at - EPSILON), 1)


def costs(need: Row, row: Mapping[str, Any], prices: Prices, tokens: Mapping[str, float]) -> dict[str, Any]:
    """A month of the GPUs of a row, predicted and at the slow end, and per million tokens of each kind.

    tokens  prompt and output tokens of a second of today's traffic, on average over the log

    The month is divided among tokens by `token_shares`. An input token is computed and held; a cached one only held.
    """
    month = None if need["gpus"] is None else prices.month(row["gpu"], need["gpus"])
    found: dict[str, Any] = {
        "month": month,
        "sure_month": None if need["sure_gpus"] is None else prices.month(row["gpu"], need["sure_gpus"]),
        "per_million": None,
    }
    if month is not None:
        seconds, shares = HOURS * 3600 * need["growth"], row["token_shares"]
        prompt, output = (tokens[name] * seconds / 1e6 for name in ("prompt", "output"))
        held = month * shares["held"] / prompt
        found["per_million"] = {
            "input": month * shares["computed"] / prompt + held,
            "cached": held,
            "output": month * shares["output"] / output,
        }
    return found


def latencies(row: Mapping[str, Any], rate: float) -> list[float | None]:
    """The value of each objective at a rate of one replica, between the points that were simulated.

    Logarithms are interpolated linearly in the rate; below the lowest point its value is taken. None without a value.
    """
    points = [point for point in row["curve"] if point["met"] is not False]
    found: list[float | None] = []
    for place in range(len(points[0]["objectives"]) if points else 0):
        known = [(p["at"], v) for p in points if (v := p["objectives"][place]["value"]) is not None and v > 0]
        found.append(between(known, rate) if known else None)
    return found


def between(known: Sequence[tuple[float, float]], at: float) -> float:
    """The value at a place by the two beside it, linear in the logarithm; those at the ends beyond them."""
    if at <= known[0][0]:
        return known[0][1]
    for (a, low), (b, high) in pairwise(known):
        if at <= b:
            part = (at - a) / (b - a)
            return float(low * (high / low) ** part) if log(high / low) else low
    return known[-1][1]


def cheapest(rows: Sequence[Row], place: int, priced: bool, sure: bool = False) -> list[int]:
    """The rows to choose from for the growth at `place`: the cheapest; without prices the fewest GPUs of each kind.

    sure  at the slow end of the step costs' intervals
    """
    gpus, month = ("sure_gpus", "sure_month") if sure else ("gpus", "month")
    open_ = [n for n, row in enumerate(rows) if row["needs"] and row["needs"][place][gpus] is not None]
    if priced:
        with_price = [n for n in open_ if rows[n]["needs"][place][month] is not None]
        return sorted(with_price, key=lambda n: (rows[n]["needs"][place][month], n))[:1]
    found: dict[str, int] = {}
    for n in open_:
        best = found.get(rows[n]["gpu"])
        if best is None or rows[n]["needs"][place][gpus] < rows[best]["needs"][place][gpus]:
            found[rows[n]["gpu"]] = n
    return list(found.values())


def front(rows: Sequence[Row], place: int, priced: bool) -> list[int]:
    """The rows that no other beats in each latency and in cost; without prices in GPUs, of the same kind only."""

    def beaten(mine: Row, other: Row) -> bool:
        if not priced and mine["gpu"] != other["gpu"]:
            return False
        pairs = list(zip(values(other), values(mine), strict=True))
        return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)

    def values(row: Row) -> list[float]:
        need = row["needs"][place]
        cost = need["month"] if priced else need["gpus"]
        return [cost, *(float("inf") if value is None else value for value in need["latencies"])]

    open_ = [
        n
        for n, row in enumerate(rows)
        if row["needs"]
        and row["needs"][place]["gpus"] is not None
        and (not priced or row["needs"][place]["month"] is not None)
    ]
    return [n for n in open_ if not any(beaten(rows[n], rows[m]) for m in open_ if m != n)]
