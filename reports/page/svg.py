"""SVG markup: elements, scales with ticks, axes. Text is escaped; colours are CSS variables of page.css.

Coordinates are in units of the figure's view box.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DASHES = ("", "7 3", "2 2.5", "9 3 2 3", "4 2 1 2 1 2")
HUES = 6
LETTER = 6.6
"""The mean width of a character of the labels."""
NAMESPACE = "http://www.w3.org/2000/svg"


def tag(name: str, *content: str, **attributes: object) -> Markup:
    """An element; content that is not `Markup` is escaped.

    In the names of attributes `_` stands for `-` and a trailing `_` is removed (`class_`). Attributes that are None
    are left out.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{Markup('').join(content)}</{name}>")


def number(value: object) -> object:
    """A float with at most two decimals; anything else unchanged."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def text(x: float, y: float, words: str, anchor: str = "start", class_: str = "t") -> Markup:
    """A line of text."""
    return tag("text", words, x=float(x), y=float(y), text_anchor=anchor, class_=class_)


def look(place: int) -> str:
    """The CSS style of line number `place`: six colours, five dash patterns; the first thirty differ."""
    dashes = DASHES[(place % HUES + place // HUES) % len(DASHES)]
    return f"stroke:var(--s{place % HUES})" + (f";stroke-dasharray:{dashes}" if dashes else "")


@dataclass(frozen=True)
class Scale:
    """Maps values from `low` to `high` to positions from `start` to `stop`, linearly or by their logarithm."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, values: Floats | Sequence[float] | float) -> Floats:
        """The positions of these values."""
        found = np.asarray(values, dtype=np.float64)
        low, high = self.low, self.high
        if self.log:
            found, low, high = np.log10(found), math.log10(low), math.log10(high)
        return self.start + (found - low) / (high - low or 1.0) * (self.stop - self.start)

    def ticks(self, most: int) -> list[float]:
        """Round values between `low` and `high`, about `most` of them."""
        return decades(self.low, self.high, most) if self.log else round_values(self.low, self.high, most)


def round_values(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten from `low` to `high`, at most `most + 1` of them."""
    if not high > low:
        return [low]
    least = (high - low) / most
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [place * step for place in range(first, last + 1)]


def decades(low: float, high: float, most: int) -> list[float]:
    """Powers of ten from `low` to `high`, with 2 and 5 between where there is room."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1,)):
        found = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
        inside = [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(inside) <= most + 1:
            return inside
    return inside[:: -(-len(inside) // most)]


def steps_path(x: Floats, y: Floats) -> str:
    """The path of a step function through points in ascending x: each level is held until the next x.

    Of points at the same x after rounding the last is kept; repeated levels are merged.
    """
    if not len(x):
        return ""
    across, level = np.round(x, 1), np.round(y, 1)
    kept = np.append(np.diff(across) != 0, True)
    across, level = across[kept], level[kept]
    changed = np.insert(np.diff(level) != 0, 0, False)
    stair = "".join(f"H{a:g}V{b:g}" for a, b in zip(across[changed], level[changed], strict=True))
    return f"M{across[0]:g} {level[0]:g}{stair}H{across[-1]:g}"


def area_path(x: Floats, top: Floats, bottom: Floats) -> str:
    """The path of the area between two lines over the same x."""
    there = " ".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, top, strict=True))
    back = " ".join(f"{a:.1f} {b:.1f}" for a, b in zip(x[::-1], bottom[::-1], strict=True))
    return f"M{there} L{back}Z"


@dataclass(frozen=True)
class Box:
    """The size of a figure and the margins for its axes."""

    width: float = 560.0
    height: float = 260.0
    left: float = 52.0
    right: float = 12.0
    top: float = 10.0
    bottom: float = 34.0

    def x(self, low: float, high: float, log: bool = False) -> Scale:
        """The scale of the x axis."""
        return Scale(low, high, self.left, self.width - self.right, log)

    def y(self, low: float, high: float, log: bool = False) -> Scale:
        """The scale of the y axis."""
        return Scale(low, high, self.height - self.bottom, self.top, log)

    def axes(
        self,
        x: Scale,
        y: Scale,
        across: Callable[[float], str],
        up: Callable[[float], str],
        name: str,
        most: tuple[int, int] = (6, 5),
    ) -> Markup:
        """Lines, ticks and labels of both axes.

        `across` and `up` format the labels of the x and y ticks, of which there are about `most`; `name` is the label
        of the x axis.
        """
        right, bottom = self.width - self.right, self.height - self.bottom
        parts = []
        for value in y.ticks(most[1]):
            at = float(y(value))
            parts.append(tag("line", x1=self.left, x2=right, y1=at, y2=at, class_="grid"))
            parts.append(text(self.left - 6, at + 4, up(value), "end"))
        for value in x.ticks(most[0]):
            at = float(x(value))
            parts.append(tag("line", x1=at, x2=at, y1=bottom, y2=bottom + 4, class_="axis"))
            label = across(value)
            fits = at + LETTER * len(label) / 2 <= self.width
            parts.append(text(at, bottom + 16, label, "middle" if fits else "end"))
        parts.append(tag("line", x1=self.left, x2=right, y1=bottom, y2=bottom, class_="axis"))
        parts.append(text((self.left + right) / 2, self.height - 3, name, "middle"))
        return Markup("").join(parts)

    def figure(self, name: str, *content: str, class_: str = "") -> Markup:
        """The `svg` element, with `name` as its title for screen readers."""
        return tag(
            "svg",
            tag("title", name),
            *content,
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            role="img",
            class_=f"figure {class_}".strip(),
            xmlns=NAMESPACE,
        )
