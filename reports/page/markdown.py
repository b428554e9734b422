"""The short form of a report, for a pull request: GitHub's Markdown, the answers first."""

from __future__ import annotations

from collections.abc import Sequence

from reports.page import headline, tables
from reports.page.report import Report, Run
from reports.page.tables import Table
from reports.text.comparison import comparison_markdown, escaped

MOST_ROWS = 20


def markdown(story: Report) -> str:
    """Headline, what is compared, the ledger, tenants, findings and what to beware of; names are taken literally."""
    parts = [f"## {escaped(story.title)}\n"]
    runs = story.runs
    if runs:
        first, then = headline.answers(runs)
        parts += [f"**{escaped(sentence)}**\n" for sentence in first]
        if len(runs) > 1:
            parts.append(comparison_markdown([run.summary for run in runs]))
        else:
            parts += [f"{escaped(sentence)}\n" for sentence in then] + [_cards(runs), _grid(tables.latencies(runs))]
        parts.append(_grid(tables.ledger(runs)))
        if any(len(run.summary["tenants"]) > 1 for run in runs):
            parts += [_grid(tables.fairness_of(runs)), _grid(tables.tenants(runs))]
    for finding in story.findings:
        parts += [f"{escaped(sentence)}\n" for sentence in finding.sentences]
        parts.append(_grid(tables.of_finding(finding)))
    beware = [*story.remarks, *(headline.warnings(runs) if runs else [])]
    if beware:
        parts.append("".join(f"- {escaped(sentence)}\n" for sentence in beware))
    if runs:
        parts.append("".join(f"log of {escaped(run.name)}: `{run.summary['log_sha256'][:12]}`\n" for run in runs))
    return "\n".join(parts)


def _cards(runs: Sequence[Run]) -> str:
    shown = headline.cards(runs)
    lines = [[card.name for card in shown], ["---:"] * len(shown), [card.value for card in shown]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _grid(table: Table) -> str:
    heads = [escaped(head) for head in table.heads]
    rule = ["---" if place < table.texts else "---:" for place in range(len(heads))]
    rows = [[escaped(cell.shown) for cell in row] for row in table.rows[:MOST_ROWS]]
    left = len(table.rows) - len(rows)
    more = f"\n{left:,} rows more are not listed\n" if left else ""
    grid = "".join(f"| {' | '.join(line)} |\n" for line in [heads, rule, *rows])
    return f"<details><summary>{escaped(table.title)}</summary>\n\n{grid}{more}\n</details>\n"
