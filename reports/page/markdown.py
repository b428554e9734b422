"""The short form of a report in GitHub's Markdown, for the comment of a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from reports.page import headline, tables
from reports.page.report import Report, Run
from reports.page.tables import Table
from reports.text.comparison import comparison_markdown
from reports.text.markdown_table import escaped, markdown_table

MOST_ROWS = 20


def markdown(report: Report) -> str:
    """Headline, comparison, ledger, tenants, findings and caveats; text from user data is escaped."""
    parts = [f"## {escaped(report.title)}\n"]
    runs = report.runs
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
    for finding in report.findings:
        parts += [f"{escaped(sentence)}\n" for sentence in finding.sentences]
        parts.append(_grid(tables.of_finding(finding)))
    caveats = [*report.remarks, *(headline.warnings(runs) if runs else [])]
    if caveats:
        parts.append("".join(f"- {escaped(sentence)}\n" for sentence in caveats))
    if runs:
        parts.append("".join(f"log of {escaped(run.name)}: `{run.summary['log_sha256'][:12]}`\n" for run in runs))
    return "\n".join(parts)


def _cards(runs: Sequence[Run]) -> str:
    shown = headline.cards(runs)
    return markdown_table([card.name for card in shown], [[card.value for card in shown]], [True] * len(shown))


def _grid(table: Table) -> str:
    heads = [escaped(head) for head in table.heads]
    rows = [[escaped(cell.shown) for cell in row] for row in table.rows[:MOST_ROWS]]
    left = len(table.rows) - len(rows)
    more = f"\n{left:,} rows more are not listed\n" if left else ""
    grid = markdown_table(heads, rows, table.numeric)
    return f"<details><summary>{escaped(table.title)}</summary>\n\n{grid}{more}\n</details>\n"
