"""A whole service: clients that try again, a router that knows who is up, replicas that fail, pools that hand over.

What `sim.cluster` does with requests that go to one replica and end there, this does with journeys: it is the same
virtual time, the same replicas and routers. Knows no file, no policy and no random number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass, field, replace

from sim.agenda import ARRIVAL, CANCELLATION, FAILURE, RESTART, TIMEOUT, Agenda, Rank
from sim.clients import Clients, OpenLoop
from sim.cluster import First, Load, Router, report_while_running
from sim.cost import StepCost
from sim.events import EventLog, Kind
from sim.replica import Clock, Replica
from sim.request import Leg, Nanoseconds, Request, Sequence
from sim.scheduler import Scheduler
from sim.trail import Trail

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
class Outages:
    """When replicas fail, and what becomes of their requests.

    when  for a replica's number (start, how long), in order of start, perhaps without end
    fate  PREEMPTED: the requests stay, and are computed again after the restart; MOVED: they go to another replica
          with the tokens they have; INTERRUPTED: they are lost
    """

    when: Mapping[int, Iterator[tuple[Nanoseconds, Nanoseconds]]]
    fate: Kind


@dataclass(frozen=True)
class Transfer:
    """What it takes to hand a request over: `latency` ns, and `per_token` ns a position on its replica's link."""

    latency: Nanoseconds
    per_token: float


@dataclass(frozen=True)
class Pool:
    """Replicas behind a router."""

    replicas: Several[tuple[Scheduler, StepCost]]
    router: Router = field(default_factory=First)


class Journey:
    """One request on its way. `state` is where it is: at a router, on an engine, between pools, or at its client.

    leg       what the next engine, or the present one, does of it
    ending    how the client, or a time-out, is ending it right now
    admitted  whether an engine has admitted it in this attempt
    moves     counts its transfers, so that one that is not awaited any more passes unheard
    """

    __slots__ = ("admitted", "attempt", "ending", "fresh", "leg", "moves", "number", "over", "replica", "request",
                 "seq", "since", "state")  # fmt: skip

    def __init__(self, request: Request, number: int) -> None:
        self.request = request
        self.number = number
        self.attempt = 0
        self.state = "sent"
        self.leg = Leg()
        self.seq: Sequence | None = None
        self.replica = -1
        self.ending: Kind | None = None
        self.admitted = False
        self.fresh = True
        self.over = False
        self.since = 0
        self.moves = 0


class Counting:
    """An agenda that knows how much of what was put on it is still to come."""

    def __init__(self, agenda: Agenda) -> None:
        self.agenda = agenda
        self.pending = 0

    @property
    def now(self) -> Nanoseconds:
        """The current instant."""
        return self.agenda.now

    def after(self, delay: Nanoseconds, rank: Rank, action: Callable[[object], None]) -> object:
        """Have `action` called so long from now."""
        self.pending += 1

        def act(event: object) -> None:
            self.pending -= 1
            action(event)

        return self.agenda.after(delay, rank, act)


class Station:
    """The replicas of one pool, numbered in the whole service from `first` on, and who waits for one to be up."""

    def __init__(self, router: Router, replicas: list[Replica], first: int) -> None:
        self.router = router
        self.replicas = replicas
        self.first = first
        self.loads = [Load() for _ in replicas]
        self.held: deque[Journey] = deque()
        self.alike = len({capacity(replica.scheduler) for replica in replicas}) == 1

    def choose(self, journey: Journey) -> int | None:
        """Where a request goes: to one that is up, of those that it fits on, if any; None if none of these is up."""
        loads = self.loads
        if not self.alike:
            fits = [not misfit(journey, replica.scheduler) for replica in self.replicas]
            if any(fits):
                loads = [load if fit else NOWHERE for load, fit in zip(loads, fits, strict=True)]
        return self.router.choose(journey.request, loads) if any(load.up for load in loads) else None

    def complaint(self, journey: Journey) -> str:
        """Why a request could never run on any of them; empty if it could."""
        complaint = ""
        for replica in self.replicas:
            complaint = misfit(journey, replica.scheduler)
            if not complaint:
                break
        return complaint


def capacity(scheduler: Scheduler) -> tuple[object, ...]:
    """What decides whether a request fits on an engine at all."""
    pool = scheduler.pool
    return pool.pages, pool.page_size, scheduler.max_model_len, scheduler.chunked or scheduler.token_budget


def misfit(journey: Journey, scheduler: Scheduler) -> str:
    """Why a request could never run on an engine; empty if it could."""
    return scheduler.misfit(Sequence(journey.request, -1, scheduler.evict_late, scheduler.max_model_len, journey.leg))


def nowhere() -> Load:
    """A replica that takes nothing."""
    load = Load()
    load.up = False
    return load


