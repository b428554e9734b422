"""Objectives of a request: limits of its latencies, and from when these count.

A client wants to send a request at its arrival: as scheduled, even if a window holds it back; after the think time of
a closed client or a session. It is sent when it joins the engine's queue for the first time. The wait at the client
and the way to the engine, between the two, are part of latencies that count from `wanted`, not of those from `sent`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim.accounting.requests import FINISHED, Bools
from sim.log.events import Integers
from sim.request import SECOND, Nanoseconds

Since = Literal["wanted", "sent"]

OBJECTIVES = {"wait": "wait_s", "ttft": "ttft_s", "tpot": "tpot_s", "itl": "max_itl_s", "e2e": "e2e_s"}
FROM_WANTED = {"wait_s": "client_admission_s", "ttft_s": "client_ttft_s", "e2e_s": "client_e2e_s"}
"""The latencies that begin before the request is in a batch, and the same from when the client wanted to send."""


def counted(latency: str, since: Since) -> str:
    """The latency that an objective on `latency` is compared with."""
    return FROM_WANTED.get(latency, latency) if since == "wanted" else latency


def objectives_met(
    status: Integers,
    latencies: Mapping[str, NDArray[np.float64]],
    objectives: Mapping[str, Nanoseconds],
    since: Since = "wanted",
) -> Bools:
    """Which requests finished and met every objective: bools of shape (requests,).

    latencies   seconds by name (`sim.accounting.latencies.request_latencies`)
    objectives  limits in ns by the keys of OBJECTIVES

    A request of one token has no TPOT and no gap, so it meets these. Raises KeyError for an unknown objective.
    """
    met: Bools = status == FINISHED
    for name, limit in objectives.items():
        latency = latencies[counted(OBJECTIVES[name], since)]
        if name in ("tpot", "itl"):
            met &= np.isnan(latency) | (latency <= limit / SECOND)
        else:
            met &= latency <= limit / SECOND
    return met
