"""A cost model of measured tables: matrix products by tokens, attention by batch and by chunk.

    step = host + dense(tokens) + sequences(decodes + chunks) + decode(decodes, context) + chunks by size and start

A mixed step is no sum of a decode step and a prefill: its tokens share the matrix products, its attention runs in one
launch, and in a step with a chunk the decodes may read their context more slowly (`beside`). Tables are laid out for
every whole number once, by monotone interpolation, so that a step costs a few look-ups. Beyond the end of a table:
see `Knots`. Independent of operators, models and devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from sim.cost.forms import Curve, Shape, checked_sizes, padded

MOST = 2**20
"""The largest number a table may reach: it is laid out for every whole number up to there."""


@dataclass(frozen=True)
class Knots:
    """A function of a whole number that never falls, from measured points.

    Between points: PCHIP (Fritsch and Carlson 1980), which neither overshoots nor falls. Before the first: its
    value, for a pass over the weights costs the same for one token. Beyond the last: a straight line, as steep as
    the secant over the last octave of the points, for arithmetic and bytes grow in proportion.

    at  whole numbers from 0 that rise, at least one
    y   values there, at least 0; one that is smaller than one before it is raised to that one

    Raises ValueError for other points.
    """

    at: tuple[int, ...]
    y: tuple[float, ...]

    def __post_init__(self) -> None:
        at, y = list(self.at), list(self.y)
        if not at or len(at) != len(y):
            raise ValueError(f"{len(at)} points with {len(y)} values; expected as many of both, at least one")
        rising = all(a < b for a, b in pairwise(at))
        if not all(isinstance(x, int) for x in at) or at[0] < 0 or not rising or at[-1] > MOST:
            raise ValueError(f"at is {brief(at)}; expected whole numbers from 0 to {MOST}, each above the one before")
        if not all(isfinite(value) and value >= 0 for value in y):
            raise ValueError(f"values are {brief(y)}; expected numbers of at least 0")

    @cached_property
    def laid_out(self) -> list[float]:
        """The value at every whole number up to the last point."""
        from scipy.interpolate import PchipInterpolator

        at, y = np.array(self.at, np.float64), np.maximum.accumulate(np.array(self.y, np.float64))
        whole = np.arange(self.at[-1] + 1, dtype=np.float64)
        if len(at) == 1:
            return [float(y[0])] * len(whole)
        with np.errstate(over="ignore"):  # next to a rise of nearly 0 the harmonic mean is 0, by way of infinity
            values = PchipInterpolator(at, y)(np.maximum(whole, at[0]))
        values[list(self.at)] = y
        values = np.minimum(np.maximum.accumulate(values), y[-1])
        return [float(value) for value in values]

    @cached_property
    def growth(self) -> float:
        """How much the value grows with one more, beyond the last point."""
        values, last = self.laid_out, self.at[-1]
        octave = max(self.at[0], last // 2)
        return (values[last] - values[octave]) / (last - octave) if last > octave else 0.0

    def __call__(self, x: int) -> float:
        """The value at a whole number from 0."""
        values = self.laid_out
        return values[x] if x < len(values) else values[-1] + self.growth * (x - self.at[-1])


@dataclass(frozen=True)
class Lines:
    """For every whole number a straight line: `base` and its rise by `per_position`, both by `Knots`."""

    base: Knots
    per_position: Knots

    def line(self, x: int) -> tuple[float, float]:
        """(base, rise) at x."""
        return self.base(x), self.per_position(x)


@dataclass(frozen=True)
class Table(Curve):
    """A measured step, in nanoseconds; `per_context_token`, `per_chunk_work` and `per_sequence` add to the tables.

    dense      matrix products and all else that depends on the tokens alone, by tokens
    decode     attention of a decode step by sequences: base, and rise with their *mean* context
    sequences  what is done once for each sequence (the output head, sampling), by sequences; or none
    chunk      attention of a chunk by its size: base, and rise with its start
    beside     as `decode`, in a step with a chunk; none: as `decode`
    crossing   in such a step, for each decode and each token of the largest chunk: launched and empty
    launch     what every chunk's base has in it and several in one step pay once
    graph_sizes  as in `sim.cost.forms.Roofline`

    A chunk larger than the largest measured one reads itself as it would read what came before: each further token
    adds the rise at its own place. Between two batches the whole attention at one mean context is interpolated, so
    that a step never gets cheaper by a longer context or by one more sequence of the mean length.

    Attention of decodes is measured with one context for all. Of uneven ones the others are done at about the time
    that even ones of the mean would be, and the block that reads the longest is then as far as the mean: it reads the
    rest alone, `per_tail_token` each, behind what the launch costs anyway (the base of the line).
    """

    dense: Knots = field(default_factory=lambda: Knots((0,), (0.0,)))
    decode: Lines = field(default_factory=lambda: Lines(Knots((0,), (0.0,)), Knots((0,), (0.0,))))
    chunk: Lines = field(default_factory=lambda: Lines(Knots((0,), (0.0,)), Knots((0,), (0.0,))))
    sequences: Knots | None = None
    beside: Lines | None = None
    crossing: float = 0.0
    launch: float = 0.0
    graph_sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "graph_sizes", checked_sizes(self.graph_sizes))

    def fixed(self, shape: Shape) -> float:
        """All but what grows with the context of the decodes."""
        exact = self.host + self.dense(padded(shape.decodes + shape.chunk_tokens, self.graph_sizes))
        if self.sequences is not None:
            exact += self.sequences(shape.decodes + shape.chunks)
        exact += self.per_sequence * (shape.decodes + shape.chunks)
        if shape.decodes:
            base = self.lines(shape).base(shape.decodes)
            exact += max(base, self.tail(shape))
        if shape.chunks:
            exact += self.attention(shape)
        return exact + self.moved(shape)

    def slope(self, shape: Shape) -> float:
        """The rise with the mean context, for each position of the whole."""
        if not shape.decodes:
            return self.per_context_token
        return super().slope(shape) + self.lines(shape).per_position(shape.decodes) / shape.decodes

    def launched(self, decodes: int) -> int:
        """The decodes padded to a captured graph."""
        return padded(decodes, self.graph_sizes)

    def lines(self, shape: Shape) -> Lines:
        """Attention of the decodes in a step like this one."""
        return self.beside if self.beside is not None and shape.chunks else self.decode

    def attention(self, shape: Shape) -> float:
        """Attention of the chunks, and what they and the decodes cost each other."""
        exact = self.per_chunk_work * (shape.double_work / 2) - self.launch * (shape.chunks - 1)
        for start, tokens in shape.pieces:
            base, rise = self.chunk.line(min(tokens, self.chunk.base.at[-1]))
            if tokens > self.chunk.base.at[-1]:
                beyond = self.chunk.per_position(tokens)
                base += (tokens - self.chunk.base.at[-1]) * (rise + beyond) / 2
                rise = beyond
            exact += base + rise * start
        largest = max(tokens for _, tokens in shape.pieces)
        return exact + self.crossing * shape.decodes * largest


KNOTS = ("dense", "sequences")
LINES = ("decode", "chunk", "beside")


def table(content: Mapping[str, Any]) -> Table:
    """A table from plain values, as a profile holds them: `{at: [...], ns: [...]}`, with `per_position` for lines.

    Raises ValueError, one line that begins with the key; `dense`, `decode` and `chunk` have to be there.
    """
    for key in ("dense", "decode", "chunk"):
        if content.get(key) is None:
            raise ValueError(f"{key}: missing; expected lists under at, ns and, but for dense, per_position")
    made: dict[str, Any] = {}
    for key, value in content.items():
        read = lines if key in LINES else knots if key in KNOTS else None
        try:
            made[key] = value if read is None or value is None else read(value)
        except KeyError as error:
            raise ValueError(
                f"{key} has no {error}; expected lists under at, ns and, of lines, per_position"
            ) from None
        except (ValueError, TypeError) as error:
            raise ValueError(f"{key} is {brief(value)}: {error}") from None
    return Table(**made)


def knots(value: Mapping[str, Sequence[float]], of: str = "ns") -> Knots:
    """Points of a mapping with `at` and the key `of`; raises KeyError without them, ValueError for wrong ones."""
    return Knots(tuple(value["at"]), tuple(float(y) for y in value[of]))  # type: ignore[arg-type]  # checked there


def lines(value: Mapping[str, Sequence[float]]) -> Lines:
    """Lines of a mapping with `at`, `ns` and `per_position`; raises as `knots`."""
    return Lines(knots(value), knots(value, "per_position"))


def brief(value: object) -> str:
    """`value` for a message, cut to 60 characters."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
