"""Multi-level feedback with skip-join: little has been served, or is to be prefilled, goes first.

FastServe's order (Wu et al., arXiv 2305.05920), as far as it applies where nobody is preempted for its sake.
Level k has a quantum of `quantum` x `ratio`^k output tokens, and the last has no end. A newcomer skips the levels
whose quantum is less than its prefill takes, `prompt_tokens` of a prompt taking as long as one output token: that
much it would use up before its first token. A sequence that has generated a level's quantum is demoted to the
next. Within a level the order is that of arrival.

FastServe preempts after every quantum and keeps the KV cache; this engine preempts only for want of pages, so a
demotion shows when a preempted sequence returns: to the level for what it has generated so far. No prediction is
needed. Long requests starve while short ones come: pair it with `max_wait`, which is FastServe's promotion too.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.entry import Entry, Option
from policies.predicted import generated
from sim.policy import Order, Rank, RankedOrder
from sim.request import Sequence


@dataclass(frozen=True)
class Levels:
    """The quanta. Raises ValueError for numbers below 1."""

    quantum: int
    ratio: int
    levels: int
    prompt_tokens: int

    def __post_init__(self) -> None:
        counts = {
            "quantum": self.quantum,
            "ratio": self.ratio,
            "levels": self.levels,
            "prompt_tokens": self.prompt_tokens,
        }
        for name, value in counts.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}; expected a whole number, at least 1")

    def of(self, prompt: int, tokens: int) -> int:
        """The level of a sequence with such a prompt that has generated so many tokens."""
        level, quantum = 0, self.quantum
        while level < self.levels - 1 and quantum * self.prompt_tokens < prompt:
            level, quantum = level + 1, quantum * self.ratio
        while level < self.levels - 1 and tokens >= quantum:
            tokens -= quantum
            level, quantum = level + 1, quantum * self.ratio
        return level


class MultiLevelFeedback(RankedOrder):
    """Ranked by level."""

    def __init__(self, levels: Levels) -> None:
        super().__init__()
        self.levels = levels

    def rank(self, seq: Sequence) -> Rank:
        """The level; 0 is the most urgent."""
        return (self.levels.of(seq.request.prompt, generated(seq)),)


def make(seed: int, **options: int) -> Order:
    """The levels asked for. Raises ValueError for options that make no sense."""
    return MultiLevelFeedback(Levels(**options))


ENTRY = Entry(
    "Multi-level feedback with skip-join: by prompt first, later by what has been generated.",
    make,
    {"quantum": Option(16), "ratio": Option(4), "levels": Option(5), "prompt_tokens": Option(64)},
    source="FastServe: Wu et al., arXiv 2305.05920",
)
