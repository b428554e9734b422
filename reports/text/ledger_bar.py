"""The ledger as a bar of characters with a legend, legible without colour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from reports import ledger_rows
from reports.units import apportion

WIDEST = 100


def ledger_bar(summary: Mapping[str, Any]) -> LedgerBar:
    """The `slot_steps` of a summary as a bar, as wide as the console but at most 100 characters, above a legend.

    Characters of the bar and tenths of a percent of the legend are apportioned by largest remainder, so that they add
    up. Rows that are 0 are named in the last line. Raises ValueError if the rows do not add up to what was bought.
    """
    account = summary["slot_steps"]
    return LedgerBar(ledger_rows.of(account), account["bought"])


@dataclass(frozen=True)
class LedgerBar:
    """A rich renderable: the bar above its legend."""

    rows: list[tuple[ledger_rows.LedgerRow, float]]
    bought: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.bought == 0:
            yield Text("No slot-steps were bought.")
            return
        yield Text(f"Where the {self.bought:,} slot-steps went")
        yield self._bar(min(options.max_width, WIDEST), options.ascii_only)
        yield self._legend(options.ascii_only)
        zero = [row.key for row, amount in self.rows if amount == 0]
        if zero:
            yield Text(f"none: {', '.join(zero)}", style="dim")

    def _bar(self, cells: int, ascii_only: bool) -> Text:
        bar = Text(no_wrap=True, overflow="crop")
        parts = apportion((amount for _, amount in self.rows), cells)
        for (row, _), part in zip(self.rows, parts, strict=True):
            bar.append((row.ascii if ascii_only else row.glyph) * part, style=row.colour)
        return bar

    def _legend(self, ascii_only: bool) -> Table:
        legend = Table.grid(padding=(0, 2))
        legend.add_column(no_wrap=True)
        legend.add_column(no_wrap=True)
        legend.add_column(justify="right", no_wrap=True)
        legend.add_column(justify="right", no_wrap=True)
        legend.add_column(style="dim")
        permille = apportion((amount for _, amount in self.rows), 1000)
        for (row, amount), part in zip(self.rows, permille, strict=True):
            if amount:
                glyph = Text((row.ascii if ascii_only else row.glyph) * 2, style=row.colour)
                share = f"{part / 10:.1f}%" if part else "<0.1%"
                legend.add_row(glyph, row.key, f"{amount:,}", share, row.meaning)
        return legend
