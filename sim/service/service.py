"""A whole service: clients that try again, a router that knows who is up, replicas that fail, pools that hand over.

What `sim.service.cluster` does with requests that go to one replica and end there, this does with journeys: it is the
same virtual time, the same replicas and routers. Knows no file, no policy and no random number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace

from sim.engine.scheduler import Scheduler
from sim.log.events import EventLog, Kind
from sim.log.service_log import Trail
from sim.request import Leg, Nanoseconds, Request, Sequence
from sim.service.bounds import NONE, Bounds, run_to_end
from sim.service.clients import Clients, OpenLoop
from sim.service.event_order import ARRIVAL, CANCELLATION, TIMEOUT
from sim.service.failure import Failure
from sim.service.outages import Breakdowns, Counting, Outages
from sim.service.pools import Journey, Pool, Station, misfit
from sim.service.replica import Clock, Replica

FAILED = "its replica failed"


@dataclass(frozen=True)
class Retry:
    """Clients that send a request again: at most `attempts` times in all, `pause(request, attempts so far)` ns apart.

    `after` says what they try again after: REJECTED (unless it could never run), TIMED_OUT, INTERRUPTED (its replica
    failed, and its work was lost).
    """

    attempts: int
    pause: Callable[[Request, int], Nanoseconds]
    after: tuple[Kind, ...] = (Kind.REJECTED, Kind.TIMED_OUT, Kind.INTERRUPTED)


@dataclass(frozen=True)
class Transfer:
    """What it takes to hand a request over: `latency` ns, and `per_token` ns a position on its replica's link."""

    latency: Nanoseconds
    per_token: float


