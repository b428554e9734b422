"""A grid for an engine with captured batches: all of them, chunks in small steps, mixed steps; and held-out points.

Between captured batches nothing has to be interpolated. Chunk sizes lie close enough that a smooth cost is known
between them within a percent. About 130 points: half a minute of a GPU in four rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrate.measure.points import Limits, Point, held_out, uneven

CONTEXTS, STARTS = 5, 3
SIZES = (16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1280, 1536, 2048)
MIXED_BATCHES, MIXED_CONTEXTS, MIXED_SIZES = 4, 2, 4
CANDIDATES = 8
"""Ragged points drawn for each that is held out."""
LEAST = 0.01
"""Fewest positions that a held-out point reads, over the most."""


def fine_grid(limits: Limits, batches: Sequence[int]) -> list[Point]:
    """All batches x 5 contexts, 14 chunk sizes x 3 starts, 4 batches x 2 contexts x 4 sizes mixed, and two chunks.

    And a few uneven decodes, as in `grid`. Points beyond the limits are left out.
    """
    longest = limits.max_model_len - 32
    contexts = spaced(16, longest, CONTEXTS)
    sizes = [size for size in SIZES if size < limits.tokens] + [limits.tokens]
    sizes = chosen(sizes, len(SIZES))
    starts = [0, longest // 8, max(0, longest - limits.tokens)]
    points = [Point("decode", (context,) * batch) for batch in batches for context in contexts]
    points += [Point("chunk", (), ((start, size),)) for size in sizes for start in starts]
    some = chosen([batch for batch in batches if batch < limits.batch], MIXED_BATCHES)
    points += [
        Point("mixed", (context,) * batch, ((0, min(size, limits.tokens - batch)),))
        for batch in some
        for context in (contexts[1], contexts[-2])
        for size in chosen(sizes, MIXED_SIZES + 1)[1:]
        if limits.tokens > batch
    ]
    points += [
        Point("mixed", (), ((0, size // 2), (start, size // 2)))
        for size in chosen(sizes, MIXED_SIZES + 1)[1:]
        for start in starts[:2]
    ]
    points += [made for batch in some if (made := uneven(batch, contexts[2], longest)) is not None]
    return [point for point in dict.fromkeys(points) if limits.allow(point)]


def spaced(first: int, last: int, count: int) -> list[int]:
    """`count` whole numbers from first to last, in equal ratios."""
    return list(dict.fromkeys(round(value) for value in np.geomspace(min(first, last), last, count)))


def chosen(values: Sequence[int], count: int) -> list[int]:
    """At most `count` of some values, evenly, the first and the last among them."""
    if len(values) <= count:
        return list(values)
    return [values[round(place)] for place in np.linspace(0, len(values) - 1, count)]


def stratified(limits: Limits, count: int, seed: int) -> list[Point]:
    """Ragged points to hold out, evenly by the logarithm of the positions that they read, over two decades.

    Drawn without strata, most of them read less than a fiftieth of what the weights are, and test nothing else.
    """
    drawn = held_out(limits, CANDIDATES * count, seed)
    read = np.log([1 + sum(start for start, _ in point.rows) for point in drawn])
    wanted: Sequence[float] = (
        np.linspace(read.max() + np.log(LEAST), read.max(), count).tolist() if len(drawn) else []
    )
    left = dict(enumerate(drawn))
    found: list[Point] = []
    for value in wanted:
        nearest = min(left, key=lambda place: abs(read[place] - value), default=None)
        if nearest is not None:
            found.append(left.pop(nearest))
    return found
