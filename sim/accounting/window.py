"""Metrics of a measuring window of a run, in ns of its clock: pure functions of the event log.

Latencies and attainment are of the requests whose clients wanted to send them from `begin` to before `end`, whenever
they ended. Rates and goodput are of what happened: requests wanted then, and what came after `begin` and by `end`,
finished requests and tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sim.accounting.client_view import injected_requests
from sim.accounting.concurrency import concurrency
from sim.accounting.latencies import latencies_of, request_latencies
from sim.accounting.objectives import Since, objectives_met
from sim.accounting.rates import by_gaps, ratio
from sim.accounting.requests import RequestRecords, status_counts
from sim.log.events import EventLog
from sim.log.service_log import ServiceLog
from sim.request import SECOND, Nanoseconds


def measured(
    logs: Sequence[EventLog],
    begin: Nanoseconds,
    end: Nanoseconds | None,
    objectives: Mapping[str, Nanoseconds] | None = None,
    service_log: ServiceLog | None = None,
    since: Since = "wanted",
) -> dict[str, Any]:
    """The metrics of the window from `begin` to `end` (None: the end of the run), as plain numbers.

    Times are in seconds, rates over the length of the window; the rest as in `sim.accounting.metrics.summary`.
    """
    fleet = [RequestRecords(log) for log in logs]
    injected = injected_requests(fleet, service_log)
    over = last_end(fleet, injected.ended.max(initial=0))
    wanted = injected.wanted >= begin
    if end is None:
        end = max(over, begin)
    else:
        wanted &= injected.wanted < end
    length = end - begin
    status, latencies = injected.status, request_latencies(injected)
    ended = (injected.finished > begin) & (injected.finished <= end)
    tokens = sum(
        int(records.delivered_by_step[(records.step_ends > begin) & (records.step_ends <= end)].sum())
        for records in fleet
    )
    met = objectives_met(status, latencies, objectives, since) if objectives else None
    return {
        "from_s": begin / SECOND,
        "to_s": end / SECOND,
        "run_ended_s": over / SECOND,
        "requests": status_counts(status[wanted]),
        "rates": {
            "offered_per_s": ratio(int(wanted.sum()) * SECOND, length),
            "offered_by_gaps_per_s": by_gaps(injected.wanted[wanted]),
            "finished_per_s": ratio(int(ended.sum()) * SECOND, length),
            "finished_by_gaps_per_s": by_gaps(injected.finished[ended]),
            "output_tokens_per_s": ratio(tokens * SECOND, length),
        },
        "concurrency": concurrency(injected, begin, end),
        "attainment": None if met is None else ratio(int(met[wanted].sum()), int(wanted.sum())),
        "goodput_per_s": None if met is None else ratio(int((met & ended).sum()) * SECOND, length),
        **latencies_of(injected, latencies, wanted),
    }


def last_end(fleet: Sequence[RequestRecords], ended: int) -> int:
    """When the last request or step ended."""
    return max([int(ended), *(int(records.step_ends[-1]) for records in fleet if len(records.step_ends))])
