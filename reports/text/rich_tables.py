"""The layout of tables on the console: a rule under the header and no other borders."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.table import Table
from rich.text import Text


def headed_table() -> Table:
    """An empty table with a rule under its header."""
    return Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)


def add_numbers(table: Table, *headers: str) -> None:
    """Add right-aligned columns that do not wrap."""
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)


def grid_of(lines: Iterable[tuple[str, str]]) -> Table:
    """Names and their texts in two columns, without header."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, words in lines:
        table.add_row(name, Text(words))
    return table
