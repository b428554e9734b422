"""The instant from which latencies are counted: when the client wanted to send a request, or when it was sent.

The two differ where a client's limit on requests in flight, or its own delay, held a request back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

SINCE = {"wanted": "when clients wanted to send", "sent": "when requests were sent"}
FROM_SENT = f"Requests were sent later than their clients wanted; wait, TTFT and E2E count from {SINCE['sent']}."
LATENCIES = {
    "wait_s": "wait",
    "ttft_s": "TTFT",
    "tpot_s": "TPOT",
    "itl_s": "ITL",
    "max_itl_s": "largest gap",
    "e2e_s": "E2E",
}
BOTH = {
    "client_wait_s": "at client",
    "wait_s": "wait",
    "ttft_s": "TTFT, from sent",
    "client_ttft_s": "TTFT, from wanted",
    "tpot_s": "TPOT",
    "itl_s": "ITL",
    "max_itl_s": "largest gap",
    "e2e_s": "E2E, from sent",
    "client_e2e_s": "E2E, from wanted",
}


def held_back(summary: Mapping[str, Any]) -> bool:
    """Whether any request was sent later than its client wanted."""
    return bool(summary["client_wait_s"]["max"])


def named(summary: Mapping[str, Any]) -> Mapping[str, str]:
    """The latencies to show of a run: keys of its summary to names; counted from both instants if they differ."""
    return BOTH if held_back(summary) else LATENCIES


def note(summaries: Iterable[Mapping[str, Any]]) -> str:
    """The sentence that says from when the latencies of these runs count; empty if no request was held back."""
    return FROM_SENT if any(map(held_back, summaries)) else ""
