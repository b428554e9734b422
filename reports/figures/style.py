"""The style of all figures: font sizes, colours, frames, and text that is not parsed as mathematics.

Figures are created without pyplot; no global setting of matplotlib is read or changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from reports.units import printable

SMALL, NORMAL, LARGE = 8.0, 9.0, 11.0
FAINT, STRONG, EDGE = "#666666", "#222222", "#b0b0b0"

# Distinguishable with colour blindness (Okabe and Ito); the dashes distinguish lines printed in grey.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("solid", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1, 1, 1, 1, 1)))


def figure(width: float, height: float) -> Figure:
    """An empty white figure of this size in inches, with constrained layout."""
    layout = ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.08)
    return Figure(figsize=(width, height), facecolor="white", layout=layout)


def line(place: int) -> tuple[str, Any]:
    """The colour and dash pattern of line number `place`; the first thirty differ."""
    return COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]


def literal(text: Text, content: str | None = None) -> Text:
    """Switch off the parsing of mathematics, so that `$` is shown as it is; `content` replaces the text."""
    text.set_parse_math(False)
    if content is not None:
        text.set_text(printable(content))
    return text


def title(axes: Axes, name: str, remark: str) -> None:
    """A bold name at the upper left of a panel, followed by a remark in normal weight; neither is parsed."""
    literal(axes.set_title(" ", loc="left", fontsize=NORMAL, pad=5))
    bold = axes.annotate(
        printable(name),
        xy=(0, 1),
        xycoords="axes fraction",
        xytext=(0, 5),
        textcoords="offset points",
        fontsize=LARGE,
        fontweight="bold",
        color=STRONG,
        va="bottom",
        parse_math=False,
    )
    axes.annotate(
        printable(remark),
        xy=(1, 0),
        xycoords=bold,
        xytext=(8, 0),
        textcoords="offset points",
        fontsize=LARGE,
        color=STRONG,
        va="bottom",
        parse_math=False,
    )


def bare(axes: Axes, *kept: str) -> None:
    """Hide the sides of the frame that are not in `kept` (left, right, top, bottom); the others are grey."""
    for side, spine in axes.spines.items():
        spine.set_visible(side in kept)
        spine.set_color(FAINT)
    axes.tick_params(labelsize=SMALL, color=FAINT, labelcolor=STRONG, length=3)


def legend(owner: Axes | Figure, handles: Sequence[Artist], labels: Sequence[str], **place: Any) -> Legend:
    """A legend without frame whose labels are not parsed and may begin with `_`; `place` is passed to matplotlib."""
    made: Legend = owner.legend(
        handles, ["."] * len(handles), frameon=False, fontsize=SMALL, labelcolor=STRONG, **place
    )
    for text, label in zip(made.get_texts(), labels, strict=True):
        literal(text, label)
    return made


def separate_labels(figure: Figure) -> None:
    """Hide each label of a tick that would overlap an earlier one of its axis; minor ticks are after major ones."""
    figure.draw_without_rendering()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        kept: list[Bbox] = []
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            label = tick.label1
            if (
                label.get_visible()
                and label.get_text()
                and not label.get_rotation()
                and low <= tick.get_loc() <= high
            ):
                box = label.get_window_extent()
                if any(box.overlaps(other) for other in kept):
                    label.set_visible(False)
                else:
                    kept.append(box)


def readable_on(colour: str) -> str:
    """`black` or `white`, whichever has the higher contrast on this colour, by its luma (ITU-R BT.601)."""
    red, green, blue = to_rgb(colour)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
