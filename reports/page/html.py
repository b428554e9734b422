"""The page: one HTML file, styles and script in it, figures as SVG. It asks for nothing, from anywhere.

What comes from user data is escaped by the template and by the figures; beside that the page's own policy
(Content-Security-Policy) allows no script but its own, by its digest, and no request at all.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports import ledger_rows
from reports.page import finding_charts, headline, ledger_charts, line_charts, slot_timeline, svg, tables
from reports.page.report import Report, Run
from reports.units import printable

LARGEST = 3_000_000
"""Bytes of a page."""


def page(story: Report, version: str) -> str:
    """The whole page as text; `version` is slotstep's own."""
    script, style = (_own(name) for name in ("page.js", "page.css"))
    environment = Environment(
        loader=PackageLoader("reports.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    runs = story.runs
    return environment.get_template("page.html").render(
        story=story,
        title=printable(story.title),
        version=version,
        script=Markup(script),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=Markup(style + colours()),
        runs=runs,
        looks=[(run.name, svg.look(place)) for place, run in enumerate(runs)],
        findings=[
            (
                finding,
                [finding_charts.finding_chart(finding, curve) for curve in finding.curves],
                tables.of_finding(finding),
            )
            for finding in story.findings
        ],
        warnings=list(story.remarks),
        **(_of_runs(runs) if runs else {}),
    )


def _of_runs(runs: Sequence[Run]) -> dict[str, object]:
    used = {
        row.key for run in runs for key in ledger_charts.ACCOUNTS for row, n in ledger_rows.of(run.summary[key]) if n
    }
    shown = slot_timeline.timelines(runs)
    first, then = headline.answers(runs)
    return {
        "cards": headline.cards(runs),
        "first": first,
        "then": then,
        "beware": headline.warnings(runs),
        "rows": [row for row in ledger_rows.ROWS if row.key in used],
        "bars": ledger_charts.bars(runs),
        "ledgers": [(run.name, ledger_charts.over_time(run)) for run in runs],
        "timelines": shown,
        "parts": [(key, name) for key, name in slot_timeline.PARTS.items() if any(key in one.parts for one in shown)],
        "latencies": line_charts.latencies(runs),
        "courses": line_charts.over_time(runs),
        "tables": {
            "comparison": tables.comparison(runs),
            "facts": tables.facts(runs),
            "latencies": tables.latencies(runs),
            "ledger": tables.ledger(runs),
            "tenants": tables.tenants(runs),
            "fairness": tables.fairness_of(runs),
            "slowest": tables.slowest(runs),
            "replicas": tables.replicas(runs),
        },
    }


def _own(name: str) -> str:
    return (resources.files("reports.page") / name).read_text("utf-8")


def colours() -> str:
    """Style rules for the rows of the ledger, on a light and on a dark ground."""
    light = "".join(f"--r-{row.key}:{row.colour};" for row in ledger_rows.ROWS)
    dark = "".join(f"--r-{row.key}:{row.dark};" for row in ledger_rows.ROWS)
    fills = "".join(
        f".r-{row.key}{{fill:var(--r-{row.key});background:var(--r-{row.key})}}"
        f".on-{row.key}{{fill:{readable(row.colour)}}}"
        f"@media screen and (prefers-color-scheme:dark){{.on-{row.key}{{fill:{readable(row.dark)}}}}}"
        for row in ledger_rows.ROWS
    )
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{fills}"


def readable(colour: str) -> str:
    """Black or white, whichever can be read on this colour."""
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return "#111" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "#fff"
