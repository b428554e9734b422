"""Multi-level feedback with skip-join: little has been served, or is to be prefilled, goes first.

FastServe's order (Wu et al., arXiv 2305.05920), as far as it applies where nobody is preempted for its sake.
Level k has a quantum of `quantum` x `ratio`^k output tokens, and the last has no end. A newcomer skips the levels
whose quantum is less than its prefill takes, `prompt_tokens` of a prompt taking as long as one output token: that
much it would use up before its first token. A sequence that has generated a level's quantum is demoted to the
next. Within a level the order is that of arrival.

With `preemptive`, whoever waits takes the slot of the running sequence that comes last by level and arrival, if it
comes after the one that waits: as in FastServe, which keeps the KV cache meanwhile (`preemption: swap`; it also moves
it ahead of time, which is not modelled). Without it nobody is preempted but for want of pages, and a demotion shows
when a preempted sequence returns: to the level for what it has generated so far. No prediction is needed. Long
requests starve while short ones come: pair it with `max_wait`, which is FastServe's promotion too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from policies.entry import Entry, Option
from policies.predicted import generated
from sim.policy.base import Order, Rank, RankedOrder
from sim.request import Nanoseconds, Sequence


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
        return self.place(prompt, tokens)[0]

    def place(self, prompt: int, tokens: int) -> tuple[int, int | None]:
        """The level, and the tokens that are left of its quantum (None: there is no end to the last)."""
        level, quantum = 0, self.quantum
        while level < self.levels - 1 and quantum * self.prompt_tokens < prompt:
            level, quantum = level + 1, quantum * self.ratio
        while level < self.levels - 1 and tokens >= quantum:
            tokens -= quantum
            level, quantum = level + 1, quantum * self.ratio
        return level, quantum - tokens if level < self.levels - 1 else None


class MultiLevelFeedback(RankedOrder):
    """Ranked by level."""

    def __init__(self, levels: Levels, preemptive: bool = False) -> None:
        super().__init__()
        self.levels = levels
        self.preempts = self.counts_service = preemptive
        self.running: dict[int, Sequence] = {}  # if preemptive

    def rank(self, seq: Sequence) -> Rank:
        """The level; 0 is the most urgent."""
        return (self.levels.of(seq.request.prompt, generated(seq)),)

    def displaced(self, head: Sequence, running: Iterable[Sequence], now: Nanoseconds, step: int) -> Sequence | None:
        """Whoever comes last by level and arrival, if it comes after the head."""
        places = {seq.index: (self.levels.of(seq.request.prompt, seq.generated(step)), seq.index) for seq in running}
        there = [seq for seq in self.running.values() if seq.index in places and not seq.over]
        last = max(there, key=lambda seq: places[seq.index], default=None)
        own = (self.levels.of(head.request.prompt, head.generated(step)), head.index)
        return last if last is not None and places[last.index] > own else None

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When a running sequence has used up its quantum, and may have to leave."""
        places = [self.levels.place(seq.request.prompt, seq.generated(step)) for seq in self.running.values()]
        return None, min((left for _, left in places if left is not None), default=None)

    def admitted(self, seq: Sequence, step: int) -> None:
        """It runs."""
        self.running[seq.index] = seq

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """It no longer does."""
        self.running.pop(seq.index, None)
        super().push_back(seq, now, step)

    def left(self, seq: Sequence, step: int) -> None:
        """It is gone."""
        self.running.pop(seq.index, None)


def make(seed: int, preemptive: object, **options: int) -> Order:
    """The levels asked for. Raises ValueError for options that make no sense."""
    if not isinstance(preemptive, bool):
        raise ValueError(f"preemptive is {preemptive!r}; expected true or false")
    return MultiLevelFeedback(Levels(**options), preemptive)


ENTRY = Entry(
    "Multi-level feedback with skip-join: by prompt first, later by what has been generated.",
    make,
    {
        "quantum": Option(16),
        "ratio": Option(4),
        "levels": Option(5),
        "prompt_tokens": Option(64),
        "preemptive": Option(False),
    },
    source="FastServe: Wu et al., arXiv 2305.05920",
)
