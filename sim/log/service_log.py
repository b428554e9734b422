"""What happened between the clients and the replicas, in addition to the replicas' own logs: flat integer arrays.

A request has attempts, counted from 0: a client may send it again after a rejection, a time-out or a failure. An
attempt has legs, each an entry in the log of one replica: a request moves on when its replica fails, or from the pool
that computed its prompt to the one that decodes. Metrics are computed elsewhere (`sim.accounting.client_view`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

import numpy as np

from sim.log.events import EventLog, Integers, Kind
from sim.request import Nanoseconds, Request

LEG = ("request", "attempt", "replica", "index")
END = ("time", "request", "kind", "reason")
HOLD = ("request", "since", "until")
TRANSFER = ("request", "since", "until", "positions")
KEPT = ("request", "since", "until", "replica", "positions")
OUTAGE = ("replica", "since", "failed", "until")

PACK_3, PACK_4, PACK_5 = (Struct(f"={count}q").pack for count in (3, 4, 5))


class ServiceLog:
    """The requests of a run as their clients see them, and the outages of its replicas.

    Times are integer nanoseconds; a request is a number, its place in `requests`.

    requests   every request sent, in order of its first sending
    sent       when that was
    legs       (request, attempt, replica, index in the log of that replica), in order
    ends       (time, request, kind, index of the reason of a rejection), one for each request that has ended
    holds      (request, since, until): it waited at the router, because no replica was up
    transfers  (request, since, until, positions): its KV was on the way to the pool that decodes
    kept       (request, since, until, replica, positions): its KV waited on the replica that had computed its prompt,
               until it had been copied or was not needed; part of the digest if there is any
    outages    (replica, start of the step that was cut, failure, restart)
    retries    how often a client has sent a request again
    pools      how many replicas each pool has, where that is known
    """

    def __init__(self, pools: Sequence[int] = ()) -> None:
        self.pools = pools
        self.requests: list[Request] = []
        self.sent: list[Nanoseconds] = []
        self.reasons: list[str] = []
        self.legs = bytearray()
        self.ends = bytearray()
        self.holds = bytearray()
        self.transfers = bytearray()
        self.kept = bytearray()
        self.outages = bytearray()
        self.retries = 0

    def open(self, request: Request, now: Nanoseconds) -> int:
        """A request is sent for the first time; returns its number."""
        self.requests.append(request)
        self.sent.append(now)
        return len(self.requests) - 1

    def leg(self, request: int, attempt: int, replica: int, index: int) -> None:
        """A replica has entered the request in its log, as `index`."""
        self.legs += PACK_4(request, attempt, replica, index)

    def end(self, now: Nanoseconds, request: int, kind: Kind, reason: str = "") -> None:
        """The request has ended for its client: FINISHED, REJECTED, CANCELLED or TIMED_OUT."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        self.ends += PACK_4(now, request, kind, self.reasons.index(reason))

    def hold(self, request: int, since: Nanoseconds, until: Nanoseconds) -> None:
        """The request waited at the router."""
        self.holds += PACK_3(request, since, until)

    def transfer(self, request: int, since: Nanoseconds, until: Nanoseconds, positions: int) -> None:
        """The KV of the request is sent to another pool."""
        self.transfers += PACK_4(request, since, until, positions)

    def keep(self, request: int, since: Nanoseconds, until: Nanoseconds, replica: int, positions: int) -> None:
        """The KV of the request was kept on a replica after its prompt."""
        self.kept += PACK_5(request, since, until, replica, positions)

    def outage(self, replica: int, since: Nanoseconds, failed: Nanoseconds, until: Nanoseconds) -> None:
        """A replica was down from `failed` to `until`; the step that was cut began at `since`."""
        self.outages += PACK_4(replica, since, failed, until)

    def table(self, name: str) -> Integers:
        """All rows of `legs`, `ends`, `holds`, `transfers`, `kept` or `outages`, int64 (rows, columns): a view."""
        columns = {
            "legs": LEG,
            "ends": END,
            "holds": HOLD,
            "transfers": TRANSFER,
            "kept": KEPT,
            "outages": OUTAGE,
        }[name]
        return np.frombuffer(getattr(self, name), np.int64).reshape(-1, len(columns))

    @property
    def eventful(self) -> bool:
        """Whether anything happened that is not in the logs of the replicas."""
        return len(self.legs) != 32 * len(self.requests) or bool(
            self.holds or self.transfers or self.kept or self.outages
        )

    def sha256(self, logs: Sequence[EventLog]) -> str:
        """Digest (hex) of this log and of those of the replicas: equal if and only if the same things happened."""
        digest = hashlib.sha256(b"slotstep trail 1\n")
        digest.update("".join(f"{log.sha256()}\n" for log in logs).encode())
        digest.update("".join(f"{request.id}\n" for request in self.requests).encode())
        digest.update("".join(f"{reason}\n" for reason in self.reasons).encode())
        digest.update(np.array(self.sent, "<i8").tobytes())
        for name in ("legs", "ends", "holds", "transfers", "outages", *(["kept"] if self.kept else [])):
            part = self.table(name)
            digest.update(f"{part.shape}\n".encode())
            digest.update(np.ascontiguousarray(part, dtype="<i8").data)
        return digest.hexdigest()


@dataclass(frozen=True)
class Run:
    """What a service did: the log of each replica, in order, and what happened between them and the clients.

    service_log  None where requests went the direct way
    core         whether the compiled core simulated it
    """

    logs: list[EventLog]
    service_log: ServiceLog | None
    core: bool = False
