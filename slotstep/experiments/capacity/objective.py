"""Objectives as text: `p99 ttft < 1s`, `mean e2e < 10s`, `attainment > 95%`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from sim.request import SECOND
from slotstep.scenario import units
from traces.errors import BadInput, nearest

LATENCIES = {"wait": "wait_s", "ttft": "ttft_s", "tpot": "tpot_s", "itl": "itl_s", "e2e": "e2e_s"}
FORM = re.compile(r"\s*(mean|max|p\d+(?:\.\d+)?)\s+([a-z0-9]+)\s*<\s*(.+?)\s*", re.IGNORECASE)
ATTAINMENT = re.compile(r"\s*attainment\s*>\s*(\d+(?:\.\d+)?)\s*%\s*", re.IGNORECASE)
EXPECTED = "expected such as 'p99 ttft < 1s', 'mean e2e < 10s' or 'attainment > 95%'"


@dataclass(frozen=True)
class Objective:
    """One objective.

    allowed  the share of injected requests that may exceed the limit; None for a mean
    limit    seconds

    A percentile is judged by the share of late requests: `p99 ttft < 1s` holds if at most 1% of the injected requests
    had no first token within a second. Requests without a first token count as late, and shares of runs can be
    averaged.
    """

    text: str
    latency: str | None
    allowed: float | None
    limit: float | None = None

    @property
    def kind(self) -> Literal["mean", "share", "attainment"]:
        """How it is judged."""
        if self.latency is None:
            return "attainment"
        return "mean" if self.allowed is None else "share"


def parse(text: str) -> Objective:
    """The objective that a text states. Raises BadInput, one line, for an invalid one."""
    if found := ATTAINMENT.fullmatch(text):
        share = float(found[1]) / 100
        if not 0 < share < 1:
            raise BadInput(f"--slo {text!r}: found {found[1]}%; expected a share between 0% and 100%")
        return Objective(f"attainment > {found[1]}%", None, 1 - share)
    found = FORM.fullmatch(text)
    if found is None:
        raise BadInput(f"--slo {text!r}: {EXPECTED}")
    statistic, latency, limit = found[1].lower(), found[2].lower(), found[3]
    if latency not in LATENCIES:
        raise BadInput(f"--slo {text!r}: {latency} is unknown; did you mean {nearest(latency, LATENCIES)}?")
    try:
        seconds = units.nanoseconds(limit) / SECOND
    except ValueError as error:
        raise BadInput(f"--slo {text!r}: {error}") from None
    if not seconds:
        raise BadInput(f"--slo {text!r}: found 0; expected a duration above 0")
    name = f"{statistic} {latency} < {limit}"
    if statistic == "mean":
        return Objective(name, LATENCIES[latency], None, seconds)
    share = 1.0 if statistic == "max" else float(statistic[1:]) / 100
    if not 0 < share <= 1:
        raise BadInput(f"--slo {text!r}: found {statistic}; expected a percentile above 0 and at most 100")
    return Objective(name, LATENCIES[latency], round(1 - share, 12), seconds)