class Service:
    """Journeys from the first sending to the end that the client sees."""

    def __init__(
        self,
        env: Clock,
        clients: Clients,
        pools: Several[Pool],
        retry: Retry | None,
        outages: Outages | None,
        transfer: Transfer | None,
        macro: bool,
    ) -> None:
        self.env = env
        self.clients = clients
        self.agenda = Counting(env)
        self.retry = retry
        self.transfer = transfer
        self.trail = Trail()
        self.open = 0
        self.replicas: list[Replica] = []
        self.stations: list[Station] = []
        self.station_of: list[Station] = []
        self.aboard: list[dict[int, Journey]] = []
        for pool in pools:
            first = len(self.replicas)
            members = [
                Replica(env, scheduler, cost, macro, self.listener(first + place), first + place)
                for place, (scheduler, cost) in enumerate(pool.replicas)
            ]
            station = Station(pool.router, members, first)
            self.stations.append(station)
            self.replicas += members
            self.station_of += [station] * len(members)
            self.aboard += [{} for _ in members]
        self.link_free = [0] * len(self.replicas)
        if outages is not None:
            Breakdowns(env, outages, self.replicas, self.trail, self.busy, self.fell, self.rose)

    def listener(self, number: int) -> Callable[[Sequence], None]:
        """What hears of the ends on a replica."""
        return lambda seq: self.ended(number, seq)

    # ------------------------------------------------------------------ attempts

    def send(self, request: Request) -> bool:
        """A client's request is there now; whether it was taken, not rejected for good or given up on its way."""
        journey = Journey(request, self.trail.open(request, self.env.now))
        self.open += 1
        patience = self.clients.patience(request)
        if patience is not None and patience <= 0:
            self.close(journey, Kind.CANCELLED)
            return False
        if patience is not None:
            self.env.after(patience, CANCELLATION, lambda _: self.stop(journey, Kind.CANCELLED))
        self.attempt(journey)
        journey.fresh = False
        return not journey.over

    def attempt(self, journey: Journey) -> None:
        """It is there, for the first time or again; its time-outs count from now."""
        request, attempt = journey.request, journey.attempt
        journey.admitted = False
        journey.leg = Leg()
        if len(self.stations) > 1:
            if complaint := self.stations[1].complaint(journey):
                self.close(journey, Kind.REJECTED, complaint)
                return
            journey.leg = Leg(hands_over=True)
        if request.timeout is not None:
            self.env.after(request.timeout, TIMEOUT, lambda _: self.time_out(journey, attempt, waiting=False))
        if request.queue_timeout is not None:
            self.env.after(request.queue_timeout, TIMEOUT, lambda _: self.time_out(journey, attempt, waiting=True))
        self.dispatch(journey)

    def dispatch(self, journey: Journey) -> None:
        """To a replica of the pool that does its next leg; it waits at the router if none is up."""
        station = self.stations[-1 if journey.leg.ready else 0]
        place = station.choose(journey)
        if place is None:
            journey.state = "held"
            journey.since = self.env.now
            station.held.append(journey)
            return
        replica, number = station.replicas[place], station.first + place
        seq = replica.submit(journey.request, replace(journey.leg, sent=journey.sent))
        journey.sent += 1
        log = replica.scheduler.log
        self.trail.leg(journey.number, journey.attempt, number, len(log.requests) - 1)
        if seq is None:
            self.turned_away(journey, replica.scheduler)
            return
        journey.state, journey.seq, journey.replica = "aboard", seq, number
        station.loads[place].add(journey.request)
        self.aboard[number][seq.index] = journey

    def turned_away(self, journey: Journey, scheduler: Scheduler) -> None:
        """An engine has rejected it; what could never run there is not tried again."""
        reason = scheduler.complaint
        if misfit(journey, scheduler):
            self.close(journey, Kind.REJECTED, reason)
        else:
            self.failed(journey, Kind.REJECTED, reason)

    def failed(self, journey: Journey, kind: Kind, reason: str = "") -> None:
        """An attempt came to nothing: there is another one, as long on its way as the first, or the journey ends."""
        retry = self.retry
        if retry is None or kind not in retry.after or journey.attempt + 1 >= retry.attempts:
            self.close(journey, Kind.REJECTED if kind == Kind.INTERRUPTED else kind, reason)
            return
        journey.state = "pausing"
        pause = retry.pause(journey.request, journey.attempt + 1)
        self.env.after(pause + self.clients.delay, ARRIVAL, lambda _: self.try_again(journey))

    def try_again(self, journey: Journey) -> None:
        """Its client has waited long enough, and has sent it again."""
        if not journey.over:
            journey.attempt += 1
            self.trail.retries += 1
            self.attempt(journey)

    def close(self, journey: Journey, kind: Kind, reason: str = "") -> None:
        """It has ended for its client."""
        journey.over = True
        self.open -= 1
        self.trail.end(self.env.now, journey.number, kind, reason)
        if self.clients.react and not journey.fresh:
            whole = journey.seq if kind == Kind.FINISHED else None
            self.clients.ended(whole or Sequence(journey.request, -1))

    # ------------------------------------------------------------------ ends

    def ended(self, number: int, seq: Sequence) -> None:
        """A leg has ended on an engine."""
        journey = self.leave(number, seq)
        if journey.ending is not None:
            kind, journey.ending = journey.ending, None
            self.stopped(journey, kind)
        elif seq.leaves:
            self.hand_over(journey, number, seq)
        else:
            self.close(journey, Kind.FINISHED if seq.finished else Kind.CANCELLED)

    def leave(self, number: int, seq: Sequence) -> Journey:
        """It is no longer on that engine."""
        journey = self.aboard[number].pop(seq.index)
        station = self.station_of[number]
        station.loads[number - station.first].add(seq.request, -1)
        journey.admitted = journey.admitted or seq.entered >= 0
        return journey

    def time_out(self, journey: Journey, attempt: int, waiting: bool) -> None:
        """An attempt has taken too long; with `waiting`, only if it has not been admitted by now."""
        if attempt != journey.attempt or journey.state == "pausing":
            return
        seq = journey.seq
        inside = journey.admitted or (journey.state == "aboard" and seq is not None and seq.entered >= 0)
        if not (waiting and inside):
            self.stop(journey, Kind.TIMED_OUT)

    def stop(self, journey: Journey, kind: Kind) -> None:
        """Its client gives up, or the attempt has taken too long, wherever it is."""
        if journey.over:
            return
        if journey.state == "aboard":
            assert journey.seq is not None
            journey.ending = kind
            self.replicas[journey.replica].abort(journey.seq, kind)
            journey.ending = None
            return
        if journey.state == "held":
            self.stations[-1 if journey.leg.ready else 0].held.remove(journey)
            self.trail.hold(journey.number, journey.since, self.env.now)
        journey.moves += 1
        self.stopped(journey, kind)

    def stopped(self, journey: Journey, kind: Kind) -> None:
        """It is nowhere any more."""
        if kind == Kind.CANCELLED:
            self.close(journey, kind)
        else:
            self.failed(journey, kind)

    # ------------------------------------------------------------------ from one pool to the other

    def hand_over(self, journey: Journey, number: int, seq: Sequence) -> None:
        """Its prompt is computed: its KV goes to the pool that decodes, over a link of the replica."""
        assert self.transfer is not None
        now = self.env.now
        begins = max(now, self.link_free[number])
        self.link_free[number] = begins + round(self.transfer.per_token * seq.goal)
        arrives = self.link_free[number] + self.transfer.latency
        self.trail.transfer(journey.number, now, arrives, seq.goal)
        journey.leg = Leg(given=seq.goal + 1 - seq.request.prompt, ready=seq.goal)
        self.arrive(journey, arrives - now)

    def arrive(self, journey: Journey, delay: Nanoseconds) -> None:
        """It comes to a router so long from now, unless it ends on the way.

        Even at once it is an arrival like any other: all of one instant precede the plans.
        """
        journey.state = "moving"
        journey.moves += 1
        move = journey.moves
        self.env.after(delay, ARRIVAL, lambda _: self.dispatch(journey) if move == journey.moves else None)

    # ------------------------------------------------------------------ outages

    def busy(self) -> bool:
        """Whether a request has not ended, or may still come."""
        return bool(self.open or self.agenda.pending)

    def fell(self, number: int, failure: Failure) -> None:
        """A replica has failed: no router sends there, and those it has lost try again, move on, or end."""
        station = self.station_of[number]
        station.loads[number - station.first].up = False
        stranded = [(self.leave(number, seq), leg) for seq, leg in failure.gone]
        for journey, leg in stranded:
            if failure.fate == Kind.INTERRUPTED:
                self.failed(journey, Kind.INTERRUPTED, FAILED)
            else:
                journey.leg = replace(leg, hands_over=len(self.stations) > 1 and not leg.ready)
                self.arrive(journey, 0)

    def rose(self, number: int) -> None:
        """A replica is there again; who waited at the router goes in."""
        station = self.station_of[number]
        station.loads[number - station.first].up = True
        held, station.held = station.held, deque()
        for journey in held:
            self.trail.hold(journey.number, journey.since, self.env.now)
            self.arrive(journey, 0)

    def check(self) -> None:
        """Nothing vanished: what holds once every request has ended. Raises AssertionError."""
        assert not self.open, f"{self.open} requests have not ended"
        assert not any(self.aboard), "a request is taken to be on an engine"
        assert not any(station.held for station in self.stations), "a request waits at a router"
        for replica in self.replicas:
            replica.scheduler.check()


