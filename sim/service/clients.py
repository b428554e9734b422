"""Who sends the requests, and when: on schedule, through a window, each client after its last answer; from how far.

Knows nothing of engines: it sends through a callable and hears of every end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

from sim.log.events import Kind
from sim.request import Nanoseconds, Request, Sequence
from sim.service.event_order import ARRIVAL, CANCELLATION, TIMEOUT, Agenda

Send = Callable[[Request], bool]
"""Sends a request now; whether it was taken, not rejected."""


class Clients(ABC):
    """Sends requests by `send` once it is started; those that `react` hear of the end of every one taken.

    What they send is `delay` ns on its way to the engine.
    """

    react = False
    delay: Nanoseconds = 0
    agenda: Agenda
    send: Send

    def start(self, agenda: Agenda, send: Send) -> None:
        """Begin, at the present instant."""
        self.agenda, self.send = agenda, send
        self.begin()

    def patience(self, request: Request) -> Nanoseconds | None:
        """How much longer its client waits for a request that arrives now; None: for ever.

        0 or less: it has given up while the request was on its way.
        """
        return None if request.cancel_after is None else request.cancel_after - self.delay

    @abstractmethod
    def begin(self) -> None:
        """Schedule what comes first."""

    def ended(self, seq: Sequence) -> None:
        """A request that was taken has ended now; `seq.finished`: with all its tokens."""


class OpenLoop(Clients):
    """Requests come on their own schedule, whatever becomes of those before.

    Raises ValueError for requests that are not in order of arrival.
    """

    def __init__(self, requests: Iterable[Request]) -> None:
        self.requests: Iterator[Request] = iter(requests)
        self.due: Request | None = None

    def begin(self) -> None:
        """Expect the first arrival."""
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
        """One request arrives; the next is scheduled first, so that all of one instant precede its plan."""
        request = self.due
        assert request is not None
        self.expect_next()
        self.take(request)

    def take(self, request: Request) -> None:
        """What to do with a request that is due."""
        self.send(request)


class Window(OpenLoop):
    """At most `size` requests in flight: one that comes then waits at the client, first come, first sent.

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
        """There is room for one more, at this very instant."""
        self.in_flight -= 1
        if self.held_back:
            self.agenda.after(0, ARRIVAL, lambda _: self.send_on())

    def send_on(self) -> None:
        """Send as many as the window allows."""
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
        """All clients send at once; those for whom there is no request never do."""
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
        """A client has its answer."""
        self.reflect()

    def reflect(self) -> None:
        """A client thinks, then sends the next."""
        self.agenda.after(next(self.think), ARRIVAL, self.send_next)


class Distant(Clients):
    """Clients whose requests are `delay` ns on their way to the engine: prepared, sent, read.

    What they send enters the engine's queue so much later, and they keep their requests in flight all the while.
    Answers take no time, nor does the word of a client that gives up: a delay on the way back would only add to this
    one. Who gives up on a request that is on its way goes on at once; the request is discarded where it arrives.
    Raises ValueError for a negative delay.
    """

    def __init__(self, clients: Clients, delay: Nanoseconds) -> None:
        if delay < 0:
            raise ValueError(f"delay is {delay} ns; expected 0 or more")
        self.clients = clients
        self.delay = delay
        self.react = clients.react

    def begin(self) -> None:
        """The clients begin, and send into the distance."""
        self.clients.start(self.agenda, self.dispatch)

    def dispatch(self, request: Request) -> bool:
        """A request is on its way; whether it will be taken is not known yet."""
        patience = self.patience(request)
        given_up = patience is not None and patience <= 0
        if given_up:
            assert request.cancel_after is not None
            self.agenda.after(request.cancel_after, CANCELLATION, lambda _: self.clients.ended(Sequence(request, -1)))
        self.agenda.after(self.delay, ARRIVAL, lambda _: self.deliver(request, given_up))
        return True

    def deliver(self, request: Request, given_up: bool) -> None:
        """It is there; to its client, a rejection is an end like any other."""
        if not self.send(request) and not given_up:
            self.clients.ended(Sequence(request, -1))

    def ended(self, seq: Sequence) -> None:
        """A request that was taken has ended now, and its client knows."""
        self.clients.ended(seq)


def set_limits(
    agenda: Agenda, seq: Sequence, patience: Nanoseconds | None, abort: Callable[[Sequence, Kind], None]
) -> None:
    """Have the request of `seq`, which arrives now, aborted when its client gives up, and when it times out."""
    request = seq.request
    if patience is not None:
        agenda.after(patience, CANCELLATION, lambda _: abort(seq, Kind.CANCELLED))
    if request.timeout is not None:
        agenda.after(request.timeout, TIMEOUT, lambda _: abort(seq, Kind.TIMED_OUT))
    if request.queue_timeout is not None:
        agenda.after(
            request.queue_timeout, TIMEOUT, lambda _: None if seq.entered >= 0 else abort(seq, Kind.TIMED_OUT)
        )
