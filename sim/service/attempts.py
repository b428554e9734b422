"""Requests of a service as their clients see them: sent, tried again after a failure, ended.

Where a request is served is left to the subclass (`sim.service.service`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from sim.log.events import Kind
from sim.log.service_log import ServiceLog
from sim.request import Nanoseconds, Request
from sim.sequence import Sequence
from sim.service.clients import Clients
from sim.service.event_order import ARRIVAL, CANCELLATION, TIMEOUT, Agenda
from sim.service.routing import RoutedRequest


@dataclass(frozen=True)
class Retry:
    """Clients that send a request again.

    attempts  most attempts of a request, the first included
    pause     ns before the next attempt, given the request and the number of its attempts so far
    after     what they try again after: REJECTED (unless the request could never run), TIMED_OUT, INTERRUPTED (its
              replica failed, and its work was lost)
    """

    attempts: int
    pause: Callable[[Request, int], Nanoseconds]
    after: tuple[Kind, ...] = (Kind.REJECTED, Kind.TIMED_OUT, Kind.INTERRUPTED)


class Attempts(ABC):
    """The attempts of all requests; every end is written to `service_log`, and clients that react are notified."""

    def __init__(self, agenda: Agenda, clients: Clients, retry: Retry | None, service_log: ServiceLog) -> None:
        self.agenda = agenda
        self.clients = clients
        self.retry = retry
        self.service_log = service_log
        self.open = 0  # requests that have not ended

    # ------------------------------------------------------------------ where a request is served

    @abstractmethod
    def first_leg(self, routed: RoutedRequest) -> str:
        """Set what the first engine does of a request; returns why no engine ever could, empty if one could."""

    @abstractmethod
    def dispatch(self, routed: RoutedRequest) -> None:
        """Send a request to a replica for its next leg."""

    @abstractmethod
    def withdraw(self, routed: RoutedRequest, kind: Kind) -> bool:
        """Take a request from where it is; False if its engine aborts it, which calls `stopped` itself."""

    @abstractmethod
    def let_go(self, routed: RoutedRequest) -> None:
        """What replicas keep of the present attempt of a request is not needed any more."""

    # ------------------------------------------------------------------ sending

    def send(self, request: Request) -> bool:
        """A client's request arrives; returns whether it was taken: not rejected for good, nor already cancelled."""
        routed = RoutedRequest(request, self.service_log.open(request, self.agenda.now))
        self.open += 1
        patience = self.clients.patience(request)
        if patience is not None and patience <= 0:
            self.close(routed, Kind.CANCELLED)
            return False
        if patience is not None:
            self.agenda.after(patience, CANCELLATION, lambda _: self.stop(routed, Kind.CANCELLED))
        self.attempt(routed)
        routed.fresh = False
        return not routed.over

    def attempt(self, routed: RoutedRequest) -> None:
        """A request arrives, for the first time or again; its time-outs count from now."""
        attempt, patience = routed.attempt, routed.request.patience
        routed.admitted = False
        if complaint := self.first_leg(routed):
            self.close(routed, Kind.REJECTED, complaint)
            return
        if patience.timeout is not None:
            self.agenda.after(patience.timeout, TIMEOUT, lambda _: self.time_out(routed, attempt, waiting=False))
        if patience.queue_timeout is not None:
            self.agenda.after(patience.queue_timeout, TIMEOUT, lambda _: self.time_out(routed, attempt, waiting=True))
        self.dispatch(routed)

    def try_again(self, routed: RoutedRequest) -> None:
        """The client's pause is over: it has sent the request again."""
        if not routed.over:
            routed.attempt += 1
            self.service_log.retries += 1
            self.attempt(routed)

    # ------------------------------------------------------------------ ends

    def time_out(self, routed: RoutedRequest, attempt: int, waiting: bool) -> None:
        """An attempt has taken too long; with `waiting`, only if it has not been admitted by now."""
        if attempt != routed.attempt or routed.state == "retrying":
            return
        seq = routed.seq
        inside = routed.admitted or (routed.state == "on replica" and seq is not None and seq.serial >= 0)
        if not (waiting and inside):
            self.stop(routed, Kind.TIMED_OUT)

    def stop(self, routed: RoutedRequest, kind: Kind) -> None:
        """The client gives up (CANCELLED), or the attempt has taken too long (TIMED_OUT), wherever the request is."""
        if not routed.over and self.withdraw(routed, kind):
            self.stopped(routed, kind)

    def stopped(self, routed: RoutedRequest, kind: Kind, reason: str = "") -> None:
        """A request that was stopped has been withdrawn."""
        if kind == Kind.CANCELLED:
            self.close(routed, kind)
        else:
            self.failed(routed, kind, reason)

    def failed(self, routed: RoutedRequest, kind: Kind, reason: str = "") -> None:
        """An attempt has failed: the client tries again, with the same delay on the way, or the request ends."""
        self.let_go(routed)
        retry = self.retry
        if retry is None or kind not in retry.after or routed.attempt + 1 >= retry.attempts:
            self.close(routed, Kind.REJECTED if kind == Kind.INTERRUPTED else kind, reason)
            return
        routed.state = "retrying"
        pause = retry.pause(routed.request, routed.attempt + 1)
        self.agenda.after(pause + self.clients.delay, ARRIVAL, lambda _: self.try_again(routed))

    def close(self, routed: RoutedRequest, kind: Kind, reason: str = "") -> None:
        """A request has ended for its client."""
        self.let_go(routed)
        routed.over = True
        self.open -= 1
        self.service_log.end(self.agenda.now, routed.number, kind, reason)
        if self.clients.react and not routed.fresh:
            whole = routed.seq if kind == Kind.FINISHED else None
            self.clients.ended(whole or Sequence(routed.request, -1))
