"""Multi-level feedback queue with skip-join: requests with short prompts and few generated tokens go first.

The order of FastServe (Wu et al., arXiv 2305.05920). Level k has a quantum of `quantum` x `ratio`^k output tokens,
and the last level has no end. A new request skips the levels whose quantum is shorter than its prefill, where
`prompt_tokens` of a prompt take as long as one output token. A sequence that has generated a level's quantum is
demoted to the next level. Within a level the order is by arrival.

With `preemptive`, a waiting sequence takes the slot of the running sequence that is last by level and arrival, if
that comes after the waiting one. FastServe does so and keeps the KV cache meanwhile (`preemption: swap`; its
proactive swapping is not modelled). Without `preemptive`, sequences are preempted only for lack of pages, and a
demotion takes effect when a preempted sequence returns to the queue. No prediction is needed. Long requests starve
while short ones arrive: pair it with `max_wait`, which corresponds to FastServe's promotion.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from policies.base.entry import Entry, Option
from policies.base.option_values import flag, whole
from policies.base.predicted_order import generated
from sim.policy.base import Order, Rank, RankedOrder
from sim.policy.listener import Listener
from sim.request import Nanoseconds
from sim.sequence import Sequence


@dataclass(frozen=True)
class Levels:
    """The levels and their quanta. Raises ValueError for a number below 1."""

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
            whole(name, value)

    def of(self, prompt: int, tokens: int) -> int:
        """The level of a sequence with this prompt length and number of generated tokens."""
        return self.place(prompt, tokens)[0]

    def place(self, prompt: int, tokens: int) -> tuple[int, int | None]:
        """The level, and the tokens left of its quantum (None at the last level)."""
        level, quantum = 0, self.quantum
        while level < self.levels - 1 and quantum * self.prompt_tokens < prompt:
            level, quantum = level + 1, quantum * self.ratio
        while level < self.levels - 1 and tokens >= quantum:
            tokens -= quantum
            level, quantum = level + 1, quantum * self.ratio
        return level, quantum - tokens if level < self.levels - 1 else None


class MultiLevelFeedback(RankedOrder, Listener):
    """Ranked by level, ties by arrival."""

    def __init__(self, levels: Levels, preemptive: bool = False) -> None:
        super().__init__()
        self.levels = levels
        self.preempts = preemptive
        if preemptive:
            self.listeners = (self,)
        self.running: dict[int, Sequence] = {}  # if preemptive

    def rank(self, seq: Sequence) -> Rank:
        """The level; 0 goes first."""
        return (self.levels.of(seq.request.prompt, generated(seq)),)

    def displaced(self, head: Sequence, running: Iterable[Sequence], now: Nanoseconds, step: int) -> Sequence | None:
        """The running sequence that is last by level and arrival, if it comes after the head."""
        places = {seq.index: (self.levels.of(seq.request.prompt, seq.generated(step)), seq.index) for seq in running}
        there = [seq for seq in self.running.values() if seq.index in places and not seq.over]
        last = max(there, key=lambda seq: places[seq.index], default=None)
        own = (self.levels.of(head.request.prompt, head.generated(step)), head.index)
        return last if last is not None and places[last.index] > own else None

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When the first running sequence has used up its quantum and may be displaced."""
        places = [self.levels.place(seq.request.prompt, seq.generated(step)) for seq in self.running.values()]
        return None, min((left for _, left in places if left is not None), default=None)

    def admitted(self, seq: Sequence, step: int) -> None:
        """Record the sequence as running."""
        self.running[seq.index] = seq

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Return to the queue, ranked again."""
        self.running.pop(seq.index, None)
        super().push_back(seq, now, step)

    def left(self, seq: Sequence, step: int) -> None:
        """Remove the sequence from the running ones."""
        self.running.pop(seq.index, None)


def make(seed: int, preemptive: object, **options: int) -> Order:
    """The order with these levels; `seed` is not used. Raises ValueError for an impossible option."""
    return MultiLevelFeedback(Levels(**options), flag("preemptive", preemptive))


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
