"""What was asked (Request, immutable). Knows nothing of slots, pages or policies."""

from __future__ import annotations

from dataclasses import dataclass, field

Nanoseconds = int

SECOND: Nanoseconds = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Request:
    """One request as a client sends it; token counts are at least 1, times are integer nanoseconds.

    `output` is the true number of generated tokens, which an engine learns only at the end; `max_output`
    is the limit the client declared, which an engine knows from the start. A request that declares none
    is taken to have asked for exactly what it produced.

    Raises ValueError for a count below 1, a negative arrival, or an output above its own limit.
    """

    id: str
    arrival: Nanoseconds
    prompt: int
    output: int
    tenant: str = "default"
    max_output: int = field(default=0)

    def __post_init__(self) -> None:
        if self.max_output == 0:
            object.__setattr__(self, "max_output", self.output)
        if self.prompt < 1 or self.output < 1 or self.arrival < 0 or self.max_output < self.output:
            raise ValueError(self.complaint())

    def complaint(self) -> str:
        """The first thing that is wrong with this request, in words."""
        if self.prompt < 1:
            return f"request {self.id}: prompt is {self.prompt}; expected at least 1 token"
        if self.output < 1:
            return f"request {self.id}: output is {self.output}; expected at least 1 token"
        if self.arrival < 0:
            return f"request {self.id}: arrival is {self.arrival} ns; expected 0 or later"
        return f"request {self.id}: output is {self.output}; expected at most its own limit {self.max_output}"


class Sequence:
    """How far a request has come on one engine: `computed` token positions out of `known` ones.

    `goal` is the position count at which its last token appears (prompt + output - 1: the last token is
    never computed), `most` the positions it may come to hold, `peak` the most it ever had computed.
    `over` marks one whose last token has been generated.
    While a sequence decodes its progress is implicit: `computed` stays behind, and `base` plus the
    scheduler's step counter is the true count.
    """

    __slots__ = (
        "base",
        "computed",
        "decoding",
        "finish_at",
        "goal",
        "index",
        "known",
        "last_token",
        "most",
        "needs",
        "over",
        "pages",
        "peak",
        "request",
        "serial",
    )

    def __init__(self, request: Request, index: int, overrun: int = 0) -> None:
        self.request = request
        self.index = index
        self.known = request.prompt
        self.computed = 0
        self.peak = 0
        self.goal = request.prompt + request.output - 1
        self.most = request.prompt + request.max_output - 1 + overrun
        self.needs = 0
        self.pages = 0
        self.serial = -1
        self.decoding = False
        self.over = False
        self.base = 0
        self.finish_at = 0
        self.last_token: Nanoseconds = -1
