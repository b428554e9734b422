"""The clients of a scenario: how they send requests, their delay, their retries and time-outs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, model_validator

from sim.request import SECOND
from slotstep.scenario.fields import Count, Portion, Positive, Section, Time, sequence


def positive_time(value: int) -> int:
    """A duration above 0."""
    if value < 1:
        raise ValueError("found 0; expected a duration above 0")
    return value


def at_least_two(value: int) -> int:
    """A count above 1."""
    if value < 2:
        raise ValueError(f"found {value}; expected at least 2, the first one included")
    return value


PositiveTime = Annotated[Time, AfterValidator(positive_time)]


class ClosedLoop(Section):
    """A fixed number of clients, each of which sends a request, waits for its end and thinks."""

    clients: Count
    think: Time = 0


class Sessions(Section):
    """Sessions whose next turn is sent after the answer; `history`: whether prompts include earlier turns."""

    think: Time | None = None
    history: Literal["included", "added"] = "included"


def at_least_one(value: float) -> float:
    """A number of at least 1."""
    if value < 1:
        raise ValueError(f"found {value}; expected a number of at least 1")
    return value


class Retry(Section):
    """Clients that resend a request that failed, each time after a longer pause."""

    attempts: Annotated[Count, AfterValidator(at_least_two)]
    initial: Time = SECOND
    factor: Annotated[Positive, AfterValidator(at_least_one)] = 2.0
    max: PositiveTime = 60 * SECOND
    jitter: Portion = 0.0
    after: Annotated[tuple[Literal["rejected", "timed_out", "failed"], ...], BeforeValidator(sequence)] = (
        "rejected",
        "timed_out",
        "failed",
    )

    @model_validator(mode="after")
    def some(self) -> Self:
        """At least one cause of a retry."""
        if not self.after:
            raise ValueError("after: the list is empty; expected what clients try again after")
        return self


WAYS = ("closed", "window", "sessions")


class Clients(Section):
    """How requests are sent: closed loop, window or sessions (else at their arrivals), the delay, and retries."""

    closed: ClosedLoop | None = None
    window: Count | None = None
    sessions: Sessions | None = None
    delay: Time = 0
    retry: Retry | None = None

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
    """Limits that end a request early: queue length, and time-outs of requests that state none."""

    queue: Count | None = None
    queue_timeout: PositiveTime | None = None
    timeout: PositiveTime | None = None
