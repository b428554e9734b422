"""What happened between the clients and the replicas, beside the replicas' own logs: flat integer arrays.

A journey is a request as its client sees it. It makes attempts, counted from 0: a client may send it again after a
rejection, a time-out or a failure. An attempt has legs, each an entry in the log of one replica: a request moves on
when its replica fails, or from the pool that computed its prompt to the one that decodes. Knows no metric.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from struct import Struct

import numpy as np

from sim.log.events import EventLog, Integers, Kind
from sim.request import Nanoseconds, Request

LEG = ("journey", "attempt", "replica", "index")
END = ("time", "journey", "kind", "reason")
HOLD = ("journey", "since", "until")
TRANSFER = ("journey", "since", "until", "positions")
OUTAGE = ("replica", "since", "failed", "until")

PACK_3, PACK_4 = (Struct(f"={count}q").pack for count in (3, 4))


class Trail:
    """The journeys of a run and the outages of its replicas.

    requests   every request sent, in order of its first sending; a journey is its place here
    sent       when that was, ns
    legs       (journey, attempt, replica, index in the log of that replica), in order
    ends       (time, journey, kind, index of the reason of a rejection), one for each journey that has ended
    holds      (journey, since, until): it waited at the router, because no replica was up
    transfers  (journey, since, until, positions): its KV was on the way to the pool that decodes
    outages    (replica, start of the step that was cut, failure, restart)
    retries    how often a client has sent a request again
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.sent: list[Nanoseconds] = []
        self.reasons: list[str] = []
        self.legs = bytearray()
        self.ends = bytearray()
        self.holds = bytearray()
        self.transfers = bytearray()
        self.outages = bytearray()
        self.retries = 0

    def open(self, request: Request, now: Nanoseconds) -> int:
        """A request is sent for the first time; returns the number of its journey."""
        self.requests.append(request)
        self.sent.append(now)
        return len(self.requests) - 1

    def leg(self, journey: int, attempt: int, replica: int, index: int) -> None:
        """A replica has entered it in its log."""
        self.legs += PACK_4(journey, attempt, replica, index)

    def end(self, now: Nanoseconds, journey: int, kind: Kind, reason: str = "") -> None:
        """It has ended for its client: FINISHED, REJECTED, CANCELLED or TIMED_OUT."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        self.ends += PACK_4(now, journey, kind, self.reasons.index(reason))

    def hold(self, journey: int, since: Nanoseconds, until: Nanoseconds) -> None:
        """It waited at the router."""
        self.holds += PACK_3(journey, since, until)

    def transfer(self, journey: int, since: Nanoseconds, until: Nanoseconds, positions: int) -> None:
        """Its KV leaves for another pool."""
        self.transfers += PACK_4(journey, since, until, positions)

    def outage(self, replica: int, since: Nanoseconds, failed: Nanoseconds, until: Nanoseconds) -> None:
        """A replica was down."""
        self.outages += PACK_4(replica, since, failed, until)

    def table(self, name: str) -> Integers:
        """All rows of `legs`, `ends`, `holds`, `transfers` or `outages`: a view, no copy."""
        columns = {"legs": LEG, "ends": END, "holds": HOLD, "transfers": TRANSFER, "outages": OUTAGE}[name]
        return np.frombuffer(getattr(self, name), np.int64).reshape(-1, len(columns))

    @property
    def eventful(self) -> bool:
        """Whether anything happened that the logs of the replicas do not tell."""
        return len(self.legs) != 32 * len(self.requests) or bool(self.holds or self.transfers or self.outages)

    def sha256(self, logs: Sequence[EventLog]) -> str:
        """Digest of the trail and of the logs: equal if and only if the same things happened."""
        digest = hashlib.sha256(b"slotstep trail 1\n")
        digest.update("".join(f"{log.sha256()}\n" for log in logs).encode())
        digest.update("".join(f"{request.id}\n" for request in self.requests).encode())
        digest.update("".join(f"{reason}\n" for reason in self.reasons).encode())
        digest.update(np.array(self.sent, "<i8").tobytes())
        for name in ("legs", "ends", "holds", "transfers", "outages"):
            part = self.table(name)
            digest.update(f"{part.shape}\n".encode())
            digest.update(np.ascontiguousarray(part, dtype="<i8").data)
        return digest.hexdigest()
