"""The prefill of a pass: which waiting sequences it takes, and how much of the one that is cut (rules of SGLang).

The sequence cut off before goes first; then the queue in its order, up to the first that does not fit. A stop for
want of room sets the flag `full`: nothing is tried again before a sequence leaves.
"""

from __future__ import annotations

from enum import Enum, auto
from itertools import islice

from sim.engine.apart.batch import ApartBatch
from sim.engine.apart.budget import PrefillBudget, rounded
from sim.engine.apart.displacement import displace
from sim.engine.apart.expectation import Ends, end_of, expected_of_all, most_expected
from sim.engine.apart.sequence import ApartSequence
from sim.engine.apart.state import ApartState
from sim.log.events import ADMITTED, LIMITED, NO_BUDGET, NO_DEMAND, NO_MEMORY
from sim.subclassing import mypyc_attr

TOUCH_EVERY = 32
"""Sorts of the queue after which the waiting sequences' prefixes are used again (SGLang: waiting prefix refresh)."""
MOST_TOUCHED = 128


class Stop(Enum):
    """Why no further sequence is picked."""

    NO_TOKEN = auto()
    OTHER = auto()
    LIMIT = auto()


@mypyc_attr(native_class=False)
class OutOfMemoryError(RuntimeError):
    """The engine dies: a prefill that had to be continued does not fit into its memory."""

    def __init__(self, seq: ApartSequence, passes: int) -> None:
        super().__init__(
            f"request {seq.request.id}: the next chunk of its prompt does not fit into the memory in pass {passes}, "
            "where this engine stops with an error"
        )


