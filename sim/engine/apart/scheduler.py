"""Continuous batching in passes of one kind: a prefill of new sequences goes first, and decoding waits for it.

    batch = scheduler.plan(now)                  what the next pass computes, and how often it may repeat
    scheduler.proceed(batch, passes)             it goes on for so many passes more
    scheduler.commit(batch, now, durations)      its next passes have run

The interface of `sim.engine.scheduler.Scheduler`, for engines as SGLang. Pure: `now` is an argument.
"""

from __future__ import annotations

from array import array

from sim.engine.apart import progress
from sim.engine.apart.admission import plan_prefill
from sim.engine.apart.batch import ApartBatch
from sim.engine.apart.budget import rounded
from sim.engine.apart.config import ApartConfig
from sim.engine.apart.decode import mix_in, plan_decode
from sim.engine.apart.sequence import ApartSequence
from sim.engine.apart.state import ApartState
from sim.engine.batch import Batch
from sim.log.events import CANCELLED, DEQUEUED, LIMITED, QUEUED, Kind
from sim.memory.pool import PagePool
from sim.policy.base import Policy
from sim.request import NO_LIMIT, WHOLE, Leg, Nanoseconds, Request
from sim.sequence import Sequence
from sim.subclassing import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class ApartScheduler:
    """One engine that prefills and decodes in passes apart.

    unsettled  whether the last arrival or abort could change what runs, so that a new plan is due
    complaint  why the last arrival was rejected; empty if it was not
    """

    closed = False

    def __init__(self, policy: Policy, pool: PagePool, config: ApartConfig) -> None:
        config.check_fits(policy, pool)
        self.config = config
        self.policy = policy
        self.pool = pool
        self.state = ApartState(policy, pool, config)
        self.log = self.state.log
        self.unsettled = False
        self.complaint = ""

    # ------------------------------------------------------------------ the plan

    def plan(self, now: Nanoseconds) -> ApartBatch:
        """What the next pass computes; a batch with `tokens` 0 if nothing is to be done, or none can be done yet.

        Plan again if it is empty although the next plan may not be (`preempted`): prefills were held back, or
        sequences gave up their memory.

        Raises OutOfMemoryError where the engine would stop.
        """
        state = self.state
        batch = ApartBatch(now)
        publishing = self.config.depth > 1 and self.pool.remembers and bool(state.members.last)
        progress.settle(state, now)
        held_back = state.gate.held_back()
        if not held_back:
            plan_prefill(state, batch)
        elif len(self.policy.order):
            batch.reason = LIMITED
        prefilled = [seq for seq, _, _ in batch.prefills]
        if not prefilled:
            plan_decode(state, batch)
        elif self.config.mixed:
            mix_in(state, batch)
        state.members.last = [*prefilled, *batch.beside] if prefilled else []
        if prefilled:
            state.gate.wait = self.config.prefill_interval
        progress.measure(state, batch)
        if batch.tokens:
            if not publishing:
                progress.look_ahead(state, batch)
            progress.advance(state, batch)
        else:
            batch.preempted = bool(held_back or batch.retracted or batch.displaced or batch.aborted)
            self.rest(now)
        return batch

    def rest(self, now: Nanoseconds) -> None:
        """There is nothing to compute: the ratio starts again if the engine is idle."""
        if self.idle:
            self.state.ratio.reset()
            if self.pool.remembers:
                self.log.rest(now, self.pool.cached)

    @property
    def idle(self) -> bool:
        """Whether nothing runs, waits or is in flight."""
        state = self.state
        return not state.totals.holders and not len(self.policy.order) and state.passes.planned == self.log.steps

    # ------------------------------------------------------------------ what has run

    def proceed(self, batch: Batch, steps: int) -> None:
        """The batch goes on for `steps` more passes, as far as `repeat` allows."""
        assert isinstance(batch, ApartBatch)
        progress.proceed(self.state, batch, steps)

    def commit(self, batch: Batch, now: Nanoseconds, durations: array[Nanoseconds] | None = None) -> None:
        """The next `len(durations)` passes of the batch have run, the last of them ending now (None: one pass)."""
        assert isinstance(batch, ApartBatch)
        if durations is None:
            durations = array("q", [now - batch.row.start])
        progress.commit(self.state, batch, now, durations)

    # ------------------------------------------------------------------ who comes and who gives up

    def submit(self, request: Request, now: Nanoseconds, leg: Leg = WHOLE) -> Sequence | None:
        """A request arrives: it is queued and returned, or rejected (None, see `complaint`)."""
        state = self.state
        index = self.log.add(request)
        seq = self.sequence(request, index, leg)
        self.complaint = self.unfit(seq) or ("" if leg.given else self.refusal(seq, now))
        if self.complaint:
            self.log.reject(now, index, self.complaint)
            self.unsettled = False
            return None
        self.log.event(now, QUEUED, index, leg.redone)
        state.enqueue(seq, now)
        self.unsettled = not state.gate.full or self.config.preempt_by is not None
        return seq

    def longest(self) -> int:
        """Positions, at most, of a prompt and its output without the last token; under a rule, with it."""
        config = self.config
        memory = self.pool.pages * self.pool.page_size
        longest = min(NO_LIMIT if config.max_model_len is None else config.max_model_len, memory)
        return longest if config.by_rule else longest - 2

    def longest_in_memory(self, prompt: int) -> int:
        """Most tokens that fit into the memory behind a prompt."""
        pool = self.pool
        memory = pool.pages * pool.page_size
        return memory - prompt if self.config.by_rule else memory - rounded(pool, prompt) - pool.page_size - 1

    def sequence(self, request: Request, index: int, leg: Leg = WHOLE) -> ApartSequence:
        """A request as this engine would serve it; it is not submitted."""
        assert (leg.ready, leg.hands_over) == (0, False), "this engine prefills and decodes"
        room = min(self.longest() - request.prompt, self.longest_in_memory(request.prompt))
        overrun = 0 if self.config.by_rule else 1
        return ApartSequence(request, index, max(1, min(request.max_output, room)), self.pool, leg, overrun)

    def misfit(self, request: Request, leg: Leg = WHOLE) -> str:
        """Why a request could not run here even alone; empty if it could."""
        return self.unfit(self.sequence(request, -1, leg))

    def unfit(self, seq: ApartSequence) -> str:
        """Why a sequence could not run even alone; empty if it could."""
        prompt = seq.request.prompt
        room = self.longest_in_memory(prompt)
        if prompt >= self.longest() - (0 if self.config.by_rule else 4) or room < 1:
            return "prompt leaves no room for an output"
        if seq.fixed_length and not (self.pool.remembers or self.config.by_rule) and room <= seq.limit:
            return "needs more pages than exist"
        return ""

    @property
    def capacity(self) -> tuple[object, ...]:
        """What decides whether a request fits at all."""
        return self.pool.pages, self.pool.page_size, self.config.max_model_len, self.pool.remembers

    def refusal(self, seq: Sequence, now: Nanoseconds) -> str:
        """Why a sequence that could run is rejected now: the queue is full, or a limit of the order; else empty."""
        limit = self.config.queue_limit
        if limit is not None and len(self.policy.order) >= limit:
            return "queue is full"
        return self.policy.order.refusal(seq, now)

    def discard(self, request: Request, now: Nanoseconds) -> None:
        """A request arrives that its client cancelled on the way: it is only entered in the log."""
        index = self.log.add(request)
        self.log.event(now, QUEUED, index)
        self.log.end(now, CANCELLED, index, self.log.steps)
        self.log.event(now, DEQUEUED, index)

    def abort(self, seq: Sequence, now: Nanoseconds, kind: Kind) -> None:
        """The client gives up (CANCELLED) or the request times out (TIMED_OUT), unless it has ended."""
        state = self.state
        self.unsettled = False
        if seq.ended:
            return
        assert isinstance(seq, ApartSequence)
        state.end(seq, now, kind)
        self.unsettled = True
        if seq.serial >= 0:
            state.leaving.abandoned.append(seq)
        else:
            state.order.pop(seq)
            self.log.event(now, DEQUEUED, seq.index)
            state.depart(seq)

    # ------------------------------------------------------------------ for the driver

    def reset(self, passes: int, step: int, decode: int) -> None:
        """The engine has failed after `passes` passes: all but the queue is lost (`sim.engine.apart.shutdown`)."""
        self.unsettled = False
        self.state.reset(passes, step, decode)

    @property
    def busy(self) -> bool:
        """Whether any sequence runs or waits."""
        return bool(self.state.totals.holders or len(self.policy.order))

    def take_departed(self) -> list[Sequence]:
        """The sequences that have ended since the last call, in order."""
        return self.state.leaving.reported()

    def order_changes_at(self, now: Nanoseconds) -> Nanoseconds | None:
        """When `order.head` may change although nothing happens before, ns; None: never, or no sequence waits."""
        if not len(self.policy.order):
            return None
        return self.policy.order.next_change(now, self.state.decoders.step)[0]

    def check(self) -> None:
        """Check what holds once every request has ended: nothing is left over. Raises AssertionError."""
        self.state.check()
