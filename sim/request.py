"""A request as its client sends it (Request, immutable), and its progress on one engine (Sequence)."""

from __future__ import annotations

from collections.abc import Hashable, Sized
from dataclasses import dataclass, field
from typing import Any, Protocol

Nanoseconds = int

SECOND: Nanoseconds = 1_000_000_000

NO_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True)
class Request:
    """One request as a client sends it; token counts are at least 1, times are integer nanoseconds.

    arrival        when its client wants to send it; clients that wait for answers set it when they send
    prompt         prompt tokens
    output         true number of generated tokens, not visible to policies
    max_output     limit that the client declared, visible from the start; 0: none, then `output` is taken and
                   `declared` is false
    priority       a smaller one is more urgent
    tokens         ids of the prompt's tokens, if they are known
    blocks         otherwise ids of blocks of `block_size` tokens, the last perhaps partial, if they are known
    adapter        what else must agree for two equal prompts to have equal KV pages
    spoken         so many first tokens of the answer follow in `tokens` or `blocks`; only the prefix cache uses them,
                   so that a later turn that repeats them finds their pages
    session        name of its conversation
    think          delay of a later turn of a session after the end of the turn before (`sim.service.sessions`)
    cancel_after   the client gives up so long after it has sent the request
    cancel_tokens  the client gives up once it has so many tokens
    queue_timeout  the request times out if it has not been admitted so long after it has joined the queue
    timeout        the request times out if it has not ended so long after it has joined the queue

    ignore_eos     it is known to produce as many tokens as it may; `output` must be `max_output`

    Raises ValueError for a count below 1, a negative arrival, an output above its own limit, content whose length is
    not that of the prompt, or a limit of the client below 1.
    """

    id: str
    arrival: Nanoseconds
    prompt: int
    output: int
    tenant: str = "default"
    max_output: int = 0
    priority: int = 0
    tokens: tuple[int, ...] | None = None
    blocks: tuple[int | str, ...] = ()
    block_size: int = 0
    adapter: str = ""
    cancel_after: Nanoseconds | None = None
    cancel_tokens: int | None = None
    queue_timeout: Nanoseconds | None = None
    timeout: Nanoseconds | None = None
    session: str = ""
    think: Nanoseconds | None = None
    spoken: int = 0
    declared: bool | None = field(default=None, compare=False)
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        if self.declared is None:
            object.__setattr__(self, "declared", self.max_output != 0)
        if self.max_output == 0:
            object.__setattr__(self, "max_output", self.output)
        if self.prompt < 1 or self.output < 1 or self.arrival < 0 or self.max_output < self.output:
            raise ValueError(self.complaint())
        if self.ignore_eos and self.output < self.max_output:
            raise ValueError(f"request {self.id}: output is {self.output}; expected {self.max_output}, as it ignores an EOS")
        if (self.tokens is not None or self.blocks) and not self.content_fits():
            raise ValueError(f"request {self.id}: its content does not have the length of its prompt, {self.prompt}")
        if not (self.cancel_after is self.cancel_tokens is self.queue_timeout is self.timeout is None):
            self.check_patience()

    @property
    def impatient(self) -> bool:
        """Whether it may be cancelled or time out at a certain time."""
        return not (self.cancel_after is self.queue_timeout is self.timeout is None)

    def check_patience(self) -> None:
        """Raise ValueError unless every limit of the client is at least 1."""
        for name in ("cancel_after", "cancel_tokens", "queue_timeout", "timeout"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise ValueError(f"request {self.id}: {name} is {limit}; expected at least 1")

    def content_fits(self) -> bool:
        """Whether the tokens, or the blocks, are as long as the prompt and the `spoken` tokens."""
        length = self.prompt + self.spoken
        if self.tokens is not None:
            return len(self.tokens) == length
        return self.block_size > 0 and len(self.blocks) == -(-length // self.block_size)

    def complaint(self) -> str:
        """The message for the first invalid count of this request."""
        if self.prompt < 1:
            return f"request {self.id}: prompt is {self.prompt}; expected at least 1 token"
        if self.output < 1:
            return f"request {self.id}: output is {self.output}; expected at least 1 token"
        if self.arrival < 0:
            return f"request {self.id}: arrival is {self.arrival} ns; expected 0 or later"
        return f"request {self.id}: output is {self.output}; expected at most its own limit {self.max_output}"


@dataclass(frozen=True, slots=True)
class Leg:
    """The part of a request that one engine computes, where that is not all of it.

    given       tokens that other engines have generated
    ready       positions whose KV is sent along
    redone      positions that another engine had computed, and that are lost
    hands_over  the request leaves this engine with its next token, unless that is its last
    sent        how often the request had been sent to an engine before
    """

    given: int = 0
    ready: int = 0
    redone: int = 0
    hands_over: bool = False
    sent: int = 0


WHOLE = Leg()


class Page:
    """A full page of KV memory in the prefix cache: its key, and how many sequences hold it."""

    __slots__ = ("holders", "key")

    def __init__(self, key: Hashable, holders: int) -> None:
        self.key = key
        self.holders = holders


class Lookup(Protocol):
    """The memory of an engine as an order sees it, implemented by `sim.memory.pool`.

    cached    free pages whose content is still in the cache
    changes   how often the content of the cache has changed
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


class Sequence:
    """The progress of a request on one engine: `computed` token positions out of `known` ones.

    index      its number in the log of the engine
    serial     its admission number, of the present stay; -1 before the first
    behind     the step being planned leaves it with fewer positions computed than known, for want of token budget
    lingers    plans after that of its last token in which it still holds its pages, as that step is in flight
    goal       position count at which its last token appears (prompt + output - 1: that token is never computed), or
               the last token its client waits for, or the end of the longest sequence that the engine takes
    most       positions it may come to hold
    peak       most positions it had computed when they were thrown away
    given      tokens it arrived with, from other engines
    sent       how often its request had been sent to an engine before
    leaves     it goes on elsewhere once it has reached its goal
    cut_short  its client waits for fewer tokens than it would get
    over       its last token has been scheduled
    ended      it has finished, or has been aborted
    finished   it has ended with all its tokens
    entered    the first step of its present stay, -1 before the first
    decoding   its progress is implicit (`sim.engine.decoding`): `computed` is not updated, `base` is the difference
               to the step counter, `joined` the first step in which it decodes
    last_step  the step that brings its latest token, -1 before the first
    needs      pages it needs to be admitted, while it waits
    pages      pages it holds under a rule that reserves them
    pool       the memory of its engine, for an order that looks into the cache
    table      its pages that are in the prefix cache, and `keys` their keys (`sim.memory.prefix`)
    node       the end of its path in the radix cache, and `in_tree` the tokens of the path; `content` its tokens, and
               `counted` how many of them count it among their hits (`sim.memory.radix`)
    """

    __slots__ = (
        "base",
        "behind",
        "computed",
        "content",
        "counted",
        "cut_short",
        "decoding",
        "ended",
        "entered",
        "finished",
        "given",
        "goal",
        "in_tree",
        "index",
        "joined",
        "keys",
        "known",
        "last_step",
        "leaves",
        "lingers",
        "most",
        "needs",
        "node",
        "over",
        "pages",
        "peak",
        "pool",
        "request",
        "sent",
        "serial",
        "table",
    )

    pool: Lookup

    def __init__(
        self, request: Request, index: int, overrun: int = 0, max_model_len: int = NO_LIMIT, leg: Leg = WHOLE
    ) -> None:
        self.request = request
        self.index = index
        self.known = request.prompt + leg.given
        self.computed = leg.ready
        self.peak = leg.redone
        self.given = leg.given
        self.sent = leg.sent
        awaited = request.output if request.cancel_tokens is None else min(request.output, request.cancel_tokens)
        self.goal = min(request.prompt + awaited, max_model_len) - 1
        self.cut_short = self.goal < min(request.prompt + request.output, max_model_len) - 1
        self.most = min(request.prompt + request.max_output, max_model_len) - 1 + overrun
        self.behind = False
        self.lingers = 0
        self.leaves = leg.hands_over and self.goal > self.known
        if self.leaves:
            self.cut_short = True
            self.goal = self.known
            self.most = min(self.most, self.known + overrun)
        self.needs = 0
        self.pages = 0
        self.serial = -1
        self.over = False
        self.ended = False
        self.finished = False
        self.entered = -1
        self.decoding = False
        self.base = 0
        self.joined = 0
        self.last_step = -1
        self.keys: list[bytes] = []
        self.table: list[Page] = []
        self.content: Any = None
        self.node: Any = None
        self.in_tree = 0
        self.counted = 0

    def generated(self, step: int) -> int:
        """Tokens generated once `step` steps have been planned, those in flight included."""
        known = step + self.base + 1 if self.decoding else self.known
        return known - self.request.prompt
