"""A service: clients that may try again, routers, replicas that may fail, pools that hand requests over.

    serve                   clients send, virtual time runs to the last end, everything is checked
    Service.send            a request arrives (`sim.service.attempts`): an attempt begins
    Service.dispatch        the router of its pool chooses a replica for its next leg
    Service.ended           the leg has ended: the request is handed over, tried again, or closed

`sim.service.direct` is the short way for requests of one attempt and one leg, with the same logs. Independent of
files, of policies by name, and of random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Several
from dataclasses import replace

from sim.engine.planner import Planner
from sim.log.events import Kind
from sim.log.service_log import Run, ServiceLog
from sim.request import WHOLE, Leg, Nanoseconds, Request
from sim.sequence import Sequence
from sim.service.attempts import Attempts, Retry
from sim.service.bounds import NONE, Bounds, run_to_end
from sim.service.clients import Clients, OpenLoop
from sim.service.clock import Clock
from sim.service.core import run as core
from sim.service.direct import Direct
from sim.service.event_order import ARRIVAL, Agenda
from sim.service.failure import Failure
from sim.service.outages import Breakdowns, CountingAgenda, Outages
from sim.service.pools import Pool, RunningPool, check_pools
from sim.service.replica import Replica
from sim.service.routing import RoutedRequest
from sim.service.transfers import Fetches, Transfer

__all__ = ["Retry", "Run", "Transfer", "serve"]

FAILED = "its replica failed"


class Service(Attempts):
    """The replicas of all pools, and which requests are on them.

    on_replica  for each replica the requests that are on it, by their index in its log
    link_free   for each replica when its link to the next pool is free again, ns, where KV is sent
    fetches     the KV that waits to be fetched, where it is
    """

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
        super().__init__(env, clients, retry, ServiceLog([len(pool.replicas) for pool in pools]))
        self.env = env
        self.transfer = transfer
        self.arrivals: Agenda = env
        self.replicas: list[Replica] = []
        self.pools: list[RunningPool] = []
        self.pool_of: list[RunningPool] = []
        fetched = self.fetched if transfer is not None and transfer.pull else None
        for pool in pools:
            running = RunningPool(env, pool, len(self.replicas), macro, self.ended, fetched)
            self.pools.append(running)
            self.replicas += running.replicas
            self.pool_of += [running] * len(running.replicas)
        self.on_replica: list[dict[int, RoutedRequest]] = [{} for _ in self.replicas]
        self.link_free = [0] * len(self.replicas)
        self.fetches = Fetches(env, transfer, self.replicas, self.service_log) if transfer and transfer.pull else None
        self.prompt_alone = self.prefill(WHOLE)  # the first leg of a request of two pools
        if outages is not None:
            self.arrivals = arrivals = CountingAgenda(env)

            def busy() -> bool:
                """Whether a request has not ended, or may still come."""
                return bool(self.open or arrivals.pending)

            Breakdowns(env, outages, self.replicas, self.service_log, busy, self.fell, self.rose)

    # ------------------------------------------------------------------ to a replica

    def first_leg(self, routed: RoutedRequest) -> str:
        """The whole request; or, of two pools, its prompt, if the second could do the rest."""
        routed.leg = WHOLE
        if len(self.pools) > 1:
            if complaint := self.pools[1].complaint(routed.request, routed.leg):
                return complaint
            routed.leg = self.prompt_alone
        return ""

    def prefill(self, leg: Leg) -> Leg:
        """What the first of two pools does of a request that is as `leg` says."""
        return replace(leg, hands_over=True, kept=self.fetches is not None)

    def pool_for(self, routed: RoutedRequest) -> RunningPool:
        """The pool that does the next leg of a request."""
        return self.pools[-1 if routed.leg.ready else 0]

    def dispatch(self, routed: RoutedRequest) -> None:
        """Send a request to a replica of the pool that does its next leg; it waits at the router if none is up."""
        pool = self.pool_for(routed)
        place = pool.choose(routed.request, routed.leg, routed.sent)
        if place is None:
            routed.state = "held"
            routed.since = self.env.now
            pool.held.append(routed)
            return
        replica, number = pool.replicas[place], pool.first + place
        index = len(replica.scheduler.log.requests)
        self.on_replica[number][index] = routed  # what `submit` plans may fetch its KV already
        seq = replica.submit(routed.request, replace(routed.leg, sent=routed.sent) if routed.sent else routed.leg)
        routed.sent += 1
        self.service_log.leg(routed.number, routed.attempt, number, index)
        if seq is None:
            del self.on_replica[number][index]
            self.turned_away(routed, replica.scheduler)
            return
        routed.state, routed.seq, routed.replica = "on replica", seq, number
        pool.loads[place].add(routed.request)

    def turned_away(self, routed: RoutedRequest, scheduler: Planner) -> None:
        """An engine has rejected a request; what could never run there is not tried again."""
        reason = scheduler.complaint
        if scheduler.misfit(routed.request, routed.leg):
            self.close(routed, Kind.REJECTED, reason)
        else:
            self.failed(routed, Kind.REJECTED, reason)

    # ------------------------------------------------------------------ from a replica

    def ended(self, number: int, seq: Sequence) -> None:
        """A leg has ended on an engine."""
        routed = self.leave(number, seq)
        if routed.ending is not None:
            kind, routed.ending = routed.ending, None
            if kind != Kind.MOVED:
                self.stopped(routed, kind, FAILED if kind == Kind.INTERRUPTED else "")
        elif seq.target.leaves:
            self.hand_over(routed, number, seq)
        else:
            self.close(routed, Kind.FINISHED if seq.finished else Kind.CANCELLED)

    def leave(self, number: int, seq: Sequence) -> RoutedRequest:
        """A request is no longer on a replica."""
        routed = self.on_replica[number].pop(seq.index)
        pool = self.pool_of[number]
        pool.loads[number - pool.first].add(seq.request, -1)
        routed.admitted |= seq.serial >= 0
        return routed

    def withdraw(self, routed: RoutedRequest, kind: Kind) -> bool:
        """Take a request from a router or from its way; on a replica it is aborted, and `ended` is called: False."""
        if routed.state == "on replica":
            assert routed.seq is not None
            routed.ending = kind
            self.replicas[routed.replica].abort(routed.seq, kind)
            routed.ending = None
            return False
        if routed.state == "held":
            self.pool_for(routed).held.remove(routed)
            self.service_log.hold(routed.number, routed.since, self.env.now)
        routed.moves += 1
        return True

    def hand_over(self, routed: RoutedRequest, number: int, seq: Sequence) -> None:
        """A prompt is computed: its KV goes to the pool that decodes, over a link of the replica."""
        assert self.transfer is not None
        now, goal = self.env.now, seq.target.goal
        given = goal + 1 - seq.request.prompt
        if self.fetches is not None:
            kept = self.fetches.keep(routed, number, seq)
            routed.leg = Leg(given, ready=goal, fetches=True) if kept else self.prefill(Leg(given, redone=seq.peak))
            self.arrive(routed, 0)
            return
        begins = max(now, self.link_free[number])
        self.link_free[number] = begins + round(self.transfer.per_token * goal)
        arrives = self.link_free[number] + self.transfer.latency
        self.service_log.transfer(routed.number, now, arrives, goal)
        routed.leg = Leg(given, ready=goal)
        self.arrive(routed, arrives - now)

    def arrive(self, routed: RoutedRequest, delay: Nanoseconds) -> None:
        """A request comes to a router in `delay` ns, unless it ends on the way.

        Even at once it is an arrival like any other: all of one instant precede the plans.
        """
        routed.state = "moving"
        routed.moves += 1
        move = routed.moves
        self.env.after(delay, ARRIVAL, lambda _: self.dispatch(routed) if move == routed.moves else None)

    def fetched(self, number: int, seq: Sequence, positions: int | None) -> None:
        """A replica has admitted a request and fetches its KV; or, with None, has preempted it before that came."""
        assert self.fetches is not None
        routed = self.on_replica[number][seq.index]
        if positions is None:
            self.fetches.interrupt(routed)
        else:
            self.fetches.begin(routed, number, seq, positions)

    def let_go(self, routed: RoutedRequest) -> None:
        """The KV of a request that waits to be fetched is not needed any more."""
        if self.fetches is not None:
            self.fetches.drop(routed)

    # ------------------------------------------------------------------ outages

    def fell(self, number: int, failure: Failure) -> None:
        """A replica has failed: no router sends there, and those it has lost try again, move on, or end."""
        self.pool_of[number].fall(number)
        stranded = [(self.leave(number, seq), leg) for seq, leg in failure.gone]
        if self.fetches is not None:
            self.lose_kept(self.fetches, number, failure)
        for routed, leg in stranded:
            if failure.fate == Kind.INTERRUPTED:
                self.failed(routed, Kind.INTERRUPTED, FAILED)
                continue
            if self.fetches is None or routed not in self.fetches.kept:
                routed.leg = self.prefill(leg) if len(self.pools) > 1 and not leg.ready else leg
            self.arrive(routed, 0)

    def lose_kept(self, fetches: Fetches, number: int, failure: Failure) -> None:
        """A replica has failed: transfers to it end, and KV kept there is lost with all its requests have done."""
        for routed, kept in fetches.kept.items():
            if kept.target == number:
                fetches.interrupt(routed)
        for routed in fetches.lost(number):
            leg, moved = routed.leg, failure.fate != Kind.INTERRUPTED
            withdrawn = self.withdraw(routed, Kind.MOVED if moved else Kind.INTERRUPTED)
            if moved:
                routed.leg = self.prefill(Leg(leg.given, redone=leg.ready))
                self.arrive(routed, 0)
            elif withdrawn:
                self.failed(routed, Kind.INTERRUPTED, FAILED)

    def rose(self, number: int) -> None:
        """A replica is there again; the requests held at the router are sent on."""
        for routed in self.pool_of[number].rise(number):
            self.service_log.hold(routed.number, routed.since, self.env.now)
            self.arrive(routed, 0)

    def check(self) -> None:
        """Check what holds once every request has ended: nothing is left over. Raises AssertionError."""
        assert not self.open, f"{self.open} requests have not ended"
        assert not any(self.on_replica), "a request is taken to be on an engine"
        assert not any(pool.held for pool in self.pools), "a request waits at a router"
        if self.fetches is not None:
            self.fetches.check()
        for replica in self.replicas:
            replica.scheduler.check()


def serve(
    requests: Iterable[Request] | Clients,
    pools: Several[Pool],
    *,
    retry: Retry | None = None,
    outages: Outages | None = None,
    transfer: Transfer | None = None,
    direct: bool = False,
    macro: bool = True,
    progress: Callable[[int], None] | None = None,
    bounds: Bounds = NONE,
) -> Run:
    """Run a service to the end of the last request.

    One pool serves requests whole. Of two, the first computes prompts and first tokens, and hands over by `transfer`
    to the second, which decodes.

    requests  in order of arrival, each sent on its own schedule; or clients that react to the ends of requests
    direct    keep no service log: of one pool, without retries and outages, the logs of the replicas say everything
    macro     False makes every step an event of its own: the reference, slower, with the same log
    progress  called now and then with the number of requests that have ended

    Raises ValueError for two pools without `transfer`, with late eviction or with static batches, and for a service
    that needs its log; `sim.service.bounds.Stopped` for a run beyond its bounds, and for one without progress.
    """
    if direct and (len(pools) > 1 or retry or outages):
        raise ValueError("retries, outages and two pools need a service log")
    check_pools(pools, transfer)
    clients = requests if isinstance(requests, Clients) else OpenLoop(requests)
    if direct and macro and core.simulated(clients, pools[0], progress, bounds):
        return Run([scheduler.log for scheduler, _ in pools[0].replicas], None, core=True)
    env = Clock(initial_time=0)
    service = (
        Direct(env, clients, pools[0], macro)
        if direct
        else Service(env, clients, pools, retry, outages, transfer, macro)
    )
    logs = [replica.scheduler.log for replica in service.replicas]
    clients.start(service.arrivals, service.send)
    run_to_end(env, logs, service.service_log, bounds, progress)
    service.check()
    return Run(logs, service.service_log)
