"""Printing of the examples' tables as Markdown, row by row as the runs end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def print_head(columns: Sequence[str], texts: int = 1) -> None:
    """Print the header; the first `texts` columns are left-aligned, the others right-aligned."""
    print_row(columns)
    print("|" + "---|" * texts + "---:|" * (len(columns) - texts))


def print_row(cells: Iterable[str]) -> None:
    """Print one row at once, so that it is seen while the next run is computed."""
    print(f"| {' | '.join(cells)} |", flush=True)


def seconds(time: float) -> str:
    """A time in seconds with two decimals, whole from 10 s on."""
    return f"{time:.2f} s" if time < 10 else f"{time:.0f} s"
