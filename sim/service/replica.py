"""One scheduler on virtual time: plan, wait for what the batch costs, commit.

A decode batch that may repeat is scheduled to its end as one event. Whatever could change it earlier cuts it at the
first step boundary at or after that instant: an earlier wake-up is scheduled, and the stale one is ignored because it
is no longer the end of the batch. Independent of clients and of other replicas.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import accumulate

from sim.cost.drafted import Drafted
from sim.cost.forms import Curve, StepCost
from sim.cost.scaled import Scaled
from sim.engine.batch import Batch
from sim.engine.planner import Planner
from sim.engine.scheduler import Scheduler
from sim.log.events import Kind
from sim.request import WHOLE, Leg, Nanoseconds, Request
from sim.sequence import Sequence
from sim.service.clock import At, Clock
from sim.service.event_order import ARRIVAL, COMPLETION, PLANNING
from sim.service.failure import Failure, fail


class Replica:
    """Runs `scheduler` at `cost`; with `macro` off, every step is an event of its own.

    At depth 1 a plan is made when nothing is left to run, at depth 2 when one step is left: the tail, which has just
    started; the batch planned now follows it.

    ahead      steps left to run when the next plan is made
    flying     the batch that runs; `following`: the one that starts when the tail of that has ended
    wake       the next wake-up that is not stale
    must_plan  a plan is due; `planning`: it is scheduled at this instant
    down       the engine has failed
    """

    def __init__(
        self,
        env: Clock,
        scheduler: Planner,
        cost: StepCost,
        macro: bool = True,
        on_end: Callable[[Sequence], None] | None = None,
        number: int = 0,
        on_fetch: Callable[[Sequence, int | None], None] | None = None,
    ) -> None:
        """Replicas complete in order of `number`.

        on_end    called for every request that ends, at that instant
        on_fetch  called for every sequence whose KV is to be fetched, with the positions, and with None if it has
                  been preempted before they came
        """
        self.env = env
        self.scheduler = scheduler
        self.cost = cost
        self.macro = macro
        self.on_end = on_end
        self.on_fetch = on_fetch
        self.number = number
        if isinstance(cost, Curve | Scaled | Drafted) and cost.needs_longest:
            scheduler.state.decoders.watch()
        self.ahead = scheduler.config.depth - 1  # steps left to run when the next plan is made
        self.flying: Batch | None = None
        self.following: Batch | None = None
        self.in_tail = False
        self.wake: At | None = None
        self.must_plan = False
        self.planning = False
        self.down = False

    def submit(self, request: Request, leg: Leg = WHOLE) -> Sequence | None:
        """A request, or one leg of it, arrives now; returns its sequence, None if it is rejected."""
        if self.flying is not None and self.scheduler.policy.order.listeners:
            self.catch_up(self.flying)
        seq = self.scheduler.submit(request, self.env.now, leg)
        if self.flying is None:
            self.must_plan = True
        self.replan_if_unsettled()
        return seq

    def abort(self, seq: Sequence, kind: Kind) -> None:
        """The client of a request gives up now, or it times out."""
        if seq.ended:
            return
        if self.flying is not None:
            self.catch_up(self.flying)
        self.scheduler.abort(seq, self.env.now, kind)
        if self.flying is None:
            self.must_plan = True
        self.notify_ended()
        self.replan_if_unsettled()

    def fail(self, fate: Kind) -> Failure:
        """The engine fails now: its memory is lost; see `sim.service.failure` for the requests."""
        if self.flying is not None:
            self.catch_up(self.flying)
        now = self.env.now
        in_flight = [batch for batch in (self.flying, self.following) if batch is not None]
        since = in_flight[0].row.start if in_flight else now
        self.flying = self.following = self.wake = None
        self.in_tail = self.must_plan = False
        self.down = True
        return fail(self.scheduler, now, since, in_flight, fate)

    def restart(self) -> None:
        """The engine runs again, with the requests in its queue."""
        self.down = False
        self.must_plan = True
        self.settle()

    def replan(self) -> None:
        """Plan again at the next step boundary: KV has come, or has been copied."""
        if self.flying is None:
            self.must_plan = True
        elif not self.must_plan:
            self.plan_at_boundary(self.env.now)
        if self.must_plan:
            self.settle()

    def replan_if_unsettled(self) -> None:
        """Plan again if an arrival or abort could change what runs, or if a plan is due anyway."""
        if self.scheduler.unsettled and self.flying is not None and not self.must_plan:
            self.plan_at_boundary(self.env.now)
        if self.must_plan:
            self.settle()

    def notify_ended(self) -> None:
        """Call `on_end` for the requests that have just ended."""
        departed = self.scheduler.take_departed()
        if self.on_end is not None:
            for seq in departed:
                self.on_end(seq)

    def settle(self) -> None:
        """Make the plan that is due, once, after every other event of this instant."""
        if self.planning or self.down:
            return
        env = self.env
        if env.peek() > env.now:
            self.plan()
        else:
            self.planning = True
            At(env, 0, PLANNING, self.plan, self.number)

    def plan(self, _: object = None) -> None:
        """Plan the next batch, and start it now or behind the step that runs."""
        self.planning = False
        if self.down:
            return
        self.must_plan = False
        now = self.env.now
        batch = self.scheduler.plan(now)
        while batch.preempted and not batch.tokens and self.flying is None:
            batch = self.scheduler.plan(now)
        if self.scheduler.state.leaving.departed:
            self.notify_ended()
        if self.on_fetch is not None and isinstance(self.scheduler, Scheduler):
            for seq, positions in self.scheduler.take_fetches():
                self.on_fetch(seq, positions)
        if not batch.tokens:
            if self.flying is None:
                self.await_order(now)
            return
        growth = batch.growth
        if self.macro and len(growth) > 1:
            batch.durations = self.cost.run(batch, len(growth), growth)
        else:
            batch.durations = array("q", [self.cost.step(batch)])
        if self.flying is not None:
            self.following = batch
            batch.row.begin(self.flying.row.start + self.flying.durations[0])
        elif self.ahead:
            self.begin(batch, now)
        else:
            self.flying = batch
            self.wake = At(self.env, sum(batch.durations), COMPLETION, self.reach_plan, self.number)
        if batch.until is not None:
            self.plan_at_boundary(batch.until)
        if self.must_plan:
            self.settle()

    def await_order(self, now: Nanoseconds) -> None:
        """Nothing runs; plan again when the order may let a waiting sequence go."""
        until = self.scheduler.order_changes_at(now)
        if until is not None:
            self.wake = At(self.env, until - now, ARRIVAL, self.try_again)

    def try_again(self, event: object) -> None:
        """Plan, unless a batch runs by now or the wake-up is stale."""
        if event is self.wake and self.flying is None:
            self.must_plan = True
            self.settle()

    def begin(self, batch: Batch, now: Nanoseconds) -> None:
        """The first step of a batch starts now."""
        batch.row.begin(now)
        self.flying = batch
        self.await_plan(batch, now)

    def await_plan(self, batch: Batch, now: Nanoseconds) -> None:
        """Wake when the next plan is due: when no more than `ahead` steps are left."""
        durations = batch.durations
        if len(durations) == self.ahead:
            self.enter_tail(batch)
            return
        lasts = sum(durations) - (durations[-1] if self.ahead else 0)
        self.wake = At(self.env, batch.row.start + lasts - now, COMPLETION, self.reach_plan, self.number)

    def reach_plan(self, event: object) -> None:
        """All steps but those to run ahead have ended; a stale wake-up of a batch that was cut since is ignored."""
        if event is self.wake and self.flying is not None:
            self.run_to_plan(self.flying)
            self.settle()

    def run_to_plan(self, batch: Batch) -> None:
        """Commit all steps but those to run ahead; a plan is due."""
        durations = batch.durations
        if not self.ahead:
            self.flying = None
            self.must_plan = True
            self.scheduler.commit(batch, self.env.now, durations)
            if self.scheduler.state.leaving.departed:
                self.notify_ended()
            return
        if len(durations) > 1:
            self.scheduler.proceed(batch, batch.row.done + len(durations) - batch.row.steps)
            self.scheduler.commit(batch, self.env.now, durations[:-1])
            del durations[:-1]
        self.enter_tail(batch)

    def enter_tail(self, batch: Batch) -> None:
        """The last step of a batch starts now, and the one after it is to be planned."""
        self.in_tail = self.must_plan = True
        self.wake = At(self.env, batch.durations[0], COMPLETION, self.end_tail, self.number)

    def end_tail(self, event: object) -> None:
        """The last step has ended: the next batch starts, or a plan is due. Ignored after a failure."""
        if event is not self.wake:
            return
        now = self.env.now
        batch, following = self.flying, self.following
        assert batch is not None
        self.flying = self.following = None
        self.in_tail = False
        self.scheduler.commit(batch, now, batch.durations)
        if self.scheduler.state.leaving.departed:
            self.notify_ended()
        if following is not None:
            self.begin(following, now)
        else:
            self.must_plan = True
        if self.must_plan:
            self.settle()

    def plan_at_boundary(self, instant: Nanoseconds) -> None:
        """Make the next plan at the first step boundary at or after an instant, if none is due before."""
        batch = self.following if self.in_tail else self.flying
        if batch is None or len(batch.durations) == 1:
            return
        durations, elapsed = batch.durations, instant - batch.row.start
        boundaries = bisect_left(list(accumulate(durations)), elapsed) + 1 if elapsed > 0 else 0
        kept = max(1, boundaries + self.ahead)
        if kept < len(durations):
            del durations[kept:]
            if batch is self.flying:
                self.await_plan(batch, self.env.now)

    def catch_up(self, batch: Batch) -> None:
        """Commit the steps of the run that have ended by now: before an abort, a failure, or a counted arrival."""
        if self.in_tail:
            return
        row = batch.row
        boundaries = list(accumulate(batch.durations, initial=0))
        elapsed = self.env.now - row.start
        ended = bisect_right(boundaries, elapsed) - 1
        if boundaries[ended] == elapsed and ended + self.ahead:
            del batch.durations[ended + self.ahead :]
            self.run_to_plan(batch)
            return
        planned = min(ended + 1 + self.ahead, len(batch.durations))
        if planned > row.steps - row.done:
            self.scheduler.proceed(batch, planned - (row.steps - row.done))
        if ended:
            self.scheduler.commit(batch, row.start + boundaries[ended], batch.durations[:ended])
            del batch.durations[:ended]
