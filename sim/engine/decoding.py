"""The sequences that simply decode, one token each in every step: their progress is one counter.

A decoder's computed positions are the step counter plus its own constant `base`, so a step touches no
sequence. The next to reach its goal is the top of a heap, and so is, where a cost asks for it, the longest; the
pages that a step needs are counted by phase (position modulo page size). Steps are counted as planned, not as
ended.
"""

from __future__ import annotations

from array import array
from heapq import heapify, heappop, heappush

from sim.request import Sequence


class Decoders:
    """All decoders of one engine, between two plans."""

    __slots__ = ("bases", "context", "count", "finishing", "page_size", "pages_needed", "step", "watched")

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.step = 0  # steps planned so far
        self.count = 0
        self.context = 0  # computed positions of all
        self.pages_needed = array("q", [0]) * page_size  # how many need a page, by step modulo page size
        self.finishing: list[tuple[int, int, Sequence]] = []  # heap by finishing step; some may have left
        self.watched = False
        self.bases: list[tuple[int, int, Sequence]] = []  # heap, the longest first, if watched; some may have left

    def computed(self, seq: Sequence) -> int:
        """Positions that a decoder has computed."""
        return self.step + seq.base

    def join(self, seq: Sequence) -> None:
        """From the next step on the sequence computes one token a step, until it reaches its goal."""
        seq.decoding = True
        seq.base = seq.computed - self.step
        seq.joined = self.step
        self.count += 1
        self.context += seq.computed
        self.pages_needed[-seq.base % self.page_size] += 1
        heappush(self.finishing, (seq.goal - seq.base, seq.serial, seq))
        if self.watched:
            self.watch_one(seq)

    def leave(self, seq: Sequence) -> None:
        """The sequence no longer advances with the others; its progress is its own again."""
        seq.decoding = False
        seq.computed = self.step + seq.base
        seq.known = seq.computed + 1
        seq.last_step = self.step - 1
        self.count -= 1
        self.context -= seq.computed
        self.pages_needed[-seq.base % self.page_size] -= 1

    def advance(self, steps: int) -> None:
        """Every decoder computes a token in each of so many steps."""
        self.step += steps
        self.context += self.count * steps

    def next_finish(self) -> int:
        """The step count at which the next decoder reaches its goal. There is at least one."""
        while True:
            finish, serial, seq = self.finishing[0]
            if seq.decoding and seq.serial == serial and seq.goal - seq.base == finish:
                return finish
            heappop(self.finishing)

    def watch(self) -> None:
        """From now on know the longest, for a cost that depends on it. Nobody decodes yet."""
        assert not self.count, "watched from the beginning, or not at all"
        self.watched = True

    def watch_one(self, seq: Sequence) -> None:
        """Enter a decoder by its length, and drop those that have left once they are the most: O(log n) a join."""
        heappush(self.bases, (-seq.base, seq.serial, seq))
        if len(self.bases) > 2 * self.count + 64:
            self.bases = [entry for entry in self.bases if present(entry)]
            heapify(self.bases)

    def longest(self) -> int:
        """Positions that the longest decoder has computed, 0 if nobody decodes; only if watched."""
        while self.bases and not present(self.bases[0]):
            heappop(self.bases)
        return self.step - self.bases[0][0] if self.bases else 0

    def some_due(self) -> bool:
        """Whether anybody may have reached the goal."""
        return bool(self.finishing) and self.finishing[0][0] <= self.step

    def due(self) -> list[Sequence]:
        """The decoders that have reached their goal, in the order they were admitted; they leave."""
        leaving = []
        while self.count and self.next_finish() <= self.step:
            seq = heappop(self.finishing)[2]
            self.leave(seq)
            leaving.append(seq)
        return leaving

    def pages_ahead(self, steps: int) -> array[int]:
        """Pages that they begin in each of the steps after that one."""
        at = (self.step + 1) % self.page_size
        if at + steps <= self.page_size:
            return self.pages_needed[at : at + steps]
        if steps <= self.page_size:
            return self.pages_needed[at:] + self.pages_needed[: at + steps - self.page_size]
        cycle = self.pages_needed[at:] + self.pages_needed[:at]
        return (cycle * (steps // self.page_size + 1))[:steps]

    def steps_within(self, pages: int, most: int) -> int:
        """How many steps after the one planned next so many pages allow, up to `most`."""
        if self.count * (most // self.page_size + 1) <= pages:
            return most
        cycles, pages = divmod(pages, self.count)
        steps = cycles * self.page_size
        for need in self.pages_ahead(min(self.page_size, most - steps)):
            pages -= need
            if pages < 0:
                break
            steps += 1
        return min(steps, most)

    def go_back(self, step: int) -> None:
        """Nobody decodes, and only so many of the steps planned will have been."""
        self.step = step
        self.finishing, self.bases = [], []

    def check(self) -> None:
        """Nobody decodes: what holds once every sequence has left."""
        assert not self.count, f"{self.count} decoders are counted that are not there"
        assert not self.context, f"{self.context} positions are counted that are not there"
        assert not any(self.pages_needed), "a page is expected that nobody needs"


def present(entry: tuple[int, int, Sequence]) -> bool:
    """Whether the decoder of an entry of `bases` still decodes from there."""
    base, serial, seq = entry
    return seq.decoding and seq.serial == serial and seq.base == -base
