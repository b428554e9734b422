"""A whole run: clients send requests, a replica works, the log comes out. Knows no file and no policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sim.clients import Clients, OpenLoop
from sim.cost import StepCost
from sim.events import EventLog, Kind
from sim.replica import CANCELLATION, TIMEOUT, At, Clock, Replica
from sim.request import Request, Sequence
from sim.scheduler import Scheduler


class Gateway:
    """Passes requests on to the replica, and ends them when their client gives up."""

    def __init__(self, env: Clock, replica: Replica) -> None:
        self.env = env
        self.replica = replica

    def send(self, request: Request) -> bool:
        """A request enters now; whether it was taken, not rejected."""
        seq = self.replica.submit(request)
        if seq is None:
            return False
        self.set_limits(seq)
        return True

    def set_limits(self, seq: Sequence) -> None:
        """Schedule when the client of a request gives up on it."""
        request, abort = seq.request, self.replica.abort
        if request.cancel_after is not None:
            At(self.env, request.cancel_after, CANCELLATION, lambda _: abort(seq, Kind.CANCELLED))
        if request.timeout is not None:
            At(self.env, request.timeout, TIMEOUT, lambda _: abort(seq, Kind.TIMED_OUT))
        if request.queue_timeout is not None:
            At(self.env, request.queue_timeout, TIMEOUT, lambda _: self.expire(seq))

    def expire(self, seq: Sequence) -> None:
        """A request times out if it has waited until now."""
        if seq.entered < 0:
            self.replica.abort(seq, Kind.TIMED_OUT)


def simulate(
    requests: Iterable[Request] | Clients,
    scheduler: Scheduler,
    cost: StepCost,
    macro: bool = True,
    progress: Callable[[int], None] | None = None,
) -> EventLog:
    """Run to the end of the last request; returns the log.

    Requests come in order of arrival, each on its schedule, or from clients that react to what becomes of them.
    `macro=False` makes every step an event of its own: the reference, slower, with the same log.
    `progress` is told now and then how many requests have ended.
    """
    clients = requests if isinstance(requests, Clients) else OpenLoop(requests)
    env = Clock(initial_time=0)
    replica = Replica(env, scheduler, cost, macro, on_end=clients.ended if clients.react else None)
    clients.start(env, Gateway(env, replica).send)
    if progress is None:
        env.run()
    else:
        report_while_running(env, scheduler.log, progress)
    scheduler.check()
    return scheduler.log


def report_while_running(env: Clock, log: EventLog, progress: Callable[[int], None]) -> None:
    """Run to the end, and tell `progress` whenever another thousand events have passed."""
    while env.peek() != float("inf"):
        for _ in range(1000):
            if env.peek() == float("inf"):
                break
            env.step()
        progress(log.ended)
