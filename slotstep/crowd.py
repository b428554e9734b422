"""The clients of a scenario: how they send their requests, and what they put up with.

Knows nothing of traces; think times are fixed, so nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat
from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from sim.clients import Clients, ClosedLoop, Distant, OpenLoop, Window
from sim.request import Request
from slotstep.fields import Count, Section, Time


def some_time(value: int) -> int:
    """A duration above 0."""
    if value < 1:
        raise ValueError("found 0; expected a duration above 0")
    return value


Patience = Annotated[Time, AfterValidator(some_time)]


class Closed(Section):
    """So many clients: each sends the next request, waits for its end and thinks."""

    clients: Count
    think: Time = 0


class Crowd(Section):
    """How requests are sent: at most one way but their own schedule, and how long they are on their way."""

    closed: Closed | None = None
    window: Count | None = None
    delay: Time = 0

    @model_validator(mode="after")
    def one_way(self) -> Self:
        """A closed loop, a window, or neither if there is a delay."""
        if self.closed is not None and self.window is not None:
            raise ValueError("found both; expected one of closed and window")
        if self.closed is None and self.window is None and not self.delay:
            raise ValueError("found neither; expected one of closed and window, or a delay")
        return self


class Limits(Section):
    """What ends a request early: a full queue, and time-outs of requests that state none of their own."""

    queue: Count | None = None
    queue_timeout: Patience | None = None
    timeout: Patience | None = None


def limited(requests: Sequence[Request], limits: Limits) -> Sequence[Request]:
    """The requests with these time-outs, where they have none."""
    if limits.queue_timeout is None and limits.timeout is None:
        return requests
    return [
        replace(
            request,
            queue_timeout=request.queue_timeout or limits.queue_timeout,
            timeout=request.timeout or limits.timeout,
        )
        for request in requests
    ]


def clients(requests: Sequence[Request], crowd: Crowd | None) -> Clients:
    """Who sends these requests, ready to start."""
    if crowd is None:
        return OpenLoop(requests)
    near = nearby(requests, crowd)
    return Distant(near, crowd.delay) if crowd.delay else near


def nearby(requests: Sequence[Request], crowd: Crowd) -> Clients:
    """The same without their delay."""
    if crowd.closed is not None:
        return ClosedLoop(requests, crowd.closed.clients, repeat(crowd.closed.think))
    if crowd.window is not None:
        return Window(requests, crowd.window)
    return OpenLoop(requests)
