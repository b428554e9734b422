"""Clients: which requests are sent when. On schedule, through a window, or each after the last answer; with a delay.

Independent of engines: requests are sent through a callable, and `ended` is called for every end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

from sim.log.events import Kind
from sim.request import Nanoseconds, Request
from sim.sequence import Sequence
from sim.service.event_order import ARRIVAL, CANCELLATION, TIMEOUT, Agenda

Send = Callable[[Request], bool]
"""Sends a request now; returns whether it was taken, not rejected."""


class Clients(ABC):
    """Sends requests by `send` once it is started.

    react  whether `ended` is called for the end of every request that was taken
    delay  ns that a request is on its way to the engine
    """

    react = False
    delay: Nanoseconds = 0
    agenda: Agenda
    send: Send

    def start(self, agenda: Agenda, send: Send) -> None:
        """Begin at the present instant, with the clock and the callable to send by."""
        self.agenda, self.send = agenda, send
        self.begin()

    def patience(self, request: Request) -> Nanoseconds | None:
        """How much longer the client waits for a request that arrives now, ns; None: it does not give up.

        0 or less: the client has given up while the request was on its way.
        """
        cancel_after = request.patience.cancel_after
        return None if cancel_after is None else cancel_after - self.delay

    @abstractmethod
    def begin(self) -> None:
        """Schedule the first requests."""

    def ended(self, seq: Sequence) -> None:
        """A request that was taken has ended now; with all its tokens if `seq.finished`. Called if `react`."""


class OpenLoop(Clients):
    """Requests arrive on their own schedule, independently of those before.

    Raises ValueError for requests that are not in order of arrival.
    """

    def __init__(self, requests: Iterable[Request]) -> None:
        self.requests: Iterator[Request] = iter(requests)
        self.due: Request | None = None

    def begin(self) -> None:
        """Schedule the first arrival."""
        self.expect_next()

    def expect_next(self) -> None:
        """Schedule the next arrival."""
        self.due = next(self.requests, None)
        if self.due is None:
            return
        delay = self.due.arrival - self.agenda.now
        if delay < 0:
            raise ValueError(f"request {self.due.id} arrives before the one ahead of it; expected order of arrival")
        self.agenda.after(delay, ARRIVAL, self.arrive)

    def arrive(self, _: object) -> None:
        """A request arrives; the next is scheduled first, so that all of one instant precede the plan."""
        request = self.due
        assert request is not None
        self.expect_next()
        self.take(request)

    def take(self, request: Request) -> None:
        """Handle a request that is due: send it."""
        self.send(request)


class Window(OpenLoop):
    """At most `size` requests in flight: further ones wait at the client, first come, first sent.

    A request keeps its arrival; it enters the engine's queue when it is sent. Raises ValueError unless `size` is at
    least 1.
    """

    react = True

    def __init__(self, requests: Iterable[Request], size: int) -> None:
        if size < 1:
            raise ValueError(f"window is {size}; expected at least 1")
        super().__init__(requests)
        self.size = size
        self.in_flight = 0
        self.held_back: deque[Request] = deque()

    def take(self, request: Request) -> None:
        """Send it, or hold it back."""
        self.held_back.append(request)
        self.send_on()

    def ended(self, seq: Sequence) -> None:
        """Send the next one that was held back, at this instant."""
        self.in_flight -= 1
        if self.held_back:
            self.agenda.after(0, ARRIVAL, lambda _: self.send_on())

    def send_on(self) -> None:
        """Send as many requests as the window allows."""
        while self.held_back and self.in_flight < self.size:
            self.in_flight += self.send(self.held_back.popleft())


class ClosedLoop(Clients):
    """`clients` clients share a list of requests: each sends the next one, waits for its end, thinks, and so on.

    A request's own arrival is not used: it arrives when it is sent. `think` are the thinking times in ns, one after
    each request in the order of sending. A rejected request counts as ended. Raises ValueError unless `clients` is at
    least 1.
    """

    react = True

    def __init__(self, requests: Iterable[Request], clients: int, think: Iterable[Nanoseconds]) -> None:
        if clients < 1:
            raise ValueError(f"clients is {clients}; expected at least 1")
        self.requests: Iterator[Request] = iter(requests)
        self.clients = clients
        self.think: Iterator[Nanoseconds] = iter(think)

    def begin(self) -> None:
        """All clients send now, as far as there are requests."""
        for request in islice(self.requests, self.clients):
            self.agenda.after(0, ARRIVAL, partial(self.send_now, request))

    def send_next(self, _: object) -> None:
        """A client sends the next request, if there is one."""
        request = next(self.requests, None)
        if request is not None:
            self.send_now(request)

    def send_now(self, request: Request, _: object = None) -> None:
        """A client sends this request."""
        if not self.send(replace(request, arrival=self.agenda.now)):
            self.reflect()

    def ended(self, seq: Sequence) -> None:
        """The client of an ended request thinks, then sends the next."""
        self.reflect()

    def reflect(self) -> None:
        """A client thinks, then sends the next."""
        self.agenda.after(next(self.think), ARRIVAL, self.send_next)


class Distant(Clients):
    """Clients whose requests are `delay` ns on their way to the engine: prepared, sent, read.

    A request enters the engine's queue so much later, and counts as in flight all the while. Answers and
    cancellations take no time: a delay on the way back would only add to this one. A client that gives up on a
    request on its way goes on at once; the request is discarded where it arrives. Raises ValueError for a negative
    delay.
    """

    def __init__(self, clients: Clients, delay: Nanoseconds) -> None:
        if delay < 0:
            raise ValueError(f"delay is {delay} ns; expected 0 or more")
        self.clients = clients
        self.delay = delay
        self.react = clients.react

    def begin(self) -> None:
        """Start the clients, with `dispatch` to send by."""
        self.clients.start(self.agenda, self.dispatch)

    def dispatch(self, request: Request) -> bool:
        """Send a request on its way; returns True, as whether it will be taken is decided on arrival."""
        patience = self.patience(request)
        given_up = patience is not None and patience <= 0
        if given_up:
            cancel_after = request.patience.cancel_after
            assert cancel_after is not None
            self.agenda.after(cancel_after, CANCELLATION, lambda _: self.clients.ended(Sequence(request, -1)))
        self.agenda.after(self.delay, ARRIVAL, lambda _: self.deliver(request, given_up))
        return True

    def deliver(self, request: Request, given_up: bool) -> None:
        """The request arrives; for its client, a rejection is an end like any other."""
        if not self.send(request) and not given_up:
            self.clients.ended(Sequence(request, -1))

    def ended(self, seq: Sequence) -> None:
        """Forwarded to the clients."""
        self.clients.ended(seq)


def set_limits(
    agenda: Agenda, seq: Sequence, patience: Nanoseconds | None, abort: Callable[[Sequence, Kind], None]
) -> None:
    """Schedule the cancellation and the time-outs of the request of `seq`, which arrives now.

    patience  ns until its client gives up; None: it does not
    abort     called with CANCELLED or TIMED_OUT
    """
    timeout, queue_timeout = seq.request.patience.timeout, seq.request.patience.queue_timeout
    if patience is not None:
        agenda.after(patience, CANCELLATION, lambda _: abort(seq, Kind.CANCELLED))
    if timeout is not None:
        agenda.after(timeout, TIMEOUT, lambda _: abort(seq, Kind.TIMED_OUT))
    if queue_timeout is not None:
        agenda.after(queue_timeout, TIMEOUT, lambda _: None if seq.serial >= 0 else abort(seq, Kind.TIMED_OUT))
