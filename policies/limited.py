"""What limits share: an order in which some requests may not go yet, and the others go past them.

Everyone joins the order that is wrapped. Whoever comes to its head and may not go is held aside, in a line of its
group (an order of the same kind), and the next is looked at. When a group may go again, the head of its line
rejoins the wrapped order: under fcfs at the front (of several the one that came first), under a ranked order at the
place of its rank, under one that charges on entry with what it owes. If all are held, nobody goes, though slots are
free.

Limits belong outside of other wrappers: what is held aside is not seen by what lies inside. A predictor that
learns does so in each line on its own, from when the line is first needed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator

from policies.wrapper import Wrapper, sooner
from sim.policy.base import Order
from sim.request import Nanoseconds, Sequence


class Limited(Wrapper):
    """The order it wraps, without those who may not go."""

    def __init__(self, order: Callable[[], Order]) -> None:
        """`order` makes the wrapped order, and the lines of those held."""
        super().__init__(order())
        self.counts_service = True
        self.new_line = order
        self.lines: dict[str, Order] = {}  # of those held, by group
        self.held: dict[int, Sequence] = {}
        self.returned: dict[str, Sequence] = {}  # by group, who is back in the wrapped order and waits there
        self.lined_up: dict[int, Sequence] = {}  # those who have been in the line of their group
        self.running: dict[str, dict[int, Sequence]] = {}  # by group

    @abstractmethod
    def may_go(self, seq: Sequence, now: Nanoseconds) -> bool:
        """Whether the limit lets this sequence go."""

    def may_change(self, seq: Sequence, now: Nanoseconds) -> Nanoseconds | None:
        """When one who is held may go although nobody comes, goes or ends; None: never."""
        return None

    def group(self, seq: Sequence) -> str:
        """Whose limit counts for this sequence."""
        return seq.request.tenant

    def head(self, now: Nanoseconds, step: int) -> Sequence | None:
        """The first of the wrapped order who may go."""
        able = [(first, group) for group, first in self.firsts(now, step) if self.may_go(first, now)]
        for first, group in sorted(able, key=lambda one: -one[0].index):
            self.release(first)
            self.returned[group] = first
            self.inner.rejoin(first, now, step)
        while len(self.inner):
            seq = self.inner.head(now, step)
            if seq is None or self.may_go(seq, now):
                return seq
            self.inner.pop(seq)
            self.hold(seq, now, step)
        return None

    def firsts(self, now: Nanoseconds, step: int) -> list[tuple[str, Sequence]]:
        """(group, head of its line) of the groups that have nobody back in the wrapped order."""
        lines = [(group, line) for group, line in self.lines.items() if len(line) and group not in self.returned]
        heads = [(group, line.head(now, step)) for group, line in lines]
        return [(group, head) for group, head in heads if head is not None]

    def hold(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """Aside, into the line of its group; one who has been there, or has run, goes before those who came later."""
        group = self.group(seq)
        if group not in self.lines:
            self.lines[group] = self.new_line()
        if self.returned.get(group) is seq:
            del self.returned[group]
        self.held[seq.index] = seq
        line = self.lines[group]
        if seq.index not in self.lined_up:
            self.lined_up[seq.index] = seq
            line.push(seq, now, step)
            if seq.serial < 0:
                return
            line.pop(seq)
        line.rejoin(seq, now, step)

    def release(self, seq: Sequence) -> None:
        """Out of the line."""
        del self.held[seq.index]
        self.lines[self.group(seq)].pop(seq)

    def pop(self, seq: Sequence) -> None:
        """Leave, from among those held too."""
        if seq.index in self.held:
            self.release(seq)
            return
        group = self.group(seq)
        if self.returned.get(group) is seq:
            del self.returned[group]
        super().pop(seq)

    def next_change(self, now: Nanoseconds, step: int) -> tuple[Nanoseconds | None, int | None]:
        """When someone held may go, or the wrapped order or a line of those held may change its answer."""
        until, steps = super().next_change(now, step) if len(self.inner) else (None, None)
        for group, first in self.firsts(now, step):
            until = sooner(until, self.may_change(first, now))
            line_until, line_steps = self.lines[group].next_change(now, step)
            until, steps = sooner(until, line_until), sooner(steps, line_steps)
        return until, steps

    def __len__(self) -> int:
        return len(self.inner) + len(self.held)

    def __iter__(self) -> Iterator[Sequence]:
        yield from self.held.values()
        yield from self.inner

    def admitted(self, seq: Sequence, step: int) -> None:
        """It runs."""
        self.running.setdefault(self.group(seq), {})[seq.index] = seq
        super().admitted(seq, step)

    def push_back(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """It no longer does, and waits again."""
        self.running.get(self.group(seq), {}).pop(seq.index, None)
        super().push_back(seq, now, step)
        self.line_up(seq, now, step)

    def rejoin(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """A limit around this one lets it go."""
        super().rejoin(seq, now, step)
        self.line_up(seq, now, step)

    def line_up(self, seq: Sequence, now: Nanoseconds, step: int) -> None:
        """One that has come back waits with those of its group that are held, if there are any."""
        group = self.group(seq)
        back = self.returned.get(group)
        if back is not None:
            self.inner.pop(back)
            self.hold(back, now, step)
        if group in self.lines and len(self.lines[group]):
            self.inner.pop(seq)
            self.hold(seq, now, step)

    def left(self, seq: Sequence, step: int) -> None:
        """It ended, from a slot or from the queue."""
        self.running.get(self.group(seq), {}).pop(seq.index, None)
        self.lined_up.pop(seq.index, None)
        super().left(seq, step)
        for line in self.lines.values():
            line.left(seq, step)


def whole(name: str, value: object, least: int = 1) -> int:
    """`value` if it is a whole number of at least `least`; raises ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} is {value!r}; expected a whole number, at least {least}")
    return value
