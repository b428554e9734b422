"""Clients in conversation: each sends a turn, waits for its answer, thinks, and sends the next.

A turn that does not finish ends its session. The turns after it are never sent; they are counted apart, because they
are not requests of the engine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sim.request import Request
from sim.sequence import Sequence
from sim.service.clients import Clients, Distant, OpenLoop
from sim.service.event_order import ARRIVAL


@dataclass
class SessionCounts:
    """Counts of sessions: begun, completed to their last turn, and the turns never sent."""

    begun: int = 0
    completed: int = 0
    unsent_turns: int = 0

    @property
    def broken_off(self) -> int:
        """Sessions that ended before their last turn."""
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
        self.send_turn(request, next(self.to_come))

    def send_turn(self, request: Request, rest: deque[Request]) -> None:
        """Send a turn; if it is rejected, the session ends."""
        self.rest[request.id] = rest
        if not self.send(request):
            self.ended(Sequence(request, -1))

    def ended(self, seq: Sequence) -> None:
        """A turn has ended: the next one follows, unless this was the last or did not finish."""
        rest = self.rest.pop(seq.request.id)
        if not seq.finished:
            self.counts.unsent_turns += len(rest)
        elif rest:
            turn = rest.popleft()
            assert turn.think is not None
            self.agenda.after(turn.think, ARRIVAL, lambda _: self.send_later_turn(turn, rest))
        else:
            self.counts.completed += 1

    def send_later_turn(self, turn: Request, rest: deque[Request]) -> None:
        """Send a turn after the first; it arrives now."""
        self.send_turn(replace(turn, arrival=self.agenda.now), rest)


def counts(clients: Clients) -> SessionCounts | None:
    """The counts of sessions of these clients; None if they have no sessions."""
    if isinstance(clients, Distant):
        return counts(clients.clients)
    return clients.counts if isinstance(clients, Sessions) else None
