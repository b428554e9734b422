"""Transfers of KV from the replica that computed a prompt to the one that decodes.

Every replica has one link, shared equally by the transfers under way on it. A transfer uses that of the replica that
has the KV and that of the replica that fetches it, and is as fast as the smaller of its two shares; what it leaves of
the other link is not used. A transfer that is alone takes `per_token` ns a position.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Several
from dataclasses import dataclass

from sim.engine.scheduler import Scheduler
from sim.log.service_log import ServiceLog
from sim.request import Nanoseconds
from sim.sequence import Sequence
from sim.service.event_order import ARRIVAL, Agenda
from sim.service.replica import Replica
from sim.service.routing import RoutedRequest


@dataclass(frozen=True)
class Transfer:
    """The time to hand a request over: `latency` ns, and `per_token` ns a position on the link of its replica.

    pull  the KV stays where it is until the replica that decodes has a slot and pages for it, and fetches it over
          the links of both; otherwise it is sent at once, one request after the other, and room is found on arrival
    """

    latency: Nanoseconds
    per_token: float
    pull: bool = False


class Flow:
    """A transfer under way between two replicas.

    left   ns that what is left of it would take alone, at instant `since`
    share  so many transfers share the busier of its links
    wake   the event of its end, if that is not stale
    done   called at its end
    """

    __slots__ = ("done", "left", "share", "since", "source", "target", "wake")

    def __init__(self, source: int, target: int, left: float, since: Nanoseconds, done: Callable[[], None]) -> None:
        self.source = source
        self.target = target
        self.left = left
        self.since = since
        self.done = done
        self.share = 0
        self.wake: object = None


class Links:
    """The links of all replicas; `flows`: the transfers under way at each replica, in order of their beginning."""

    def __init__(self, agenda: Agenda, per_token: float, replicas: int) -> None:
        self.agenda = agenda
        self.per_token = per_token
        self.flows: list[dict[Flow, None]] = [{} for _ in range(replicas)]

    def start(self, source: int, target: int, positions: int, done: Callable[[], None]) -> Flow:
        """KV of so many positions goes from one replica to another from now on; `done` is called when it is there."""
        flow = Flow(source, target, self.per_token * positions, self.agenda.now, done)
        self.flows[source][flow] = self.flows[target][flow] = None
        self.share_out(source, target)
        return flow

    def stop(self, flow: Flow) -> None:
        """A transfer has ended, or is not needed any more."""
        flow.wake = None
        del self.flows[flow.source][flow], self.flows[flow.target][flow]
        self.share_out(flow.source, flow.target)

    def share_out(self, source: int, target: int) -> None:
        """Set the speed of all transfers on two links anew."""
        now = self.agenda.now
        for flow in self.flows[source] | self.flows[target]:
            share = max(len(self.flows[flow.source]), len(self.flows[flow.target]))
            if share == flow.share:
                continue
            if flow.share:
                flow.left = max(0.0, flow.left - (now - flow.since) / flow.share)
            flow.share, flow.since = share, now
            flow.wake = self.agenda.after(round(flow.left * share), ARRIVAL, self.ends(flow))

    def ends(self, flow: Flow) -> Callable[[object], None]:
        """What is called when a transfer is to end; a stale event, from before its speed changed, is ignored."""

        def end(event: object) -> None:
            if event is flow.wake:
                self.stop(flow)
                flow.done()

        return end

    def check(self) -> None:
        """Check what holds once every request has ended: no transfer is under way. Raises AssertionError."""
        assert not any(self.flows), "a transfer is still under way"


class Kept:
    """The KV of a request that waits on replica `source`, in the pages of `seq`, since the instant `since`.

    target, fetcher  the replica that fetches it, and its sequence there; None: none does
    begun            since when, ns, and `positions` that are to be copied
    flow             the transfer, once its latency has passed
    """

    __slots__ = ("begun", "fetcher", "flow", "positions", "seq", "since", "source", "target")

    def __init__(self, source: int, seq: Sequence, since: Nanoseconds) -> None:
        self.source = source
        self.seq = seq
        self.since = since
        self.fetcher: Sequence | None = None
        self.flow: Flow | None = None
        self.target = -1
        self.begun = self.positions = 0


class Fetches:
    """The KV that waits to be fetched, by its request."""

    def __init__(
        self, agenda: Agenda, transfer: Transfer, replicas: Several[Replica], service_log: ServiceLog
    ) -> None:
        self.agenda = agenda
        self.transfer = transfer
        self.replicas = replicas
        self.service_log = service_log
        self.links = Links(agenda, transfer.per_token, len(replicas))
        self.kept: dict[RoutedRequest, Kept] = {}

    def keep(self, routed: RoutedRequest, source: int, seq: Sequence) -> bool:
        """The prompt of a request is computed; whether its pages are still there, and stay."""
        present = seq.serial in scheduler_of(self.replicas[source]).state.running
        if present:
            self.kept[routed] = Kept(source, seq, self.agenda.now)
        return present

    def begin(self, routed: RoutedRequest, target: int, fetcher: Sequence, positions: int) -> None:
        """A replica has a slot and pages for a request, and fetches so many positions."""
        kept = self.kept[routed]
        kept.target, kept.fetcher = target, fetcher
        kept.begun, kept.positions = self.agenda.now, positions

        def connected(_: object) -> None:
            if kept.fetcher is fetcher and self.kept.get(routed) is kept:
                kept.flow = self.links.start(kept.source, target, positions, lambda: self.copied(routed))

        self.agenda.after(self.transfer.latency, ARRIVAL, connected)

    def copied(self, routed: RoutedRequest) -> None:
        """A transfer has ended: the request decodes, and its pages at the source are free."""
        kept = self.kept[routed]
        kept.flow = None
        self.service_log.transfer(routed.number, kept.begun, self.agenda.now, kept.positions)
        fetcher, target = kept.fetcher, self.replicas[kept.target]
        assert fetcher is not None
        self.drop(routed)
        scheduler_of(target).state.handover.receive(fetcher)
        target.replan()

    def interrupt(self, routed: RoutedRequest) -> None:
        """The replica that fetches has lost its slot: what has been copied is lost, and the KV stays where it is."""
        kept = self.kept.get(routed)
        if kept is not None:
            if kept.flow is not None:
                self.links.stop(kept.flow)
            kept.fetcher = kept.flow = None

    def drop(self, routed: RoutedRequest) -> None:
        """The KV of a request is not needed any more, if any is kept."""
        kept = self.gone(routed)
        if kept is not None:
            source = self.replicas[kept.source]
            scheduler_of(source).state.handover.let_go(kept.seq)
            source.replan()

    def gone(self, routed: RoutedRequest) -> Kept | None:
        """The KV of a request is kept no longer; returns what was."""
        self.interrupt(routed)
        kept = self.kept.pop(routed, None)
        if kept is not None:
            self.service_log.keep(routed.number, kept.since, self.agenda.now, kept.source, kept.seq.computed)
        return kept

    def lost(self, source: int) -> list[RoutedRequest]:
        """A replica has failed, with all KV on it; returns the requests whose KV was kept there."""
        gone = [routed for routed, kept in self.kept.items() if kept.source == source]
        for routed in gone:
            self.gone(routed)
        return gone

    def check(self) -> None:
        """Check what holds once every request has ended: nothing is left over. Raises AssertionError."""
        assert not self.kept, f"KV of {len(self.kept)} requests was never fetched"
        self.links.check()


def scheduler_of(replica: Replica) -> Scheduler:
    """The scheduler of a replica of a pool."""
    assert isinstance(replica.scheduler, Scheduler), "engines with passes of one kind hand nothing over"
    return replica.scheduler
