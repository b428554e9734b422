"""The progress of a request on one engine (Sequence): `computed` token positions out of `known` ones.

What it is to compute (Target) is fixed when it is submitted; what it holds of the memory is counted in pages
(HeldPages). Each field has one writer: a method here, or the module that its line names.
"""

from __future__ import annotations

from collections.abc import Hashable, Sized
from typing import Any, Protocol

from sim.log.events import FINISHED, Kind
from sim.request import NO_LIMIT, WHOLE, Leg, Request
from sim.subclassing import mypyc_attr


class Page:
    """A full page of KV memory in the prefix cache: its key, and how many sequences hold it."""

    __slots__ = ("holders", "key")

    def __init__(self, key: Hashable, holders: int) -> None:
        self.key = key
        self.holders = holders


class Lookup(Protocol):
    """The memory of an engine as an order sees it, implemented by `sim.memory.pool`.

    cached   free pages whose content is still in the cache
    changes  how often the content of the cache has changed
    """

    @property
    def page_size(self) -> int:
        """Token positions of a page."""

    @property
    def cached(self) -> int: ...

    @property
    def changes(self) -> int: ...

    def find(self, seq: Sequence) -> Sized:
        """The cached pages of the longest prefix of this sequence, one token left to compute; changes nothing."""

    def look_up(self, seq: Sequence, most: int) -> tuple[Any, int]:
        """(place in the cache, tokens found) of its first `most` tokens; in a radix cache that counts as a use."""

    def domain(self, seq: Sequence) -> Hashable:
        """Which sequences may share pages with this one: those of equal domain."""


class Nowhere:
    """The memory of a request that is on no engine: nothing is cached."""

    page_size = 1
    cached = 0
    changes = 0

    def find(self, seq: Sequence) -> list[Page]:
        """No page."""
        return []

    def look_up(self, seq: Sequence, most: int) -> tuple[None, int]:
        """No place, no token."""
        return None, 0

    def domain(self, seq: Sequence) -> int:
        """It shares with no other."""
        return seq.index


NOWHERE = Nowhere()


class Target:
    """What an engine is to compute of a request.

    goal       position count at which its last token appears (prompt + output - 1: that token is never computed), or
               the last token its client waits for, or the end of the longest sequence that the engine takes
    most       positions it may come to hold
    cut_short  its client gets fewer tokens from this engine than it would
    leaves     it goes on elsewhere once it has reached its goal
    lingers    plans after that of its last token in which it still holds its pages, as that step is in flight
    leg        the part of the request that this engine computes
    """

    __slots__ = ("cut_short", "goal", "leaves", "leg", "lingers", "most")

    def __init__(
        self, request: Request, leg: Leg = WHOLE, overrun: int = 0, max_model_len: int = NO_LIMIT, lingers: int = 0
    ) -> None:
        prompt = request.prompt
        goal = end = prompt + request.output
        most = prompt + (request.declared or request.output)
        if request.patience.cancel_tokens is not None:
            goal = min(goal, prompt + request.patience.cancel_tokens)
        if most > max_model_len:
            goal, end, most = min(goal, max_model_len), min(end, max_model_len), max_model_len
        self.goal = goal - 1
        self.most = most - 1 + overrun
        self.cut_short = goal < end
        self.leaves = False
        self.lingers = lingers
        self.leg = leg
        if leg.hands_over and self.goal > prompt + leg.given:
            self.leaves = self.cut_short = True
            self.goal = prompt + leg.given
            self.most = min(self.most, self.goal + overrun)


class HeldPages:
    """What a sequence holds of the memory of its engine.

    pool      the memory, for an order that looks into the cache
    reserved  pages, under an admission rule that reserves them
    table     its pages that are in the prefix cache, and `keys` the keys of its prompt's (`sim.memory.prefix`)
    own       of these, pages that are counted and not in the table (`sim.memory.extents`)
    content   its tokens (`sim.memory.content`); None: not made yet
    node      the end of its path in the radix cache (`sim.memory.radix`)
    in_tree   tokens found for it, or published by it (`sim.memory.radix`, `sim.memory.prefix`)
    counted   tokens of the radix cache that count it among their hits (`sim.memory.radix`)
    """

    __slots__ = ("content", "counted", "in_tree", "keys", "node", "own", "pool", "reserved", "table")

    def __init__(self, pool: Lookup = NOWHERE) -> None:
        self.pool = pool
        self.reserved = 0
        self.table: list[Page] = []
        self.keys: list[bytes] = []
        self.content: Any = None
        self.node: Any = None
        self.in_tree = self.counted = self.own = 0

    def hold(self, table: list[Page]) -> None:
        """Hold these pages of the prefix cache, and no others."""
        self.table = table

    def hold_own(self, pages: int) -> None:
        """Hold so many cached pages that no other sequence can find."""
        self.own = pages

    def lose(self) -> None:
        """Hold nothing: the content of the memory is lost."""
        self.reserved = self.in_tree = self.counted = self.own = 0
        self.table, self.node = [], None

    def reserve(self, pages: int) -> None:
        """Hold so many reserved pages."""
        self.reserved = pages


