"""A request as its client sends it (Request), how long the client waits (Patience), and a part of it (Leg)."""

from __future__ import annotations

from dataclasses import dataclass

Nanoseconds = int

SECOND: Nanoseconds = 1_000_000_000

NO_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client waits for a request; None: without limit. Raises ValueError for a limit below 1.

    cancel_after   it gives up so many ns after it has sent the request
    cancel_tokens  it gives up once it has so many tokens
    queue_timeout  the request times out if it has not been admitted so many ns after it has joined the queue
    timeout        the request times out if it has not ended so many ns after it has joined the queue
    ignore_eos     it waits for as many tokens as it may get, which an engine knows: no earlier end counts
    """

    cancel_after: Nanoseconds | None = None
    cancel_tokens: int | None = None
    queue_timeout: Nanoseconds | None = None
    timeout: Nanoseconds | None = None
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        for name in ("cancel_after", "cancel_tokens", "queue_timeout", "timeout"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise ValueError(f"{name} is {limit}; expected at least 1")


ENDLESS = Patience()


@dataclass(frozen=True, slots=True)
class Request:
    """One request as a client sends it; token counts are at least 1, times are integer nanoseconds.

    arrival   when its client wants to send it; clients that wait for answers set it when they send
    prompt    prompt tokens
    output    true number of generated tokens, not visible to policies
    declared  limit of the output that the client declared; 0: none
    priority  a smaller one is more urgent
    tokens    ids of the prompt's tokens, if they are known
    blocks    otherwise ids of blocks of `block_size` tokens, the last perhaps partial, if they are known
    adapter   what else must agree for two equal prompts to have equal KV pages
    spoken    so many first tokens of the answer follow in `tokens` or `blocks`; only the prefix cache uses them,
              so that a later turn that repeats them finds their pages
    session   name of its conversation
    think     delay of a later turn of a session after the end of the turn before (`sim.service.sessions`)
    patience  how long its client waits

    Raises ValueError for a count below 1, a negative arrival, an output above its own limit, or content whose length
    is not that of the prompt.
    """

    id: str
    arrival: Nanoseconds
    prompt: int
    output: int
    tenant: str = "default"
    declared: int = 0
    priority: int = 0
    tokens: tuple[int, ...] | None = None
    blocks: tuple[int | str, ...] = ()
    block_size: int = 0
    adapter: str = ""
    spoken: int = 0
    session: str = ""
    think: Nanoseconds | None = None
    patience: Patience = ENDLESS

    def __post_init__(self) -> None:
        if self.prompt < 1 or self.output < 1 or self.arrival < 0 or 0 != self.declared < self.output:
            raise ValueError(self.complaint())
        if self.patience.ignore_eos and self.output < self.max_output:
            raise ValueError(f"request {self.id}: output is {self.output}; it ignores an EOS: {self.max_output}")
        if (self.tokens is not None or self.blocks) and not self.content_fits():
            raise ValueError(f"request {self.id}: its content does not have the length of its prompt, {self.prompt}")

    @property
    def max_output(self) -> int:
        """The most tokens it may generate, visible from the start: the declared limit, or else the true output."""
        return self.declared or self.output

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
        return f"request {self.id}: output is {self.output}; expected at most its own limit {self.declared}"


@dataclass(frozen=True, slots=True)
class Leg:
    """The part of a request that one engine computes, where that is not all of it.

    given       tokens that other engines have generated
    ready       positions whose KV is sent along
    redone      positions that another engine had computed, and that are lost
    hands_over  the request leaves this engine with its next token, unless that is its last
    kept        its pages then stay here until their content has been copied
    fetches     the KV of the `ready` positions is on another engine until this one has a slot and pages for them
    sent        how often the request had been sent to an engine before
    """

    given: int = 0
    ready: int = 0
    redone: int = 0
    hands_over: bool = False
    kept: bool = False
    fetches: bool = False
    sent: int = 0


WHOLE = Leg()
