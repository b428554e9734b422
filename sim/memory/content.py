"""The content of a sequence as runs of consecutive tokens, for a cache that compares prefixes token by token.

A run is (source, first, count): `count` tokens with the numbers from `first` on. Tokens of different sources differ.
Sources are the ids of tokens (None), a block of a trace (size and id; numbered from the block's beginning), and a
sequence itself (its index; numbered by position), for what no other sequence can have: prompts of which only the
length is known, and generated tokens that no session repeats. Runs are as long as possible, so equal tokens have
equal runs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Literal

from sim.request import NO_LIMIT, Request
from sim.sequence import Sequence

Run = tuple[Hashable, int, int]
LENGTH = itemgetter(2)
Share = Literal["none", "tenant", "all"]


class Content:
    """The tokens of one sequence, those still to be generated included.

    runs  in order; that of a sequence has no end
    ends  the position at which each of them ends
    """

    __slots__ = ("ends", "runs")

    def __init__(self, runs: Iterable[Run]) -> None:
        self.runs = list(runs)
        self.ends = list(accumulate(map(LENGTH, self.runs)))

    def part(self, start: int, end: int) -> list[Run]:
        """The runs of positions `start` to `end` (excluded), at least one."""
        place, last = bisect_right(self.ends, start), bisect_left(self.ends, end)
        if place == last:
            return [self.cut(place, start, end)]
        return [self.cut(place, start, end), *self.runs[place + 1 : last], self.cut(last, start, end)]

    def cut(self, place: int, start: int, end: int) -> Run:
        """The part of one run that lies between two positions."""
        source, first, count = self.runs[place]
        begin = self.ends[place] - count
        skipped = max(0, start - begin)
        return source, first + skipped, min(count, end - begin) - skipped

    def page(self, start: int, size: int) -> Hashable:
        """What tells the page from `start` on apart from every other page of this size."""
        place = bisect_right(self.ends, start)
        end = self.ends[place]
        if start + size <= end:
            source, first, count = self.runs[place]
            return source, first + start - end + count
        return tuple(self.part(start, start + size))

    def agreement(self, start: int, runs: list[Run]) -> int:
        """How many tokens from `start` on are those of `runs`, which are not longer than this content."""
        place = bisect_right(self.ends, start)
        mine = self.cut(place, start, self.ends[place])
        if mine != runs[0] or len(runs) == 1:
            return in_common(mine, runs[0])
        inner = len(runs) - 1
        if self.runs[place + 1 : place + inner] == runs[1:inner]:
            same = inner
        else:
            same = next(at for at in range(1, inner) if self.runs[place + at] != runs[at])
        agreed: int = self.ends[place + same - 1] - start
        return agreed + in_common(self.runs[place + same], runs[same])


def in_common(one: Run, other: Run) -> int:
    """How many tokens two runs have in common before they differ."""
    return min(one[2], other[2]) if one[:2] == other[:2] else 0


def content(seq: Sequence) -> Content:
    """The content of a sequence; made once."""
    found: Content | None = seq.pages.content
    if found is None:
        found = seq.pages.content = Content(runs(seq))
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
    starts = [0, *(place for place, token in enumerate(tokens[1:], 1) if token != tokens[place - 1] + 1)]
    return ((None, tokens[start], end - start) for start, end in pairwise([*starts, len(tokens)]))


def of_blocks(request: Request, length: int) -> Iterator[Run]:
    """The runs of the blocks of a request, of which the last may be cut off at position `length`."""
    size = request.block_size
    for place, block in enumerate(request.blocks):
        yield (size, block), 0, min(size, length - place * size)


def halves(runs: list[Run], at: int) -> tuple[list[Run], list[Run]]:
    """The first `at` tokens of some runs, and the others; neither is empty."""
    whole = Content(runs)
    return whole.part(0, at), whole.part(at, whole.ends[-1])


def first_page(runs: list[Run], size: int) -> Hashable:
    """What tells the first page of some runs apart from every other page of this size."""
    source, first, count = runs[0]
    return (source, first) if size <= count else Content(runs).page(0, size)
