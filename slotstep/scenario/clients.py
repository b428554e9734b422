"""The clients of a scenario: how they send their requests, and what they put up with.

Think times are fixed or the workload's, so nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, model_validator

from sim.request import SECOND, Request
from sim.service.clients import Clients, ClosedLoop, Distant, OpenLoop, Window
from sim.service.sessions import Sessions
from slotstep.scenario.fields import Count, Portion, Positive, Section, Time, sequence
from traces.transforms.conversations import conversations


def some_time(value: int) -> int:
    """A duration above 0."""
    if value < 1:
        raise ValueError("found 0; expected a duration above 0")
    return value


def several(value: int) -> int:
    """A count above 1."""
    if value < 2:
        raise ValueError(f"found {value}; expected at least 2, the first one included")
    return value


Patience = Annotated[Time, AfterValidator(some_time)]


class Closed(Section):
    """So many clients: each sends the next request, waits for its end and thinks."""

    clients: Count
    think: Time = 0


class Talk(Section):
    """Sessions whose next turn waits for the answer; whether prompts hold what was said, or it is added to them."""

    think: Time | None = None
    history: Literal["included", "added"] = "included"


def at_least_one(value: float) -> float:
    """A number of at least 1."""
    if value < 1:
        raise ValueError(f"found {value}; expected a number of at least 1")
    return value


class TryAgain(Section):
    """Clients that send a request again when it came to nothing, each time after a longer pause."""

    attempts: Annotated[Count, AfterValidator(several)]
    initial: Time = SECOND
    factor: Annotated[Positive, AfterValidator(at_least_one)] = 2.0
    max: Patience = 60 * SECOND
    jitter: Portion = 0.0
    after: Annotated[tuple[Literal["rejected", "timed_out", "failed"], ...], BeforeValidator(sequence)] = (
        "rejected",
        "timed_out",
        "failed",
    )

    @model_validator(mode="after")
    def some(self) -> Self:
        """Something to try again after."""
        if not self.after:
            raise ValueError("after: the list is empty; expected what clients try again after")
        return self


WAYS = ("closed", "window", "sessions")


class Crowd(Section):
    """How requests are sent: at most one way but their own schedule, how long they are on their way, and again."""

    closed: Closed | None = None
    window: Count | None = None
    sessions: Talk | None = None
    delay: Time = 0
    retry: TryAgain | None = None

    @model_validator(mode="after")
    def one_way(self) -> Self:
        """A closed loop, a window or sessions, or none of them if there is a delay or a retry."""
        given = [way for way in WAYS if getattr(self, way) is not None]
        if len(given) > 1:
            raise ValueError(f"found {' and '.join(given)}; expected one of closed, window and sessions")
        if not given and not self.delay and self.retry is None:
            raise ValueError("found none; expected one of closed, window and sessions, a delay or a retry")
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


def clients(requests: Sequence[Request], crowd: Crowd | None, block_size: int) -> Clients:
    """Who sends these requests, ready to start; sessions of unknown content get blocks of so many tokens.

    Raises ValueError for sessions that lack think times, and where there are none.
    """
    if crowd is None:
        return OpenLoop(requests)
    near = nearby(requests, crowd, block_size)
    return Distant(near, crowd.delay) if crowd.delay else near


def nearby(requests: Sequence[Request], crowd: Crowd, block_size: int) -> Clients:
    """The same without their delay."""
    if crowd.sessions is not None:
        if not any(request.session for request in requests):
            raise ValueError("sessions: the workload has none; expected requests that belong to sessions")
        talk = crowd.sessions
        return Sessions(conversations(requests, block_size, talk.think, talk.history == "added"))
    if crowd.closed is not None:
        return ClosedLoop(requests, crowd.closed.clients, repeat(crowd.closed.think))
    if crowd.window is not None:
        return Window(requests, crowd.window)
    return OpenLoop(requests)