NOWHERE = nowhere()


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
        self.outages = outages
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
        self.downs = [0] * len(self.replicas)
        self.down_since = [(0, 0)] * len(self.replicas)
        for number, times in ({} if outages is None else outages.when).items():
            self.expect_outage(number, times)

    def listener(self, number: int) -> Callable[[Sequence], None]:
        """What hears of the ends on a replica."""
        return lambda seq: self.ended(number, seq)

    # ------------------------------------------------------------------ attempts

    def send(self, request: Request) -> bool:
        """A client sends a request now; whether it was taken, not rejected for good."""
        journey = Journey(request, self.trail.open(request, self.env.now))
        self.open += 1
        if request.cancel_after is not None:
            self.env.after(request.cancel_after, CANCELLATION, lambda _: self.stop(journey, Kind.CANCELLED))
        self.attempt(journey)
        journey.fresh = False
        return not journey.over

    def attempt(self, journey: Journey) -> None:
        """It is sent, for the first time or again; its time-outs count from now."""
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
        seq = replica.submit(journey.request, journey.leg)
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
        """An attempt came to nothing: there is another one, or the journey ends."""
        retry = self.retry
        if retry is None or kind not in retry.after or journey.attempt + 1 >= retry.attempts:
            self.close(journey, Kind.REJECTED if kind == Kind.INTERRUPTED else kind, reason)
            return
        journey.state = "pausing"
        pause = retry.pause(journey.request, journey.attempt + 1)
        self.env.after(pause, ARRIVAL, lambda _: self.try_again(journey))

    def try_again(self, journey: Journey) -> None:
        """The client has waited long enough."""
        if not journey.over:
            journey.attempt += 1
            self.attempt(journey)

    def close(self, journey: Journey, kind: Kind, reason: str = "") -> None:
        """It has ended for its client."""
        journey.over = True
        self.open -= 1
        self.trail.end(self.env.now, journey.number, kind, reason)
        if self.clients.react and not journey.fresh:
            finished = kind == Kind.FINISHED and journey.seq is not None
            self.clients.ended(journey.seq if finished and journey.seq else Sequence(journey.request, -1))

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

    def expect_outage(self, number: int, times: Iterator[tuple[Nanoseconds, Nanoseconds]]) -> None:
        """Schedule the next outage of a replica."""
        start, lasts = next(times, (None, 0))
        if start is not None:
            self.env.after(max(0, start - self.env.now), FAILURE, lambda _: self.fail(number, lasts, times))

    def fail(self, number: int, lasts: Nanoseconds, times: Iterator[tuple[Nanoseconds, Nanoseconds]]) -> None:
        """A replica fails now, for so long; nothing happens any more once there is nothing left to serve."""
        if not self.open and not self.agenda.pending:
            return
        self.env.after(lasts, RESTART, lambda _: self.restart(number))
        self.expect_outage(number, times)
        self.downs[number] += 1
        if self.downs[number] > 1:
            return
        assert self.outages is not None
        station, replica = self.station_of[number], self.replicas[number]
        station.loads[number - station.first].up = False
        crash = replica.fail(self.outages.fate)
        self.down_since[number] = crash.since, self.env.now
        replica.tell()
        stranded = [(self.leave(number, seq), leg) for seq, leg in crash.gone]
        for journey, leg in stranded:
            if self.outages.fate == Kind.INTERRUPTED:
                self.failed(journey, Kind.INTERRUPTED, FAILED)
            else:
                journey.leg = replace(leg, hands_over=len(self.stations) > 1 and not leg.ready)
                self.arrive(journey, 0)

    def restart(self, number: int) -> None:
        """An outage is over; who waited at the router goes in."""
        self.downs[number] -= 1
        if self.downs[number]:
            return
        station = self.station_of[number]
        self.trail.outage(number, *self.down_since[number], self.env.now)
        station.loads[number - station.first].up = True
        held, station.held = station.held, deque()
        for journey in held:
            self.trail.hold(journey.number, journey.since, self.env.now)
            self.arrive(journey, 0)
        self.replicas[number].restart()

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
) -> Run:
    """Run a service to the end of the last request.

    One pool serves requests whole. Of two, the first computes prompts and first tokens, and hands over by `transfer`
    to the second, which decodes. See `sim.cluster.simulate` for the rest. Raises ValueError for two pools without
    `transfer`, with late eviction or with static batches.
    """
    if len(pools) > 1:
        if transfer is None:
            raise ValueError("two pools need a transfer between them")
        for scheduler, _ in (replica for pool in pools for replica in pool.replicas):
            if scheduler.evict_late or scheduler.closed:
                raise ValueError("two pools need continuous batching and evict 'before'")
    clients = requests if isinstance(requests, Clients) else OpenLoop(requests)
    env = Clock(initial_time=0)
    service = Service(env, clients, pools, retry, outages, transfer, macro)
    logs = [replica.scheduler.log for replica in service.replicas]
    clients.start(service.agenda, service.send)
    if progress is None:
        env.run()
    else:
        report_while_running(env, logs, progress)
    service.check()
    return Run(logs, service.trail)
