"""The result of `slotstep capacity --out` as findings of a report: answers, curves, ledger."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.latency_origin import SINCE
from traces.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

    from reports.page.report import Curve, Report

NAME = "capacity.json"
AT = {"rate": "requests/s", "replicas": "replicas", "slots": "requests/s"}
LABEL = "variant"


def capacity(folder: Path) -> Report:
    """The report of a capacity search. Raises BadInput for an invalid file."""
    import pandas as pd

    from reports.page.report import Finding, Report

    path = folder / NAME
    try:
        found = json.loads(path.read_text("utf-8"))
        at = AT[found["find"]]
        answers = list(zip(labels(found["answers"]), found["answers"], strict=True))
        table = pd.DataFrame([answer_row(label, answer, at) for label, answer in answers])
        points = pd.DataFrame([point_row(label, point, at) for label, answer in answers for point in answer["curve"]])
        ledger = pd.DataFrame([ledger_row(label, answer["knee"]) for label, answer in answers if answer["knee"]])
        remarks = list(caveats(found, answers))
        findings = [Finding(f"Capacity: {asked(found)}", table, found["sentences"])]
        if len(points):
            drawn = curves(points, found, at)
            bounds = [str(column) for column in points if str(column).endswith((" low", " high"))]
            findings.append(Finding("The points looked at", points, (), drawn, bounds))
        if len(ledger):
            findings.append(Finding("Where the slot-seconds go at the limit", ledger))
        return Report(f"Capacity of {found['scenario']}", (), findings, remarks)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path}: expected what `slotstep capacity --out` wrote: {error!r}") from None


def asked(found: Mapping[str, Any]) -> str:
    """The question as text."""
    what = {"rate": "the largest rate", "replicas": "the fewest replicas", "slots": "the best slots"}[found["find"]]
    within = f" within {' and '.join(found['objectives'])}" if found["objectives"] else " without a growing queue"
    return f"{what}{within}, {100 * found['confidence']:g}% confidence"


def labels(answers: Sequence[Mapping[str, Any]]) -> list[str]:
    """A name for each answer: its policy, and the settings in which answers differ."""
    told = [key for key in ("profile", "slots", "token_budget") if len({answer[key] for answer in answers}) > 1]
    return [
        ", ".join([answer["policy"], *(f"{answer[key]} {key.replace('_', ' ')}" for key in told)])
        for answer in answers
    ]


def answer_row(label: str, answer: Mapping[str, Any], at: str) -> dict[str, Any]:
    """One answer's row."""
    knee = answer["knee"] or {}
    return {
        LABEL: label,
        "what is missed beyond the limit": answer["binding"] or "",
        "limited by": answer["bound_by"] or "",
        f"limit, {at}": answer["at"],
        f"limit at the model's slow end, {at}": (answer.get("slow_end") or {}).get("at"),
        f"missed at, {at}": answer["next"],
        "slots": answer["slots"],
        "occupancy": knee.get("occupancy"),
        "output tok/s": knee.get("output_tokens_per_s"),
        "cost per million tokens": knee.get("cost_per_million_output_tokens"),
    }


def point_row(label: str, point: Mapping[str, Any], at: str) -> dict[str, Any]:
    """One point's row, with the value and the bounds of each objective."""
    met = {True: "met", False: "missed", None: "open"}[point["met"]]
    row = {LABEL: label, "objectives": met if point["stable"] else f"{met}, unstable", at: point["at"]}
    for each in point["objectives"]:
        name = column(each["objective"])
        row |= {name: each["value"], f"{name} low": each["low"], f"{name} high": each["high"]}
        if each["late"] is not None:
            row[f"late, % ({each['objective']})"] = 100 * each["late"]
    return row | {
        "occupancy": point["occupancy"],
        "output tok/s": point["output_tokens_per_s"],
        "runs": point["runs"],
    }


def column(objective: str) -> str:
    """The column of an objective's values: shares, or times in seconds."""
    return objective if objective.startswith("attainment") else f"{objective}, in s"


def ledger_row(label: str, knee: Mapping[str, Any]) -> dict[str, Any]:
    """The share of each nonempty row of the ledger in the slot-seconds bought, in percent."""
    account = knee["slot_seconds"]
    bought = account["bought"]
    parts = {row: 100 * amount / bought for row, amount in account.items() if row != "bought" and amount and bought}
    return {LABEL: label} | {f"{row}, %": part for row, part in parts.items()}


def curves(points: pd.DataFrame, found: Mapping[str, Any], at: str) -> list[Curve]:
    """Each objective over the rate with its limit, and occupancy."""
    from reports.page.report import Curve

    limits = {
        column(each["objective"]): each["limit"]
        for answer in found["answers"]
        for point in answer["curve"]
        for each in point["objectives"]
    }
    known = [name for name in limits if points[name].notna().any()]
    drawn = [Curve(at, name, LABEL, f"{name} low", f"{name} high", limits[name]) for name in known]
    return [*drawn, Curve(at, "occupancy", LABEL)]


def caveats(found: Mapping[str, Any], answers: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    """Remarks that are needed to read the answers."""
    yield (
        f"Each decision is at {100 * found['confidence']:g}% confidence from at most {found['seeds']} runs, "
        f"to within {100 * found['tolerance']:g}%. A point that is open does not count as met."
    )
    if found["held_back"]:
        yield f"Objectives count from {SINCE[found['from']]}."
    if found["resampled"]:
        yield f"Each run is put together anew from pieces of {found['resampled']} of the log."
    for label, answer in answers:
        if answer["at"] is None:
            yield f"{label}: nothing that was looked at meets the objectives."
        elif answer["next"] is None:
            yield f"{label}: everything that was looked at meets the objectives."
