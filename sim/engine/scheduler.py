"""Continuous batching: decide what each step computes. Pure: `now` is an argument; no clock, no I/O.

    batch = scheduler.plan(now)                  what the next step computes, and how often it may repeat
    scheduler.proceed(batch, steps)              it goes on for so many steps more
    scheduler.commit(batch, now, durations)      its next steps have run

A plan has three parts: finished sequences leave, running ones continue in the order they were admitted, waiting ones
are admitted (`sim.engine.admission`). Positions count from the plan on; tokens and ends come with the commit
(`sim.engine.progress`). `sim.engine.fast_path` makes the usual step cheap and changes no decision.
"""

from __future__ import annotations

from array import array

from sim.engine import fast_path, progress
from sim.engine.admission import admit_waiting
from sim.engine.batch import Batch
from sim.engine.config import EngineConfig
from sim.engine.intake import Intake
from sim.engine.preemption import preempt
from sim.engine.state import EngineState
from sim.log.events import NO_MEMORY, RELEASED, Kind
from sim.memory.pool import PagePool
from sim.policy.base import Policy
from sim.request import WHOLE, Leg, Nanoseconds, Request
from sim.sequence import Sequence
from sim.subclassing import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Scheduler:
    """One engine: slots in the running batch and a pool of pages, filled by a policy.

    closed  whether a finished sequence keeps its place until all have ended

    Raises ValueError for a policy or a pool that the settings exclude.
    """

    closed = False

    def __init__(self, policy: Policy, pool: PagePool, config: EngineConfig) -> None:
        config.check_fits(policy, pool)
        self.config = config
        self.policy = policy
        self.pool = pool
        self.state = self.new_state()
        self.log = self.state.log
        self.intake = self.new_intake()

    def new_state(self) -> EngineState:
        """The state of an empty engine."""
        return EngineState(self.policy, self.pool, self.config)

    def new_intake(self) -> Intake:
        """The entrance of the engine."""
        return Intake(self.state, self.closed)

    def new_batch(self, now: Nanoseconds) -> Batch:
        """An empty plan."""
        return Batch(now, self.config.token_budget)

    # ------------------------------------------------------------------ the plan

    def plan(self, now: Nanoseconds) -> Batch:
        """What the next step computes; a batch with `tokens` 0 when there is nothing to do.

        A plan may also end empty because the only sequence it could serve was preempted (`preempted`): plan again.
        """
        state = self.state
        if state.admissions.filled:
            state.keep_filled()
        if state.leaving.finished or state.leaving.riding:
            self.evict_finished(now)
        if state.leaving.abandoned:
            self.evict_abandoned(now)
        if state.handover.due:
            state.hand_over(now)
        batch = self.new_batch(now)
        self.continue_running(batch)
        if state.waiting.count and not batch.preempted:
            self.admit_waiting(batch)
        self.measure(batch)
        if batch.tokens:
            self.look_ahead(batch)
            self.advance(batch)
        elif self.pool.remembers:
            self.log.rest(now, self.pool.cached)
        return batch

    def evict_finished(self, now: Nanoseconds) -> None:
        """Finished sequences leave; late eviction finds them one step later."""
        state = self.state
        for seq in state.leaving.evicted(late=self.config.evict_late):
            state.leave(seq, seq.computed)
            state.release(seq, now)

    def evict_abandoned(self, now: Nanoseconds) -> None:
        """Sequences whose client has given up leave."""
        state = self.state
        for seq in state.leaving.given_up():
            if seq.decoding:
                state.stop_decoding(seq)
            state.leave(seq, seq.computed)
            self.log.event(now, RELEASED, seq.index, seq.over)
            state.depart(seq)

    def continue_running(self, batch: Batch) -> None:
        """Running sequences get their tokens: one each, or what is left of a prompt, while the budget lasts."""
        if not fast_path.serve_all(self.state, batch):
            self.continue_in_order(batch)

    def continue_in_order(self, batch: Batch) -> None:
        """Serve the running sequences one by one in the order of admission; preempt while pages are short."""
        state = self.state
        limit, evict_late, away = state.chunk_limit(), self.config.evict_late, state.handover.away
        batch.served = {}
        stopped = False
        for serial, seq in list(state.running.items()):
            if serial not in state.running or (seq.over and not evict_late) or seq.index in away:
                continue
            wanted = 1 if seq.decoding else min(seq.wanted, limit)
            tokens = 0 if stopped else min(wanted, batch.budget)
            if state.on_demand and not self.make_room(seq, tokens, batch):
                stopped = True
                continue
            batch.served[serial] = tokens
            if seq.decoding and tokens:
                state.fill(state.growth(seq, tokens))
                batch.spend(tokens)
                continue
            if seq.decoding:
                state.stop_decoding(seq)
            state.give(batch, seq, tokens)
        state.sort_out()

    def make_room(self, seq: Sequence, tokens: int, batch: Batch) -> bool:
        """Preempt victims until a sequence can grow by `tokens`; False if it was preempted itself."""
        state = self.state
        while not self.pool.can_take(state.growth(seq, tokens)):
            victim = state.policy.victim.choose(state.running, state.decoders.step)
            preempt(state, victim, batch)
            batch.preempted, batch.reason = True, NO_MEMORY
            if victim is seq:
                return False
        return True

    def admit_waiting(self, batch: Batch) -> None:
        """Waiting sequences enter in the policy's order while there are a slot, budget and memory."""
        batch.reason = admit_waiting(self.state, batch)

    def measure(self, batch: Batch) -> None:
        """Count what the step computes."""
        fast_path.measure(self.state, batch)

    def look_ahead(self, batch: Batch) -> None:
        """Set for how many steps the batch may repeat."""
        fast_path.look_ahead(self.state, batch, self.closed)

    def advance(self, batch: Batch) -> None:
        """Count what the step that has just been planned will have computed."""
        progress.advance(self.state, batch)

    # ------------------------------------------------------------------ what has run

    def proceed(self, batch: Batch, steps: int) -> None:
        """The batch goes on for `steps` more steps, as far as `repeat` allows."""
        progress.proceed(self.state, batch, steps)

    def commit(self, batch: Batch, now: Nanoseconds, durations: array[Nanoseconds] | None = None) -> None:
        """The next `len(durations)` steps of the batch have run, the last of them ending now (None: one step).

        Steps for which `proceed` was not called count as planned now. With the last planned step come the tokens of
        the sequences that caught up, and the ends.
        """
        if durations is None:
            durations = array("q", [now - batch.row.start])
        progress.commit(self.state, batch, now, durations)

    # ------------------------------------------------------------------ requests that come and are given up

    @property
    def unsettled(self) -> bool:
        """Whether the last arrival or abort could change what runs: a new plan is due at the next step boundary."""
        return self.intake.unsettled

    @property
    def complaint(self) -> str:
        """Why the last arrival was rejected; empty if it was not."""
        return self.intake.complaint

    def submit(self, request: Request, now: Nanoseconds, leg: Leg = WHOLE) -> Sequence | None:
        """A request, or one leg of it, arrives: it is queued and returned, or rejected (None, see `complaint`)."""
        return self.intake.submit(request, now, leg)

    @property
    def capacity(self) -> tuple[object, ...]:
        """What decides whether a request fits at all."""
        config = self.config
        return self.pool.pages, self.pool.page_size, config.max_model_len, config.chunked or config.token_budget

    def misfit(self, request: Request, leg: Leg = WHOLE) -> str:
        """Why a request, or one leg of it, could not run here even alone; empty if it could."""
        return self.intake.misfit(self.intake.sequence(request, -1, leg))

    def discard(self, request: Request, now: Nanoseconds) -> None:
        """A request arrives that its client cancelled on the way: it is only entered in the log."""
        self.intake.discard(request, now)

    def abort(self, seq: Sequence, now: Nanoseconds, kind: Kind) -> None:
        """The client gives up (CANCELLED) or the request times out (TIMED_OUT), unless it has ended.

        Slot and pages are free from the next plan on; tokens of steps that end later are not delivered. All steps
        that have ended must be committed.
        """
        self.intake.abort(seq, now, kind)

    # ------------------------------------------------------------------ for the driver

    @property
    def busy(self) -> bool:
        """Whether any sequence runs or waits."""
        return bool(self.state.running or self.state.waiting.count)

    def take_departed(self) -> list[Sequence]:
        """The sequences that have ended since the last call, in order."""
        return self.state.leaving.reported()

    def take_fetches(self) -> list[tuple[Sequence, int | None]]:
        """What is to be fetched since the last call, and what no longer (`sim.engine.handover.Handover.news`)."""
        return self.state.handover.reported()

    def order_changes_at(self, now: Nanoseconds) -> Nanoseconds | None:
        """When `order.head` may change although nothing happens before, ns; None: never, or no sequence waits."""
        if not self.state.waiting.count:
            return None
        return self.policy.order.next_change(now, self.state.decoders.step)[0]

    def assignments(self, batch: Batch) -> list[tuple[Sequence, int, int]]:
        """(sequence, start, tokens) of everyone in a batch that has just been planned, in order of admission."""
        return progress.assignments(self.state, batch)

    def reset(self, step: int) -> None:
        """The engine has failed after `step` steps: all but the queue is lost (`sim.service.failure`)."""
        self.intake.reset()
        self.state.reset(step)

    def check(self) -> None:
        """Check what holds once every request has ended: nothing is left over. Raises AssertionError."""
        self.state.check()
