"""The report as one HTML file with its styles, its script and its figures as SVG. It loads no external resource.

User data is escaped by the template and by `svg`. The page's Content-Security-Policy allows only its own script, by
its digest, and no requests.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports import ledger_rows
from reports.figures.stay_parts import PARTS
from reports.figures.style import readable_on
from reports.page import finding_charts, headline, ledger_charts, line_charts, slot_timeline, svg, tables
from reports.page.report import Report, Run
from reports.units import printable

LARGEST = 3_000_000
"""The largest size of a page in bytes."""


def page(report: Report, version: str) -> str:
    """The page as HTML; `version` is the version of slotstep."""
    script, style = (_own(name) for name in ("page.js", "page.css"))
    environment = Environment(
        loader=PackageLoader("reports.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    runs = report.runs
    return environment.get_template("page.html").render(
        title=printable(report.title),
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
            for finding in report.findings
        ],
        warnings=list(report.remarks),
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
        "caveats": headline.warnings(runs),
        "rows": [row for row in ledger_rows.ROWS if row.key in used],
        "bars": ledger_charts.bars(runs),
        "ledgers": [(run.name, ledger_charts.over_time(run)) for run in runs],
        "timelines": shown,
        "parts": [part for part in PARTS if any(part.key in one.parts for one in shown)],
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
    """CSS rules for the colours of the ledger's rows, on a light and on a dark background."""
    light = "".join(f"--r-{row.key}:{row.colour};" for row in ledger_rows.ROWS)
    dark = "".join(f"--r-{row.key}:{row.dark};" for row in ledger_rows.ROWS)
    fills = "".join(
        f".r-{row.key}{{fill:var(--r-{row.key});background:var(--r-{row.key})}}"
        f".on-{row.key}{{fill:{readable_on(row.colour)}}}"
        f"@media screen and (prefers-color-scheme:dark){{.on-{row.key}{{fill:{readable_on(row.dark)}}}}}"
        for row in ledger_rows.ROWS
    )
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{fills}"
