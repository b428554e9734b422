"""The sequences that decode one token in every step: their progress is one counter.

The computed positions of a decoder are the step counter plus a constant of its own (`base_of`), so that a step
touches no sequence. The next to reach its goal is the top of a heap, and so is the longest, where a cost depends on
it. The pages that a step needs are counted by phase (position modulo page size). Steps count from their plan on.
"""

from __future__ import annotations

from array import array
from heapq import heapify, heappop, heappush

from sim.sequence import Sequence


class Decoders:
    """All decoders of one engine."""

    __slots__ = ("bases", "context", "count", "finishing", "latest", "page_size", "pages_needed", "step", "watched")

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.step = 0  # steps planned so far
        self.count = 0
        self.context = 0  # computed positions of all
        self.latest = -1  # highest admission number that has had a token; later ones can only be prefilling
        self.pages_needed = array("q", [0]) * page_size  # how many need a page, by step modulo page size
        self.finishing: list[tuple[int, int, Sequence]] = []  # heap by finishing step; some may have left
        self.watched = False
        self.bases: list[tuple[int, int, Sequence]] = []  # heap, the longest first, if watched; some may have left

    def join(self, seq: Sequence) -> None:
        """Add a sequence: from the next step on it computes one token a step, until it reaches its goal."""
        seq.decoding = True
        base = seq.computed - self.step
        self.count += 1
        self.context += seq.computed
        self.pages_needed[-base % self.page_size] += 1
        heappush(self.finishing, (seq.target.goal - base, seq.serial, seq))
        if self.watched:
            self.watch_one(seq)

    def leave(self, seq: Sequence) -> None:
        """Remove a sequence; its progress is stored in it again."""
        seq.decoding = False
        seq.pause(self.step)
        self.count -= 1
        self.context -= seq.computed
        self.pages_needed[(self.step - seq.computed) % self.page_size] -= 1

    def advance(self, steps: int) -> bool:
        """Count `steps` steps, in each of which every decoder computes a token; whether one may be at its goal."""
        self.step += steps
        self.context += self.count * steps
        return bool(self.finishing) and self.finishing[0][0] <= self.step

    def next_finish(self) -> int:
        """The step count at which the next decoder reaches its goal; there is at least one decoder."""
        while True:
            finish, serial, seq = self.finishing[0]
            if seq.decoding and seq.serial == serial and seq.target.goal + seq.joined - seq.computed == finish:
                return finish
            heappop(self.finishing)

    def watch(self) -> None:
        """Keep the longest decoder up to date, for a cost that depends on it; called before any sequence decodes."""
        assert not self.count, "watched from the beginning, or not at all"
        self.watched = True

    def watch_one(self, seq: Sequence) -> None:
        """Enter a decoder by its length; entries of those that have left are dropped once they are the most."""
        heappush(self.bases, (-base_of(seq), seq.serial, seq))
        if len(self.bases) > 2 * self.count + 64:
            self.bases = [entry for entry in self.bases if present(entry)]
            heapify(self.bases)

    def longest(self) -> int:
        """Positions that the longest decoder has computed, 0 if there is none; only if watched."""
        while self.bases and not present(self.bases[0]):
            heappop(self.bases)
        return self.step - self.bases[0][0] if self.bases else 0

    def due(self) -> list[Sequence]:
        """Remove and return the decoders that have reached their goal, in order of admission."""
        leaving = []
        while self.count and self.next_finish() <= self.step:
            seq = heappop(self.finishing)[2]
            self.leave(seq)
            leaving.append(seq)
        return leaving

    def pages_ahead(self, steps: int) -> array[int]:
        """Pages that the decoders begin in each of the `steps` steps after the next one: int64, one a step."""
        at = (self.step + 1) % self.page_size
        if at + steps <= self.page_size:
            return self.pages_needed[at : at + steps]
        if steps <= self.page_size:
            return self.pages_needed[at:] + self.pages_needed[: at + steps - self.page_size]
        cycle = self.pages_needed[at:] + self.pages_needed[:at]
        return (cycle * (steps // self.page_size + 1))[:steps]

    def steps_within(self, pages: int, most: int) -> int:
        """For how many steps after the next one `pages` free pages are enough, up to `most`."""
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
        """Set the step counter back to `step`, after a failure; no sequence decodes."""
        self.step = step
        self.finishing, self.bases = [], []

    def check(self) -> None:
        """Check what holds once every sequence has left: nothing is counted. Raises AssertionError."""
        assert not self.count, f"{self.count} decoders are counted that are not there"
        assert not self.context, f"{self.context} positions are counted that are not there"
        assert not any(self.pages_needed), "a page is expected that no decoder needs"


def base_of(seq: Sequence) -> int:
    """The computed positions of a decoder less the step counter."""
    return seq.computed - seq.joined


def present(entry: tuple[int, int, Sequence]) -> bool:
    """Whether the decoder of an entry of `bases` still decodes from there."""
    base, serial, seq = entry
    return seq.decoding and seq.serial == serial and base_of(seq) == -base
