"""Latencies of requests in seconds, and their statistics: pure functions of the request records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.accounting.client_view import Injected
from sim.accounting.requests import FINISHED, NEVER, Bools, RequestRecords
from sim.log.events import Integers
from sim.request import SECOND

Floats = NDArray[np.float64]

PERCENTILES = (50, 90, 95, 99)
LATENCIES = ("wait_s", "ttft_s", "tpot_s", "itl_s", "e2e_s", "client_ttft_s", "client_e2e_s")

Statistics = dict[str, float | int | None]


def describe(values: Floats, weights: Integers | None = None) -> Statistics:
    """{n, mean, p50, p90, p95, p99, max} of the values that are not NaN, each counted `weights` times.

    Percentiles interpolate linearly between order statistics. Without samples: n is 0, the rest None.
    """
    keep = ~np.isnan(values)
    values = values[keep]
    if weights is None:
        return statistics(np.sort(values), None)
    counts = weights[keep]
    order = stable_order(values)
    return statistics(values[order], counts[order])


def stable_order(values: Floats) -> Integers:
    """`argsort(values, kind="stable")`, several times faster: two sorts of 64-bit numbers, the second for ties."""
    order = np.argsort(values)
    ordered = values[order]
    ties = np.cumsum(np.append(False, ordered[1:] != ordered[:-1])[: len(values)])
    bits = len(values).bit_length()
    return np.sort(ties << bits | order) & (1 << bits) - 1


def statistics(values: Floats, counts: Integers | None) -> Statistics:
    """`describe` of sorted values, each counted so often, by default once."""
    reach = None if counts is None else np.cumsum(counts)
    total = len(values) if reach is None else int(reach[-1]) if len(reach) else 0
    if not total:
        return {"n": 0} | dict.fromkeys(("mean", *(f"p{p}" for p in PERCENTILES), "max"))
    spots = np.array(PERCENTILES) / 100 * (total - 1)
    below = np.floor(spots).astype(np.int64)
    above = np.minimum(below + 1, total - 1)
    if counts is None or reach is None:
        mean, largest = float(np.sum(values)) / total, float(values[-1])
    else:
        mean = float(np.sum(values * counts)) / total
        largest = float(values[np.flatnonzero(counts)[-1]])
        below, above = np.searchsorted(reach, below, side="right"), np.searchsorted(reach, above, side="right")
    found = values[below] + (values[above] - values[below]) * (spots - np.floor(spots))
    quantiles = {f"p{p}": float(value) for p, value in zip(PERCENTILES, found, strict=True)}
    return {"n": total, "mean": mean, **quantiles, "max": largest}


def seconds(nanoseconds: Integers) -> Floats:
    """Nanoseconds as seconds, NaN where there are none."""
    result: Floats = np.where(nanoseconds < 0, np.nan, nanoseconds / SECOND)
    return result


def between(start: Integers, end: Integers) -> Integers:
    """The time from start to end, NEVER where either is missing."""
    return np.where((start < 0) | (end < 0), NEVER, end - start)


def request_latencies(records: RequestRecords | Injected) -> dict[str, Floats]:
    """Latencies in seconds: float64 arrays of shape (requests,), NaN where undefined.

    wait, TTFT and E2E count from when the request was sent; those that begin with `client`, from when its client
    wanted to send it.
    """
    decode_time = between(records.first_token, records.finished)
    several = records.tokens > 1
    tpot = np.where(several, seconds(decode_time) / np.maximum(records.tokens - 1, 1), np.nan)
    return {
        "wait_s": seconds(between(records.queued, records.admitted)),
        "ttft_s": seconds(between(records.queued, records.first_token)),
        "tpot_s": tpot,
        "e2e_s": seconds(between(records.queued, records.finished)),
        "max_itl_s": seconds(records.largest_gap),
        "client_admission_s": seconds(between(records.wanted, records.admitted)),
        "client_ttft_s": seconds(between(records.wanted, records.first_token)),
        "client_e2e_s": seconds(between(records.wanted, records.finished)),
    }


def with_censored(described: Statistics, has_none: Bools) -> Statistics:
    """Statistics with the share of the requests that have no such latency because of how they ended."""
    share = float(has_none.mean()) if len(has_none) else 0.0
    return {"n": described["n"], "censored_share": share} | described


def censored(values: Floats, status: Integers) -> Bools:
    """Which requests have no such latency because they did not finish: rejected, aborted, or cut off."""
    found: Bools = (status != FINISHED) & np.isnan(values)
    return found


def gap_statistics(injected: Injected, chosen: Bools) -> Statistics:
    """Statistics of the gaps between consecutive tokens in seconds, pooled over the chosen requests."""
    return describe(*pooled_gaps(injected, chosen))


def pooled_gaps(injected: Injected, chosen: Bools | None = None) -> tuple[Floats, Integers]:
    """Gaps between consecutive tokens: (seconds, how many of each), of all requests or of the chosen.

    chosen  bools of shape (requests,), in the order of `injected`; None: all
    """
    if chosen is None:
        chosen = np.ones(len(injected.status), bool)
    between_legs = injected.pauses_between_legs(chosen)
    values, weights = [between_legs], [np.ones(len(between_legs), np.int64)]
    for records, mine in zip(injected.fleet, injected.entries(chosen), strict=True):
        request, pauses = records.pauses
        pauses = pauses[mine[request]]
        values += [records.token_distances, pauses]
        weights += [records.decoders_by_step(mine), np.ones(len(pauses), np.int64)]
    return np.concatenate(values) / SECOND, np.concatenate(weights)


def latency_summary(injected: Injected, latencies: Mapping[str, Floats], chosen: Bools) -> dict[str, Any]:
    """Statistics of each of LATENCIES over the chosen requests; for gaps, those that did not finish are censored."""
    status = injected.status[chosen]
    described = {
        name: with_censored(describe(values[chosen]), censored(values[chosen], status))
        for name, values in latencies.items()
    }
    described["itl_s"] = with_censored(gap_statistics(injected, chosen), status != FINISHED)
    return {name: described[name] for name in LATENCIES}


def latencies_of(injected: Injected, latencies: Mapping[str, Floats], chosen: Bools) -> dict[str, Any]:
    """`latency_summary`, and the statistics of each chosen request's largest gap and wait at its client."""
    status = injected.status[chosen]
    more = {"max_itl_s": latencies["max_itl_s"][chosen], "client_wait_s": seconds(injected.client_wait)[chosen]}
    return latency_summary(injected, latencies, chosen) | {
        name: with_censored(describe(values), censored(values, status)) for name, values in more.items()
    }
