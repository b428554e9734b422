"""Writing of figures as PNG, and in other formats by the name of the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from reports.figures.style import separate_labels
from reports.files import atomically

DOTS_PER_INCH = 200
"""A figure of 10 inches has 300 dots an inch in the 6.7 inches that A4 leaves to text."""
ENDINGS = (".png", ".svg", ".pdf")
"""The formats of `write_figure`."""


def write_png(figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Write each figure as `<name>.png` into an existing folder, atomically; return the paths in order.

    Raises OSError if the folder is absent or cannot be written.
    """
    return [write_figure(figure, folder / f"{name}.png") for name, figure in figures.items()]


def write_figure(figure: Figure, path: Path) -> Path:
    """Write a figure to `path` in the format of its ending, one of ENDINGS, atomically; return `path`.

    Labels of ticks that would overlap are hidden.

    Raises OSError for a folder that is absent or cannot be written.
    """
    FigureCanvasAgg(figure)
    separate_labels(figure)
    with atomically(path) as temporary:
        figure.savefig(temporary, format=path.suffix.removeprefix("."), dpi=DOTS_PER_INCH)
    return path