@dataclass(frozen=True)
class Run:
    """What a service did: the log of each replica, in order, and what happened between them and the clients."""

    logs: list[EventLog]
    trail: Trail


def serve(
    requests: Iterable[Request] | Clients,
    pools: Several[Pool],
    *,
    retry: Retry | None = None,
    outages: Outages | None = None,
    transfer: Transfer | None = None,
    macro: bool = True,
    progress: Callable[[int], None] | None = None,
    bounds: Bounds = NONE,
) -> Run:
    """Run a service to the end of the last request.

    One pool serves requests whole. Of two, the first computes prompts and first tokens, and hands over by `transfer`
    to the second, which decodes. See `sim.service.cluster.simulate` for the rest. Raises ValueError for two pools
    without `transfer`, with late eviction or with static batches.
    """
    if len(pools) > 1:
        if transfer is None:
            raise ValueError("two pools need a transfer between them")
        for scheduler, _ in (replica for pool in pools for replica in pool.replicas):
            if scheduler.config.evict == "after" or scheduler.closed:
                raise ValueError("two pools need continuous batching and evict 'before'")
    clients = requests if isinstance(requests, Clients) else OpenLoop(requests)
    env = Clock(initial_time=0)
    service = Service(env, clients, pools, retry, outages, transfer, macro)
    logs = [replica.scheduler.log for replica in service.replicas]
    clients.start(service.agenda, service.send)
    run_to_end(env, logs, service.trail, bounds, progress)
    service.check()
    return Run(logs, service.trail)