class Prefill:
    """The prefill of the pass being planned.

    picked  the sequences it computes, in order
    cut     the one of these whose prompt goes on in a later pass
    """

    def __init__(self, state: ApartState, batch: ApartBatch) -> None:
        config = state.config
        self.state = state
        self.batch = batch
        self.picked: list[ApartSequence] = []
        self.cut: ApartSequence | None = None
        self.ends: Ends | None = None
        mixed = len(state.members.running) if config.mixed else 0
        self.budget = PrefillBudget(config, state.pool, mixed, lambda: expected_of_all(state), most_expected(state))

    def go_on(self, seq: ApartSequence) -> None:
        """The sequence that was cut off gets its next part, whatever its need."""
        budget = self.budget
        assert budget.chunk is not None
        limit = budget.chunk
        if not budget.leaves_more_than(limit):
            limit = min(limit, int(budget.unreserved))
        if limit <= 0:
            limit = budget.chunk
        shorter = self.state.order.chunk_limit(seq, budget.chunk, self.state.pool.page_size)
        if shorter is not None:
            limit = min(limit, shorter)
        if limit <= 0:
            self.cut = seq
            return
        rest = seq.known - seq.computed
        self.take(seq, min(rest, limit), rest <= limit)

    def take(self, seq: ApartSequence, tokens: int, whole: bool) -> None:
        """Pick a sequence for the next `tokens` positions."""
        seq.prefix = seq.computed
        self.picked.append(seq)
        self.batch.prefills.append((seq, seq.computed, tokens))
        if not whole:
            self.cut = seq
        self.budget.charge(tokens, min(seq.limit, self.state.config.ratio.clip) if whole else 0)

    def slots(self) -> int:
        """How many sequences may be picked in all."""
        state, slots = self.state, self.state.config.slots
        return min(slots - len(state.members.running), slots - state.totals.holders + len(self.picked))

    def consider(self, seq: ApartSequence) -> Stop | None:
        """Admit a waiting sequence, or return why the pass takes no more."""
        state, budget, pool = self.state, self.budget, self.state.pool
        config = state.config
        seq.fill = seq.known
        found = seq.prefix = pool.match(seq, seq.known - 1)
        if config.prefill_max_requests is not None and len(self.picked) >= config.prefill_max_requests:
            return Stop.LIMIT
        if config.by_rule:
            return self.consider_by_rule(seq, found)
        if seq.fixed_length and not pool.remembers:
            return self.consider_by_ends(seq)
        rest = seq.known - found
        need = rest + min(max(seq.limit - state.outputs(seq), 0), config.ratio.clip) + pool.page_size
        pool.pin(seq)
        tokens, whole = rest, True
        stop = None
        if not budget.leaves_more_than(need):
            stop = Stop.NO_TOKEN
        elif budget.chunk is None:
            if self.picked and rounded(pool, rest) >= budget.tokens:
                stop = Stop.OTHER
        elif rounded(pool, rest) > budget.chunk:
            size = pool.page_size
            tokens, whole = (found + budget.chunk // size * size) // size * size - found, False
            if tokens <= 0 or (self.cut is not None and state.order.cuts_one):
                stop = Stop.OTHER
        if stop is not None:
            pool.unpin(seq)
            return stop
        return self.admit(seq, found, tokens, whole)

    def consider_by_ends(self, seq: ApartSequence) -> Stop | None:
        """Admit a sequence of known length if the memory lasts until each of the expected ends; nothing is cached."""
        state, budget, pool = self.state, self.budget, self.state.pool
        rest = seq.known
        paged = rounded(pool, rest) + pool.page_size
        if paged > budget.unused or not (budget.leaves_more_than(paged) or budget.unreserved == paged):
            return Stop.NO_TOKEN
        asked = end_of(state, seq)
        if self.ends is None:
            present = (*state.members.running.values(), *self.picked)
            self.ends = Ends([asked, *(end_of(state, each) for each in present)])
        else:
            self.ends.ask(*asked)
        if not self.ends.memory_lasts(budget.unused - paged):
            return Stop.NO_TOKEN
        if budget.chunk is None or rest <= budget.chunk:
            return self.admit(seq, 0, rest, whole=True)
        if budget.chunk <= 0:
            return Stop.OTHER
        return self.admit(seq, 0, budget.chunk, whole=False)

    def consider_by_rule(self, seq: ApartSequence, found: int) -> Stop | None:
        """Admit a sequence if the rule of the policy allows it beside those that run and are picked."""
        state, budget, pool = self.state, self.budget, self.state.pool
        rest, step = seq.known - found, state.decoders.step
        if self.picked and rest > budget.tokens:
            return Stop.OTHER
        pool.pin(seq)
        others = [*state.members.running.values(), *self.picked]
        promised = sum(
            pool.pages_for(start + tokens) - pool.pages_for(start) for _, start, tokens in self.batch.prefills
        )
        needs = pool.pages_for(state.admission.positions(seq, seq.known)) - found // pool.page_size
        if others:
            needs += state.admission.spare(pool, to_come(state, others), step)
        fits = needs <= pool.free - promised
        if not fits or (others and not state.admission.allows(seq, others, pool, step)):
            pool.unpin(seq)
            return Stop.NO_TOKEN
        return self.admit(seq, found, rest, whole=True)

    def admit(self, seq: ApartSequence, found: int, tokens: int, whole: bool) -> Stop | None:
        """Give a waiting sequence a row and its cached prefix; returns whether the pass takes no more."""
        state = self.state
        state.order.pop(seq)
        state.enter(seq, found)
        state.log.event(self.batch.planned, ADMITTED, seq.index, found)
        for listener in state.order.listeners:
            listener.admitted(seq, state.decoders.step)
        self.take(seq, tokens, whole)
        if not self.budget.has_room and not state.config.by_rule:
            return Stop.NO_TOKEN
        return Stop.OTHER if self.budget.spent else None


def to_come(state: ApartState, sequences: list[ApartSequence]) -> int:
    """Positions that sequences may come to hold beyond those planned."""
    step = state.decoders.step
    return sum(seq.target.most - seq.positions(step) for seq in sequences)


def plan_prefill(state: ApartState, batch: ApartBatch) -> None:
    """Pick what the pass prefills, and take the memory for it; the batch stays empty if nothing is picked."""
    config, order = state.config, state.order
    preempts = config.preempt_by is not None
    if preempts or not state.members.running:
        state.gate.full = False
    if state.members.chunked is None:
        if state.gate.full or not len(order):
            return
        if not preempts and min(config.slots - len(state.members.running), config.slots - state.totals.holders) <= 0:
            state.gate.full, state.gate.obstacle = True, NO_DEMAND
            return
    order.arrange(batch.planned, state.decoders.step)
    keep_waiting_prefixes(state)
    prefill = Prefill(state, batch)
    if state.members.chunked is not None:
        prefill.go_on(state.members.chunked)
    while len(order):
        if prefill.budget.spent and (prefill.budget.has_room or config.by_rule):
            batch.reason = NO_BUDGET
            break
        if len(prefill.picked) >= prefill.slots():
            state.gate.full, state.gate.obstacle = True, NO_DEMAND
        seq = order.head(batch.planned, state.decoders.step)
        assert seq is None or isinstance(seq, ApartSequence)
        if seq is None:
            batch.reason = LIMITED
            break
        if state.gate.full and not (preempts and displace(state, seq, prefill.budget, batch)):
            batch.reason = state.gate.obstacle
            break
        stop = prefill.consider(seq)
        if stop is not None:
            if stop is Stop.NO_TOKEN:
                state.gate.full = bool(prefill.picked or state.members.running) and not config.by_rule
                state.gate.obstacle = NO_MEMORY
            batch.reason = {Stop.NO_TOKEN: NO_MEMORY, Stop.OTHER: NO_BUDGET, Stop.LIMIT: LIMITED}[stop]
            break
    for seq in batch.displaced:
        state.enqueue(seq, batch.planned, returns=True)
    if prefill.picked:
        state.members.chunked = prefill.cut
        allocate(state, batch)


def keep_waiting_prefixes(state: ApartState) -> None:
    """Use what is cached of the waiting sequences now and then, the first last, unless the order has just done so."""
    pool, order = state.pool, state.order
    if not len(order) or not pool.refreshes or order.looks_up:
        return
    if state.gate.sorts % TOUCH_EVERY == 0:
        for seq in reversed(list(islice(order, MOST_TOUCHED))):
            pool.touch(seq)
    state.gate.sorts += 1


def allocate(state: ApartState, batch: ApartBatch) -> None:
    """Evict as far as the engine does for a prefill, and take the pages of the picked sequences.

    Raises OutOfMemoryError if a sequence that had to be continued does not fit.
    """
    pool = state.pool
    size = pool.page_size
    total = sum(tokens for _, _, tokens in batch.prefills)
    pool.make_room(total + size * len(batch.prefills) * (size > 1))
    pages = sum(rounded(pool, start + tokens) - rounded(pool, start) for _, start, tokens in batch.prefills)
    if pages > pool.avail:
        raise OutOfMemoryError(batch.prefills[0][0], state.passes.planned)
    pool.take(pages // size)
