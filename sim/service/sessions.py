"""Clients in conversation: each sends a turn, waits for its answer, thinks, and sends the next.

A turn that does not finish ends its session: without an answer there is nothing to go on from. The turns after it
are never sent; they are counted apart, because they are no requests of the engine. Knows nothing of engines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sim.request import Request, Sequence
from sim.service.clients import Clients, Distant, OpenLoop
from sim.service.event_order import ARRIVAL


@dataclass
class SessionCounts:
    """How conversations went: `begun` of them, `completed` to their last turn, and the turns never sent."""

    begun: int = 0
    completed: int = 0
    unsent_turns: int = 0

    @property
    def broken_off(self) -> int:
        """Sessions that ended early."""
        return self.begun - self.completed

    def counted(self) -> dict[str, int]:
        """All counts by name."""
        return {
            "begun": self.begun,
            "completed": self.completed,
            "broken_off": self.broken_off,
            "unsent_turns": self.unsent_turns,
        }


class Sessions(OpenLoop):
    """Sessions begin on their own schedule; within one, a turn is sent `Request.think` after the end of the last.

    `sessions` are the turns of each, in order of their first arrivals; a request that belongs to none is a session of
    one turn. A later turn arrives when it is sent. Raises ValueError for a later turn without a think time, and for
    sessions out of order.
    """

    react = True

    def __init__(self, sessions: Iterable[Iterable[Request]]) -> None:
        turns = [deque(session) for session in sessions]
        for session in turns:
            for turn in list(session)[1:]:
                if turn.think is None:
                    raise ValueError(f"request {turn.id}: a turn of session {turn.session} has no think time")
        super().__init__([session.popleft() for session in turns])
        self.to_come = iter(turns)
        self.rest: dict[str, deque[Request]] = {}  # the turns after the one under way, by its id
        self.counts = SessionCounts()

    def take(self, request: Request) -> None:
        """A session begins."""
        self.counts.begun += 1
        self.say(request, next(self.to_come))

    def say(self, request: Request, rest: deque[Request]) -> None:
        """Send a turn; if it is turned away, the session ends."""
        self.rest[request.id] = rest
        if not self.send(request):
            self.ended(Sequence(request, -1))

    def ended(self, seq: Sequence) -> None:
        """A turn has ended: the next one follows, unless this was the last or brought no answer."""
        rest = self.rest.pop(seq.request.id)
        if not seq.finished:
            self.counts.unsent_turns += len(rest)
        elif rest:
            turn = rest.popleft()
            assert turn.think is not None
            self.agenda.after(turn.think, ARRIVAL, lambda _: self.say(replace(turn, arrival=self.agenda.now), rest))
        else:
            self.counts.completed += 1


def counts(clients: Clients) -> SessionCounts | None:
    """How conversations went, if these clients have any."""
    if isinstance(clients, Distant):
        return counts(clients.clients)
    return clients.counts if isinstance(clients, Sessions) else None
