"""The accounts of a run: what several metrics are computed from, each made once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from sim.accounting.client_view import Injected, injected_requests
from sim.accounting.latencies import Floats, Statistics, latencies_of, request_latencies
from sim.accounting.ledger import slot_rows
from sim.accounting.objectives import Since, objectives_met
from sim.accounting.requests import RequestRecords
from sim.log.events import EventLog
from sim.log.service_log import ServiceLog
from sim.request import Nanoseconds


class Accounts:
    """The records of all replicas of a run, in ns unless stated otherwise.

    logs         of each replica in order
    objectives   limits in ns by the keys of OBJECTIVES, counted from `since`; None without
    service_log  where requests may be in several logs; then each is counted once, as its client sees it
    """

    def __init__(
        self,
        logs: Sequence[EventLog],
        objectives: Mapping[str, Nanoseconds] | None = None,
        service_log: ServiceLog | None = None,
        since: Since = "wanted",
    ) -> None:
        self.logs = logs
        self.objectives = objectives
        self.service_log = service_log
        self.since = since

    @cached_property
    def fleet(self) -> list[RequestRecords]:
        """The records of each replica."""
        return [RequestRecords(log) for log in self.logs]

    @cached_property
    def injected(self) -> Injected:
        """The requests as their clients see them."""
        return injected_requests(self.fleet, self.service_log)

    @cached_property
    def latencies(self) -> dict[str, Floats]:
        """The latencies of each request in seconds, NaN where undefined."""
        return request_latencies(self.injected)

    @cached_property
    def latency_statistics(self) -> dict[str, Statistics]:
        """The statistics of every latency over all requests."""
        return latencies_of(self.injected, self.latencies, np.ones(len(self.injected.status), bool))

    @property
    def span(self) -> Nanoseconds:
        """From the first queue entry to the last end."""
        return self.injected.span

    @cached_property
    def begin(self) -> Nanoseconds:
        """The first queue entry."""
        queued = self.injected.queued
        return int(queued[queued >= 0].min(initial=np.iinfo(np.int64).max)) if self.span else 0

    @cached_property
    def down(self) -> list[Nanoseconds | None]:
        """How long each replica was down; None where replicas do not fail."""
        known = self.service_log is not None
        return [self.injected.down(number) if known else None for number in range(len(self.fleet))]

    @cached_property
    def ledgers(self) -> list[tuple[dict[str, int], dict[str, int]]]:
        """The ledger of each replica by row: (slot-steps, slot time)."""
        return [
            slot_rows(records, self.span, self.injected.wasted(number), self.down[number])
            for number, records in enumerate(self.fleet)
        ]

    @cached_property
    def slot_steps(self) -> dict[str, int]:
        """The slot-steps of all replicas by row of the ledger."""
        return total(steps for steps, _ in self.ledgers)

    @cached_property
    def met(self) -> int | None:
        """How many requests met all objectives; None without objectives."""
        if not self.objectives:
            return None
        return int(objectives_met(self.injected.status, self.latencies, self.objectives, self.since).sum())


def total(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts of the same name added up, in order of first appearance."""
    added: dict[str, int] = {}
    for part in parts:
        for name, count in part.items():
            added[name] = added.get(name, 0) + count
    return added
