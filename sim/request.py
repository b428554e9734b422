"""What was asked (Request, immutable) and how far it has come (Sequence). Knows nothing of policies."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Protocol

Nanoseconds = int

SECOND: Nanoseconds = 1_000_000_000

NO_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True)
class Request:
    """One request as a client sends it; token counts are at least 1, times are integer nanoseconds.

    `arrival` is when its client wants to send it. Where clients wait for answers that follows from the run, and they
    set it when it is known.

    `output` is the true number of generated tokens, which an engine learns only at the end; `max_output`
    is the limit the client declared, which an engine knows from the start. A request that declares none
    is taken to have asked for exactly what it produced; `declared` is then false. A smaller `priority` is more
    urgent.

    What the prompt says may be known as `tokens` (ids) or as `blocks` (ids of blocks of `block_size` tokens,
    the last one perhaps partial, each id standing for its tokens), or not at all; `adapter` names what else
    must agree for two equal prompts to have equal KV pages. Both may go on to tell the first `spoken` tokens of the
    answer, which nobody but the prefix cache may look at: a later turn that repeats them then finds their pages.

    A conversation is named by `session`; the turns after its first are sent `think` after the end of the one before,
    where clients wait for their answers (`sim.service.sessions`).

    A client may give up: `cancel_after` so long after it has sent the request, or once it has `cancel_tokens`
    tokens; and the request may time out, when it still waits `queue_timeout` after it has joined the queue or has not
    ended `timeout` after that.

    Raises ValueError for a count below 1, a negative arrival, an output above its own limit, content whose
    length is not the prompt's, or a limit of the client's below 1.
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

    def __post_init__(self) -> None:
        if self.declared is None:
            object.__setattr__(self, "declared", self.max_output != 0)
        if self.max_output == 0:
            object.__setattr__(self, "max_output", self.output)
        if self.prompt < 1 or self.output < 1 or self.arrival < 0 or self.max_output < self.output:
            raise ValueError(self.complaint())
        if (self.tokens is not None or self.blocks) and not self.content_fits():
            raise ValueError(f"request {self.id}: its content does not have the length of its prompt, {self.prompt}")
        if not (self.cancel_after is self.cancel_tokens is self.queue_timeout is self.timeout is None):
            self.check_patience()

    @property
    def impatient(self) -> bool:
        """Whether it may end at a certain time, whatever has become of it by then."""
        return not (self.cancel_after is self.queue_timeout is self.timeout is None)

    def check_patience(self) -> None:
        """Raises ValueError unless every limit of the client's is at least 1."""
        for name in ("cancel_after", "cancel_tokens", "queue_timeout", "timeout"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise ValueError(f"request {self.id}: {name} is {limit}; expected at least 1")

    def content_fits(self) -> bool:
        """Whether the tokens, or the blocks, are as long as the prompt and what is told of the answer."""
        told = self.prompt + self.spoken
        if self.tokens is not None:
            return len(self.tokens) == told
        return self.block_size > 0 and len(self.blocks) == -(-told // self.block_size)

    def complaint(self) -> str:
        """The first thing that is wrong with this request, in words."""
        if self.prompt < 1:
            return f"request {self.id}: prompt is {self.prompt}; expected at least 1 token"
        if self.output < 1:
            return f"request {self.id}: output is {self.output}; expected at least 1 token"
        if self.arrival < 0:
            return f"request {self.id}: arrival is {self.arrival} ns; expected 0 or later"
        return f"request {self.id}: output is {self.output}; expected at most its own limit {self.max_output}"


@dataclass(frozen=True, slots=True)
class Leg:
    """The part of a request that one engine does, where that is not all of it.

    given       tokens it has been given by other engines before
    ready       positions whose KV comes along
    redone      positions that another engine had computed, and that are lost
    hands_over  it leaves this engine with its next token, unless that is its last
    sent        how often the request had been sent to an engine before
    """

    given: int = 0
    ready: int = 0
    redone: int = 0
    hands_over: bool = False
    sent: int = 0


WHOLE = Leg()


class Page:
    """A full page of KV memory that can be found by its key, and how many sequences hold it."""

    __slots__ = ("holders", "key")

    def __init__(self, key: Hashable, holders: int) -> None:
        self.key = key
        self.holders = holders


class Lookup(Protocol):
    """What an order may ask of the memory of the engine that a sequence is on; `sim.memory.pool` fills it.

    cached   free pages whose content could still be found
    changes  how often the pool has changed what can be found
    """

    @property
    def page_size(self) -> int:
        """Token positions of a page."""

    @property
    def cached(self) -> int: ...

    @property
    def changes(self) -> int: ...

    def find(self, seq: Sequence) -> list[Page]:
        """The pages that hold the longest prefix of this sequence."""


class Sequence:
    """How far a request has come on one engine: `computed` token positions out of `known` ones.

    behind    the step being planned leaves it with fewer positions computed than known, as the budget is short
    lingers   plans after the one of its last token in which it still has its pages, as that step is in flight
    goal      position count at which its last token appears (prompt + output - 1: that one is never computed),
              or the last its client waits for, or where the longest sequence that the engine takes ends
    most      positions it may come to hold
    peak      most positions it had computed when it lost them
    given     tokens it had when it came, from other engines
    sent      how often its request had been sent to an engine before
    leaves    it goes on elsewhere once it has come to its goal
    cut_short its client waits for fewer tokens than it would get
    over      its last token has been scheduled
    ended     it has finished, or its client has given up
    finished  it has ended with all its tokens
    entered   the first step of its present stay, -1 before the first
    decoding  its progress is implicit (`sim.engine.decoding`): `computed` stays behind, `base` is the difference to
              the step counter, `joined` the step from which on it decodes
    last_step the step that brings its latest token, -1 before the first
    needs     pages it needs to be admitted, while it waits
    pages     pages it holds under a rule that reserves them
    pool      the memory of the engine it is on, for an order that looks into its cache
    table     its pages that can be found by content, and `keys` their names (`sim.memory.prefix`)
    """

    __slots__ = (
        "base",
        "behind",
        "computed",
        "cut_short",
        "decoding",
        "ended",
        "entered",
        "finished",
        "given",
        "goal",
        "index",
        "joined",
        "keys",
        "known",
        "last_step",
        "leaves",
        "lingers",
        "most",
        "needs",
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
        self, request: Request, index: int, overrun: int = 0, longest: int = NO_LIMIT, leg: Leg = WHOLE
    ) -> None:
        self.request = request
        self.index = index
        self.known = request.prompt + leg.given
        self.computed = leg.ready
        self.peak = leg.redone
        self.given = leg.given
        self.sent = leg.sent
        awaited = request.output if request.cancel_tokens is None else min(request.output, request.cancel_tokens)
        self.goal = min(request.prompt + awaited, longest) - 1
        self.cut_short = self.goal < min(request.prompt + request.output, longest) - 1
        self.most = min(request.prompt + request.max_output, longest) - 1 + overrun
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

    def generated(self, step: int) -> int:
        """Tokens it has once so many steps have been planned, those on their way included."""
        known = step + self.base + 1 if self.decoding else self.known
        return known - self.request.prompt
