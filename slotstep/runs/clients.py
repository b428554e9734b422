"""The clients of a scenario as the kernel takes them, and the time-outs of their requests.

Think times are fixed or given by the workload; nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat

from sim.request import Request
from sim.service.clients import Clients, ClosedLoop, Distant, OpenLoop, Window
from sim.service.sessions import Sessions
from slotstep.scenario import clients as sections
from traces.transforms.conversations import conversations


def limited(requests: Sequence[Request], limits: sections.Limits) -> Sequence[Request]:
    """The requests, with these time-outs where a request has none of its own."""
    if limits.queue_timeout is None and limits.timeout is None:
        return requests
    return [
        replace(
            request,
            patience=replace(
                request.patience,
                queue_timeout=request.patience.queue_timeout or limits.queue_timeout,
                timeout=request.patience.timeout or limits.timeout,
            ),
        )
        for request in requests
    ]


def clients(requests: Sequence[Request], given: sections.Clients | None, block_size: int) -> Clients:
    """The clients that send these requests. Sessions of unknown content get blocks of `block_size` tokens.

    Raises ValueError for sessions without think times, and for a workload without sessions.
    """
    if given is None:
        return OpenLoop(requests)
    near = nearby(requests, given, block_size)
    return Distant(near, given.delay) if given.delay else near


def nearby(requests: Sequence[Request], given: sections.Clients, block_size: int) -> Clients:
    """The clients without their network delay."""
    if given.sessions is not None:
        if not any(request.session for request in requests):
            raise ValueError("sessions: the workload has none; expected requests that belong to sessions")
        talk = given.sessions
        return Sessions(conversations(requests, block_size, talk.think, talk.history == "added"))
    if given.closed is not None:
        return ClosedLoop(requests, given.closed.clients, repeat(given.closed.think))
    if given.window is not None:
        return Window(requests, given.window)
    return OpenLoop(requests)
