"""The steps to measure: a grid of shapes that fits an engine's memory, and ragged ones to hold out.

A point is a set of rows: decodes by the context each reads, chunks by their start and size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sim.cost.shape import Shape

Kind = Literal["decode", "chunk", "mixed", "uneven", "ragged"]


@dataclass(frozen=True)
class Point:
    """A step to measure. `decodes`: the context of each decoding row; `chunks`: (start, size) of the others."""

    kind: Kind
    decodes: tuple[int, ...] = ()
    chunks: tuple[tuple[int, int], ...] = ()

    @property
    def name(self) -> str:
        """The rows in a line; the same for the same rows."""
        return f"{self.kind} {grouped(self.decodes)} + {grouped(self.chunks)}".replace(" +  ", "").strip(" +")

    @property
    def shape(self) -> dict[str, float]:
        """The columns of `calibrate.fit.step_log` but the duration."""
        return {
            "decodes": len(self.decodes),
            "context": sum(self.decodes),
            "chunks": len(self.chunks),
            "chunk_tokens": sum(size for _, size in self.chunks),
            "chunk_work": sum(size * (start + size / 2) for start, size in self.chunks),
        }

    def to_shape(self, context: float | None = None) -> Shape:
        """The shape that a cost takes, with this total context of the decodes instead of the point's own."""
        shape = Shape()
        shape.decodes = len(self.decodes)
        shape.context = sum(self.decodes) if context is None else round(context)
        if self.decodes:
            shape.longest = max(self.decodes) + (shape.context - sum(self.decodes)) // len(self.decodes)
        for start, size in self.chunks:
            shape.add_chunk(start, size)
        return shape

    @property
    def rows(self) -> list[tuple[int, int]]:
        """(start, count) of every row."""
        return [(context, 1) for context in self.decodes] + list(self.chunks)

    def pages(self, page_size: int, spare: int = 0) -> int:
        """Pages it needs, with `spare` more positions for each row."""
        return sum(-(-(start + count + spare) // page_size) for start, count in self.rows)

    def written(self) -> dict[str, object]:
        """As JSON has it; `read` reads it back."""
        return {"kind": self.kind, "decodes": list(self.decodes), "chunks": [list(chunk) for chunk in self.chunks]}


def read(written: dict[str, object]) -> Point:
    """A point from `Point.written`."""
    chunks: Iterable[tuple[int, int]] = written["chunks"]  # type: ignore[assignment]
    decodes: Iterable[int] = written["decodes"]  # type: ignore[assignment]
    return Point(written["kind"], tuple(decodes), tuple((start, size) for start, size in chunks))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Limits:
    """Limits of an engine: rows and tokens of a step, positions of one sequence, pages and their size."""

    batch: int
    tokens: int
    max_model_len: int
    pages: int
    page_size: int

    def allow(self, point: Point, spare: int = 16) -> bool:
        """Whether a point fits, with `spare` more positions for each row."""
        rows = point.rows
        return (
            len(rows) <= self.batch
            and sum(count for _, count in rows) <= max(self.tokens, len(point.decodes))
            and max(start + count for start, count in rows) + spare < self.max_model_len
            and point.pages(self.page_size, spare) <= self.pages
        )


def powers(first: int, last: int, factor: float = 2.0) -> list[int]:
    """From `first` to `last`, each `factor` times the one before, and `last` itself."""
    found, value = [], float(first)
    while round(value) < last:
        found.append(round(value))
        value *= factor
    return [*dict.fromkeys(found), last] if last >= first else []


def grid(limits: Limits, factor: float = 2.0) -> list[Point]:
    """Decodes (batch x context), even and uneven, chunks (size x start) and mixed steps within the limits."""
    longest = limits.max_model_len - 32
    batches = powers(1, limits.batch, factor)
    contexts = powers(min(16, longest), longest, factor**2)
    sizes = powers(min(8, limits.tokens), limits.tokens, factor**2)
    starts = [0, *powers(min(128, longest), longest, factor**2)]
    points = [Point("decode", (context,) * batch) for batch in batches for context in contexts]
    points += [Point("chunk", (), ((start, size),)) for size in sizes for start in starts]
    halves = [batch for batch in batches if batch > 1][:: max(1, len(batches) // 3)]
    points += [
        Point("mixed", (context,) * batch, ((0, min(size, limits.tokens - batch)),))
        for batch in halves
        for context in contexts[:: max(1, len(contexts) - 1)]
        for size in sizes[1::2]
        if limits.tokens > batch + 1
    ]
    points += [
        made
        for batch in halves
        for context in contexts[1:-1][:2]
        if (made := uneven(batch, context, longest)) is not None
    ]
    return [point for point in dict.fromkeys(points) if limits.allow(point)]


def uneven(batch: int, mean: int, longest: int) -> Point | None:
    """Decodes of a mean context of which one reads four times as much, or what fits; None if not twice the mean."""
    long = min(4 * mean, longest, batch * mean - (batch - 1))
    if long < 2 * mean or batch < 2:
        return None
    rest, more = divmod(batch * mean - long, batch - 1)
    return Point("uneven", (long, *(rest + (place < more) for place in range(batch - 1))))


def held_out(limits: Limits, count: int, seed: int) -> list[Point]:
    """Ragged steps unlike every grid point, never used in a fit: contexts over two decades, some with a chunk."""
    stream = np.random.default_rng(seed)
    found: list[Point] = []
    for _ in range(100 * count):
        batch = int(np.exp(stream.uniform(0, np.log(limits.batch + 0.5))))
        longest = np.exp(stream.uniform(np.log(32), np.log(limits.max_model_len)))
        decodes = np.exp(stream.uniform(np.log(longest / 50 + 1), np.log(longest), max(batch, 1)))
        chunks: tuple[tuple[int, int], ...] = ()
        if stream.random() < 0.4:
            size = int(np.exp(stream.uniform(np.log(4), np.log(limits.tokens))))
            chunks = ((int(stream.uniform(0, longest / 2)), size),)
        point = Point("ragged", tuple(int(context) for context in decodes), chunks)
        if limits.allow(point):
            found.append(point)
        if len(found) == count:
            break
    return found


def between(one: Point, other: Point) -> Point | None:
    """The point half-way between two of the same kind whose rows are all alike; None if there is none."""
    if one.kind != other.kind or one.kind not in ("decode", "chunk") or one == other:
        return None
    if one.kind == "decode":
        batch = round((len(one.decodes) * len(other.decodes)) ** 0.5)
        context = round((one.decodes[0] * other.decodes[0]) ** 0.5)
        made = Point("decode", (context,) * batch)
    else:
        (start, size), (other_start, other_size) = one.chunks[0], other.chunks[0]
        made = Point("chunk", (), (((start + other_start) // 2, round((size * other_size) ** 0.5)),))
    return None if made in (one, other) else made


def grouped(values: Iterable[object]) -> str:
    """Values with their counts, for a name."""
    counts: dict[object, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    said = [f"{count}x{value}" for value, count in counts.items()]
    return " ".join(said).replace(", ", "+").replace("(", "").replace(")", "")
