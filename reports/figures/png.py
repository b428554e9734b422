"""Writing of figures as PNG."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from reports.files import atomically

DOTS_PER_INCH = 150


def write_png(figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Write each figure as `<name>.png` into an existing folder, atomically; return the paths in order.

    Raises OSError if the folder is absent or cannot be written.
    """
    written = []
    for name, figure in figures.items():
        path = folder / f"{name}.png"
        FigureCanvasAgg(figure)
        with atomically(path) as temporary:
            figure.savefig(temporary, format="png", dpi=DOTS_PER_INCH)
        written.append(path)
    return written
