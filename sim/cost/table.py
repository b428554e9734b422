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
from typing import Any

from sim.cost.forms import Curve, checked_sizes, padded
from sim.cost.knots import Knots, brief
from sim.cost.shape import Shape
from sim.cost.surface import BentLine, Surface, surface


@dataclass(frozen=True)
class Lines:
    """For every whole number a straight line: `base` and its rise by `per_position`, both by `Knots`."""

    base: Knots
    per_position: Knots

    def line(self, x: int) -> tuple[float, float]:
        """(base, rise) at x."""
        return self.base(x), self.per_position(x)

    def attention(self, start: int, tokens: int) -> float:
        """Of a chunk that follows `start` positions; one larger than the largest: see `Table`."""
        last = self.base.at[-1]
        base, rise = self.line(min(tokens, last))
        if tokens > last:
            beyond = self.per_position(tokens)
            base += (tokens - last) * (rise + beyond) / 2
            rise = beyond
        return base + rise * start


@dataclass(frozen=True)
class Table(Curve):
    """A measured step, in nanoseconds; `per_context_token`, `per_chunk_work` and `per_sequence` add to the tables.

    dense      matrix products and all else that depends on the tokens alone, by tokens
    decode_dense  as `dense`, in a step of decodes alone; none: as `dense`
    decode     attention of a decode step by sequences: base, and rise with their *mean* context; or a `Surface`
    sequences  what is done once for each sequence and each draft (the output head, sampling); or none
    chunk      attention of a chunk by its size: base, and rise with its start; or a `Surface`
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
    decode: Lines | Surface = field(default_factory=lambda: Lines(Knots((0,), (0.0,)), Knots((0,), (0.0,))))
    chunk: Lines | Surface = field(default_factory=lambda: Lines(Knots((0,), (0.0,)), Knots((0,), (0.0,))))
    decode_dense: Knots | None = None
    sequences: Knots | None = None
    beside: Lines | Surface | None = None
    crossing: float = 0.0
    launch: float = 0.0
    graph_sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "graph_sizes", checked_sizes(self.graph_sizes))

    def fixed(self, shape: Shape) -> float:
        """All but what grows with the context of the decodes."""
        dense = self.dense if shape.chunks or self.decode_dense is None else self.decode_dense
        exact = self.host + dense(padded(shape.dense_tokens, self.graph_sizes))
        if self.sequences is not None:
            exact += self.sequences(shape.decodes + shape.drafts + shape.chunks)
        exact += self.per_sequence * (shape.decodes + shape.chunks)
        if shape.decodes:
            lines, tail = self.lines(shape), self.tail(shape)
            if isinstance(lines, Lines):
                exact += max(lines.base(shape.decodes), tail)
            elif tail:
                exact += max(0.0, tail - lines.line(shape.decodes).base[0])
        if shape.chunks:
            exact += self.attention(shape)
        return exact + self.moved(shape)

    def slope(self, shape: Shape) -> float:
        """The rise with the mean context, for each position of the whole."""
        lines = self.lines(shape)
        if not shape.decodes or isinstance(lines, Surface):
            return super().slope(shape)
        return super().slope(shape) + lines.per_position(shape.decodes) / shape.decodes

    def bend(self, shape: Shape) -> BentLine | None:
        """Attention of the decodes by their mean context, where it was measured as a `Surface`."""
        lines = self.lines(shape)
        return lines.line(shape.decodes) if isinstance(lines, Surface) and shape.decodes else None

    def launched(self, decodes: int) -> int:
        """The decodes padded to a captured graph."""
        return padded(decodes, self.graph_sizes)

    def lines(self, shape: Shape) -> Lines | Surface:
        """Attention of the decodes in a step like this one."""
        return self.beside if self.beside is not None and shape.chunks else self.decode

    def attention(self, shape: Shape) -> float:
        """Attention of the chunks, and what they and the decodes cost each other."""
        exact = self.per_chunk_work * (shape.double_work / 2) - self.launch * (shape.chunks - 1)
        for start, tokens in shape.pieces:
            exact += self.chunk.attention(start, tokens)
        largest = max(tokens for _, tokens in shape.pieces)
        return exact + self.crossing * shape.decodes * largest


KNOTS = ("dense", "decode_dense", "sequences")
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


def lines(value: Mapping[str, Sequence[float]]) -> Lines | Surface:
    """Lines of a mapping with `at`, `ns` and `per_position`, or with `along` a surface; raises as `knots`."""
    if "along" in value:
        return surface(value)
    return Lines(knots(value), knots(value, "per_position"))
