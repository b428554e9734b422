"""A run as pandas frames: a row per request, per step, per stay in a slot. Pure functions of the event log.

pandas is imported with the first frame: it takes longer to import than a small run to simulate, and a summary needs
no frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.accounting.client_view import ClientView, Injected
from sim.accounting.latencies import request_latencies, seconds
from sim.accounting.ledger import waiting_by_step
from sim.accounting.requests import NEVER, STATUSES, RequestRecords
from sim.log.events import EventLog, Integers, Kind, Reason
from sim.log.service_log import ServiceLog
from sim.request import Request

if TYPE_CHECKING:
    import pandas as pd

ENDS = {
    Kind.FINISHED: "finished",
    Kind.LOST: "finished",
    Kind.CANCELLED: "cancelled",
    Kind.TIMED_OUT: "timed_out",
    Kind.MOVED: "moved",
    Kind.INTERRUPTED: "interrupted",
}


def of_each(frame: Callable[[EventLog], pd.DataFrame], logs: Sequence[EventLog]) -> pd.DataFrame:
    """The frames of all logs, one under the other, with a column `replica` if there are several."""
    import pandas as pd

    if len(logs) == 1:
        return frame(logs[0])
    return pd.concat([frame(log).assign(replica=number) for number, log in enumerate(logs)], ignore_index=True)


def requests_frame(log: EventLog) -> pd.DataFrame:
    """One row per injected request in order of arrival: its sizes, status and latencies.

    Timestamps are nullable integers in ns, latencies floats in seconds (NaN where undefined).
    """
    return frame_of(log.requests, RequestRecords(log))


def client_frame(logs: Sequence[EventLog], service_log: ServiceLog) -> pd.DataFrame:
    """One row per request that a client sent, in order of first sending, where requests may be in several logs.

    The columns of `requests_frame`, and attempts, router_wait_s, transfer_s and replica (of the last leg, -1: none).
    """
    view = ClientView([RequestRecords(log) for log in logs], service_log)
    return frame_of(service_log.requests, view).assign(
        attempts=view.attempts,
        router_wait_s=seconds(view.time("holds")),
        transfer_s=seconds(view.time("transfers")),
        replica=view.replica,
    )


def frame_of(requests: Sequence[Request], records: RequestRecords | Injected) -> pd.DataFrame:
    """A row for each of `requests`, in their order."""
    import pandas as pd

    stamps = {
        "queued_ns": records.queued,
        "admitted_ns": records.admitted,
        "first_token_ns": records.first_token,
        "ended_ns": records.ended,
    }
    return pd.DataFrame(
        {
            "id": pd.array([request.id for request in requests], dtype="str"),
            "tenant": pd.array([request.tenant for request in requests], dtype="str"),
            "prompt": np.array([request.prompt for request in requests], np.int64),
            "output": np.array([request.output for request in requests], np.int64),
            "tokens": records.tokens,
            "status": pd.array([STATUSES[status] for status in records.status], dtype="str"),
            "reason": pd.array(records.reasons, dtype="str"),
            **{name: pd.arrays.IntegerArray(times.copy(), times == NEVER) for name, times in stamps.items()},
            "preemptions": records.preemptions,
            "client_wait_s": seconds(records.client_wait),
            **request_latencies(records),
        }
    )


def steps_frame(log: EventLog) -> pd.DataFrame:
    """One row per step, in order: times in ns, what its slots did, how many waited, its tokens and its pages.

    All columns are integers but `reason`, why the admission pass ended (`sim.log.events.Reason`, lower case).
    """
    import pandas as pd

    records = RequestRecords(log)
    runs, durations = log.run_table(), log.step_durations()
    steps = runs["steps"]
    first = np.cumsum(steps) - steps
    within = np.arange(log.steps) - np.repeat(first, steps)

    def per_step(name: str, growth: str | None = None) -> Integers:
        values = np.repeat(runs[name], steps)
        return values if growth is None else values + within * np.repeat(runs[growth], steps)

    names = np.array([reason.name.lower() for reason in Reason], dtype=object)
    return pd.DataFrame(
        {
            "start_ns": records.step_ends - durations,
            "duration_ns": durations.copy(),
            **{row: per_step(row) for row in ("decode", "prefill", "recomputed", "held", "no_budget")},
            "waiting": waiting_by_step(records),
            "reason": pd.array(names[per_step("reason")], dtype="str"),
            "tokens": per_step("tokens"),
            "output": records.delivered_by_step,
            "context": per_step("context", "decode"),
            "live": per_step("live", "tokens"),
            "pages_used": log.held_by_step() if log.steps else np.zeros(0, np.int64),
        }
    )


def slots_frame(log: EventLog) -> pd.DataFrame:
    """One row per stay of a sequence in a slot, in order of admission; it takes the lowest free slot.

    Times are nullable integers in ns: `completed_ns` is the last token, `released_ns` when the slot was free again. A
    preempted stay ends with both at once and status "preempted".
    """
    import pandas as pd

    free: list[int] = []
    opened = 0
    stays: dict[int, dict[str, Any]] = {}
    rows: list[dict[str, Any]] = []
    for time, kind, index, _ in log.event_table().tolist():
        if kind == Kind.ADMITTED:
            request = log.requests[index]
            if not free:
                heappush(free, opened)
                opened += 1
            stay = {"slot": heappop(free), "id": request.id, "tenant": request.tenant, "status": "running"}
            stays[index] = stay | dict.fromkeys(("admitted_ns", "first_token_ns", "completed_ns", "released_ns"))
            stays[index]["admitted_ns"] = time
            rows.append(stays[index])
        elif index not in stays:
            continue
        elif kind == Kind.FIRST_TOKEN:
            stays[index]["first_token_ns"] = time
        elif kind in ENDS:
            stays[index]["status"] = ENDS[Kind(kind)]
            stays[index]["completed_ns"] = stays[index]["completed_ns"] or time
        elif kind in (Kind.RELEASED, Kind.PREEMPTED):
            stay = stays.pop(index)
            stay["released_ns"] = time
            if kind == Kind.PREEMPTED:
                stay |= {"status": "preempted", "completed_ns": time}
            heappush(free, stay["slot"])
    columns = {"slot": "int64", "id": "str", "tenant": "str", "status": "str"}
    columns |= dict.fromkeys(("admitted_ns", "first_token_ns", "completed_ns", "released_ns"), "Int64")
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)
