"""The content of a sequence as runs of consecutive tokens, for a cache that compares prefixes token by token.

A run is (source, first, count): `count` tokens with the numbers from `first` on. Tokens of different sources differ.
Sources are the ids of tokens (None), a block of a trace (size and id; numbered from the block's beginning), and a
sequence itself (its index; numbered by position), for what no other sequence can have: prompts of which only the
length is known, and generated tokens that no session repeats. Runs are as long as possible, so equal tokens have
equal runs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator
from typing import Literal

from sim.request import NO_LIMIT, Request, Sequence

Run = tuple[Hashable, int, int]
Share = Literal["none", "tenant", "all"]


class Content:
    """The tokens of one sequence, those still to be generated included.

    runs  in order; the last has no end
    ends  the position at which each of them ends
    """

    __slots__ = ("ends", "runs")

    def __init__(self, given: Iterable[Run]) -> None:
        self.runs = list(given)
        self.ends: list[int] = []
        end = 0
        for _, _, count in self.runs:
            end += count
            self.ends.append(end)

    def part(self, start: int, end: int) -> list[Run]:
        """The runs of positions `start` to `end` (excluded), at least one."""
        place = bisect_right(self.ends, start)
        source, first, count = self.runs[place]
        skipped = start - self.ends[place] + count
        found = [(source, first + skipped, min(count - skipped, end - start))]
        while self.ends[place] < end:
            place += 1
            source, first, count = self.runs[place]
            found.append((source, first, min(count, end - self.ends[place] + count)))
        return found

    def page(self, start: int, size: int) -> Hashable:
        """What tells the page from `start` on apart from every other page of this size."""
        place = bisect_right(self.ends, start)
        source, first, count = self.runs[place]
        if self.ends[place] >= start + size:
            return source, first + start - self.ends[place] + count
        return tuple(self.part(start, start + size))

    def agreement(self, start: int, runs: list[Run]) -> int:
        """How many tokens from `start` on are those of `runs`."""
        place = bisect_right(self.ends, start)
        source, first, count = self.runs[place]
        skipped = start - self.ends[place] + count
        mine: Run = (source, first + skipped, count - skipped)
        agreed = 0
        for theirs in runs:
            if mine != theirs:
                if mine[:2] == theirs[:2]:
                    agreed += min(mine[2], theirs[2])
                return agreed
            agreed += theirs[2]
            place += 1
            mine = self.runs[place]
        return agreed


def content(seq: Sequence) -> Content:
    """The content of a sequence; made once."""
    found: Content | None = seq.content
    if found is None:
        found = seq.content = Content(runs(seq))
    return found


def runs(seq: Sequence) -> Iterator[Run]:
    """The runs of a sequence, the last without an end."""
    request = seq.request
    known = 0
    if request.tokens is not None or request.blocks:
        known = request.prompt + request.spoken
        yield from consecutive(request.tokens) if request.tokens is not None else of_blocks(request, known)
    yield seq.index, known, NO_LIMIT


def domain(request: Request, share: Share) -> tuple[str, str]:
    """Requests of equal domain may share pages: by `share` those of one request, of one tenant, or all."""
    owner = {"none": request.id, "tenant": request.tenant, "all": ""}[share]
    return owner, request.adapter


def consecutive(tokens: tuple[int, ...]) -> Iterator[Run]:
    """The runs of token ids; at least one id."""
    first, count = tokens[0], 0
    for token in tokens:
        if token != first + count:
            yield None, first, count
            first, count = token, 0
        count += 1
    yield None, first, count


def of_blocks(request: Request, length: int) -> Iterator[Run]:
    """The runs of the blocks of a request, of which the last may be cut off at position `length`."""
    size = request.block_size
    for place, block in enumerate(request.blocks):
        yield (size, block), 0, min(size, length - place * size)


def halves(runs: list[Run], at: int) -> tuple[list[Run], list[Run]]:
    """The first `at` tokens of some runs, and the others; neither is empty."""
    for place, (source, first, count) in enumerate(runs):
        if at < count:
            upper, lower = runs[:place], runs[place + 1 :]
            if at:
                upper.append((source, first, at))
            return upper, [(source, first + at, count - at), *lower]
        at -= count
    raise AssertionError("split beyond the end")
