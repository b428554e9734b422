"""The result of `slotstep plan --out` as findings of a report: paragraph, demand, latencies, ledger, cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traces.errors import BadInput

if TYPE_CHECKING:
    from reports.page.report import Finding, Report

NAME = "plan.json"
MOST_POINTS = 96
"""Points of the demand over time."""
CANDIDATE = "candidate"


def plan(folder: Path) -> Report:
    """The report of a plan. Raises BadInput for an invalid file."""
    from reports.page.report import Report

    path = folder / NAME
    try:
        found = json.loads(path.read_text("utf-8"))
        rows = [row for row in found["rows"] if row["refused"] is None]
        findings = [
            decision(found, rows),
            demand(found, rows),
            *latencies(found, rows),
            *ledger(rows),
            *money(found, rows),
        ]
        findings.append(provenance(found))
        refused = [f"{row['name']}: {row['refused']}" for row in found["rows"] if row["refused"] is not None]
        return Report(f"Plan for {found['model']}", (), findings, [*found["notes"], *refused])
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path}: expected what `slotstep plan --out` wrote: {error!r}") from None


def label(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """The name of a row, with the settings in which it differs from others of its candidate."""
    mine = [other for other in rows if other["name"] == row["name"]]
    told = [key for key in ("policy", "slots", "token_budget") if len({other[key] for other in mine}) > 1]
    return ", ".join([row["name"], *(f"{row[key]} {key.replace('_', ' ')}" for key in told)])


def decision(found: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Finding:
    """The paragraph, and a row per candidate."""
    import pandas as pd

    from reports.page.report import Finding

    table = []
    for row in rows:
        line: dict[str, Any] = {
            CANDIDATE: label(row, rows),
            "limited by": row["bound_by"] or "",
            "missed first": row["binding"] or "",
            "requests/s a replica": row["at"],
            "missed at": row["missed"],
            "at the slow end": row["slow_end"]["at"],
        }
        for need in row["needs"]:
            line[f"GPUs at {need['growth']:g}x"] = need["gpus"]
            line[f"GPUs at {need['growth']:g}x to be sure"] = need["sure_gpus"]
        table.append(line)
    return Finding("GPUs, of which kind, and how sure", pd.DataFrame(table), found["sentences"])


def demand(found: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Finding:
    """Requests/s over the time of the log, beside what the choice for today's traffic bears."""
    import pandas as pd

    from reports.page.report import Curve, Finding

    width, rates = found["demand"]["width_s"], found["demand"]["rates"]
    unit, scale = ("hours", 3600) if width * len(rates) > 7200 else ("minutes", 60)
    many = -(-len(rates) // MOST_POINTS)
    frame = pd.DataFrame(
        {f"{unit} after the first request": place * width / scale, "requests/s": max(rates[place : place + many])}
        for place in range(0, len(rates), many)
    )
    chosen = found["cheapest"][0]
    said, level = [f"Each point is the highest of {many} parts of {width:g} s."], None
    if chosen:
        row = found["rows"][chosen[0]]
        level = row["needs"][0]["replicas"] * row["at"]
        said.append(f"The line is what {row['needs'][0]['gpus']:,} {row['gpu']} bear within the objectives.")
    curve = Curve(str(frame.columns[0]), "requests/s", level=level)
    return Finding("Demand over time against capacity", frame, said, [curve])


def latencies(found: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Each objective over the rate of a replica, with its limit."""
    import pandas as pd

    from reports.page.report import Curve, Finding

    points = []
    for row in rows:
        for point in row["curve"]:
            line = {CANDIDATE: label(row, rows), "requests/s a replica": point["at"]}
            for each in point["objectives"]:
                name = f"{each['objective']}, in s"
                line |= {name: each["value"], f"{name} low": each["low"], f"{name} high": each["high"]}
            points.append(line)
    if not points:
        return []
    frame = pd.DataFrame(points)
    curves = [
        Curve("requests/s a replica", f"{text}, in s", CANDIDATE, f"{text}, in s low", f"{text}, in s high", limit)
        for text, limit in zip(found["objectives"], found["limits_s"], strict=True)
        if frame[f"{text}, in s"].notna().any()
    ]
    hidden = [str(name) for name in frame if str(name).endswith((" low", " high"))]
    return [
        Finding("Latencies against the rate", frame, ["The horizontal lines are the objectives."], curves, hidden)
    ]


def ledger(rows: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """The parts of a step of a full batch, and where slot-seconds go at the rate that is borne."""
    import pandas as pd

    from reports.page.report import Finding

    parts = pd.DataFrame(
        {
            CANDIDATE: label(row, rows),
            "requests in a full batch": round(row["batch"]),
            "slots": row["slots"],
            "token budget": row["token_budget"],
            "KV positions": row["pages"] * row["page_size"],
            "batch limited by": row["batch_bound_by"],
            **{f"{name}, % of a step": 100 * share for name, share in row["step_parts"].items()},
        }
        for row in rows
    )
    seconds = pd.DataFrame(
        {
            CANDIDATE: label(row, rows),
            **{
                f"{name}, %": 100 * amount / row["knee"]["slot_seconds"]["bought"]
                for name, amount in row["knee"]["slot_seconds"].items()
                if name != "bought"
            },
        }
        for row in rows
        if row["knee"] is not None
    )
    found = [Finding("What steps are made of", parts)] if len(parts) else []
    return found + ([Finding("Where slot-seconds go at the rate that is borne", seconds)] if len(seconds) else [])


def money(found: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """A month, and a million tokens, by candidate and growth; none without prices."""
    import pandas as pd

    from reports.page.report import Finding

    if found["prices"] is None:
        return []
    unit = found["currency"]
    lines = [
        {
            CANDIDATE: label(row, rows),
            "times today": need["growth"],
            "GPUs": need["gpus"],
            f"a month, {unit}": need["month"],
            f"a month to be sure, {unit}": need["sure_month"],
            **{f"per million {kind} tokens, {unit}": cost for kind, cost in (need["per_million"] or {}).items()},
        }
        for row in rows
        for need in row["needs"]
    ]
    said = [f"{name}: {price:g} {unit} for a GPU-hour." for name, price in found["prices"].items()]
    return [Finding("Cost", pd.DataFrame(lines), said)] if lines else []


def provenance(found: Mapping[str, Any]) -> Finding:
    """The log, the roles of its columns, and the slices."""
    import pandas as pd

    from reports.page.report import Finding

    said = [f"{found['log']['file']}: {found['log']['format']}."]
    said += [f"{each['role']} is the column {each['column']}: {each['why']}." for each in found["log"]["map"]]
    frame = pd.DataFrame(
        {
            "busiest by": ", ".join(each["names"]),
            "from, s": each["begin"],
            "to, s": each["end"],
            "requests": each["requests"],
            "requests/s": each["rate"],
            "prompt tokens": each["prompt"],
            "output tokens": each["output"],
            "simulated, %": 100 * each["kept"],
        }
        for each in found["slices"]
    )
    return Finding("What it was made of", frame, [*said, *found["log"]["remarks"]])
