"""Outcomes of checks as text for the console."""

from __future__ import annotations

from collections.abc import Sequence

from reports.checks.outcome import Compared, Outcome, cause, headline, rows, totals


def text(outcomes: Sequence[Outcome], noun: str = "check") -> str:
    """A line per check, followed by what changed and its differing metrics, and a last line with the totals.

    noun  what an outcome is of
    """
    lines = []
    for outcome in outcomes:
        lines.append(f"{outcome.name}: {headline(outcome)}")
        lines += [f"  {line}" for line in cause(outcome)]
        if outcome.differing or outcome.improved:
            lines += _columns([*outcome.differing, *outcome.improved])
    return "\n".join([*lines, totals(outcomes, noun)])


def _columns(metrics: Sequence[Compared]) -> list[str]:
    table = rows(metrics)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