@mypyc_attr(allow_interpreted_subclasses=True)
class Sequence:
    """A request on one engine.

    index      its number in the log of the engine
    serial     its admission number, of the present stay, and `entered` the first step of that; -1 before
    known      its tokens: the prompt and what has been generated
    computed   positions computed
    decoding   it gets a token from every step from number `joined` on: its progress is implicit (`positions`), and
               neither `known` nor `computed` is updated (`sim.engine.decoding`)
    last_step  the step that brings its latest token, -1 before the first
    peak       most positions it had computed when they were thrown away
    behind     the step being planned leaves it with fewer positions computed than known, for want of token budget
               (`sim.engine.state`)
    over       its last token has been scheduled (`sim.engine.state`)
    outcome    how it has ended (`sim.engine.state`); None: it has not
    """

    __slots__ = (
        "behind",
        "computed",
        "decoding",
        "entered",
        "index",
        "joined",
        "known",
        "last_step",
        "outcome",
        "over",
        "pages",
        "peak",
        "request",
        "serial",
        "target",
    )

    def __init__(
        self,
        request: Request,
        index: int,
        leg: Leg = WHOLE,
        target: Target | None = None,
        pages: HeldPages | None = None,
    ) -> None:
        self.request = request
        self.index = index
        self.target = target or Target(request, leg)
        self.pages = pages or HeldPages()
        self.serial = self.entered = self.last_step = -1
        self.joined = 0
        self.known = request.prompt + leg.given
        self.computed = leg.ready
        self.peak = leg.redone
        self.behind = self.decoding = self.over = False
        self.outcome: Kind | None = None

    # ------------------------------------------------------------------ what an order or a rule may ask

    @property
    def pool(self) -> Lookup:
        """The memory of its engine, for an order that looks into the cache."""
        return self.pages.pool

    @property
    def ended(self) -> bool:
        """Whether it has finished, or has been aborted."""
        return self.outcome is not None

    @property
    def finished(self) -> bool:
        """Whether it has ended with all its tokens."""
        return self.outcome is FINISHED

    def generated(self, step: int) -> int:
        """Tokens generated once `step` steps have been planned, those in flight included."""
        known = self.known - self.request.prompt
        return known + step - self.joined if self.decoding else known

    def positions(self, step: int) -> int:
        """Positions computed once `step` steps have been planned."""
        return self.computed + step - self.joined if self.decoding else self.computed

    # ------------------------------------------------------------------ what happens to it

    def enter(self, serial: int, step: int, computed: int) -> None:
        """It is admitted; `computed` positions need no computing."""
        self.serial = serial
        self.entered = step
        self.computed = computed

    @property
    def wanted(self) -> int:
        """Positions that it could compute in a step now; it does not decode."""
        return self.known - self.computed

    def compute(self, tokens: int) -> bool:
        """A step that has been planned computes `tokens` positions; whether all known ones are computed."""
        self.computed += tokens
        return self.computed == self.known

    def catch_up(self, step: int) -> None:
        """All known positions are computed: step number `step` - 1 brings a token."""
        self.known += 1
        self.last_step = step - 1
        self.joined = step

    def pause(self, step: int) -> None:
        """Step number `step` - 1 was the last in which it decoded: its progress is explicit again."""
        self.computed += step - self.joined
        self.known = self.computed + 1
        self.last_step = step - 1

    def lose(self, kept: bool = False) -> int:
        """Its computed positions leave the memory, and are thrown away unless they are `kept`; returns how many."""
        lost = self.computed
        self.peak = max(self.peak, lost)
        if not kept:
            self.computed = 0
        return lost

    def roll_back(self, step: int, start: int | None, before: int | None) -> None:
        """No step from number `step` on has ended: take back the tokens and positions that they would have brought.

        start   positions before the first of these steps, if one of them computed a chunk
        before  the step of its token before, if one of them completed its prompt or a recomputation
        """
        lost = 0
        if self.last_step >= step:
            lost = self.last_step + 1 - max(step, self.joined - 1)
            self.known -= lost
            self.last_step = step - 1 if before is None else before
        if self.computed:
            self.computed = self.computed - lost if start is None else start
