"""An observation as a line of text, a row of CSV, a table in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reports.units import percent, printable, significant
from slotstep.watch.meter import Observation, Span

COLUMNS = (
    "time",
    "segment",
    "seconds",
    "tokens",
    "steps",
    "slot_steps",
    "tokens_per_slot_step",
    "tokens_per_slot_step_since_start",
    "tokens_per_slot_step_engine_lifetime",
    "prompt_tokens",
    "preemptions",
    "prefix_hit_rate",
    "sampled_running",
    "sampled_waiting",
    "sampled_page_share",
    "missing",
    "problem",
)


def row(seen: Observation) -> dict[str, Any]:
    """The columns of an observation; empty text for missing values."""
    interval = seen.interval.as_dict() if seen.interval else {}
    found = {name: interval.get(name) for name in COLUMNS}
    found |= {
        "time": clock(seen.at, "%Y-%m-%dT%H:%M:%S.%f%z"),
        "segment": seen.segment,
        "tokens_per_slot_step_since_start": seen.since_start and seen.since_start.tokens_per_slot_step,
        "tokens_per_slot_step_engine_lifetime": seen.engine_lifetime and seen.engine_lifetime.tokens_per_slot_step,
        "missing": " ".join(seen.missing),
        "problem": seen.problem,
        **{f"sampled_{name}": seen.sampled.get(name) for name in ("running", "waiting", "page_share")},
    }
    return {name: "" if value is None else value for name, value in found.items()}


def line(seen: Observation) -> str:
    """An observation as a line, for output that is not a terminal."""
    parts = [clock(seen.at, "%H:%M:%S")]
    if seen.problem:
        parts.append(printable(seen.problem))
    parts += [f"{name} {words(span)}" for name, span in spans(seen).items() if span]
    if seen.interval:
        parts.append(events(seen.interval))
    if seen.sampled:
        parts.append(f"sampled: {sampled(seen.sampled)}")
    if seen.missing:
        parts.append(f"missing: {', '.join(seen.missing)}")
    if seen.segment > 1:
        parts.append(f"segment {seen.segment} (the engine has restarted)")
    return "; ".join(part for part in parts if part)


def spans(seen: Observation) -> Mapping[str, Span | None]:
    """The spans by their labels."""
    return {"interval": seen.interval, "since start": seen.since_start, "engine's life": seen.engine_lifetime}


def words(span: Span) -> str:
    """`0.734 tokens per slot-step (1,234 tokens, 21 steps in 5.00 s)`."""
    share = span.tokens_per_slot_step
    told = span.as_dict()
    within = f" in {significant(span.seconds)} s" if span.seconds is not None else ""
    rate = "no step" if share is None else f"{share:.4f} tokens per slot-step"
    return f"{rate} ({told['tokens']:,} tokens, {told['steps']:,} steps{within})"


def events(span: Span) -> str:
    """Preemptions and the prefix cache hit rate over a span, where known."""
    told = span.as_dict()
    parts = [] if told["preemptions"] is None else [f"{told['preemptions']:,} preemptions"]
    if told["prefix_hit_rate"] is not None:
        parts.append(f"prefix hits {percent(told['prefix_hit_rate'])}")
    return ", ".join(parts)


def sampled(found: Mapping[str, Any]) -> str:
    """The gauges as text."""
    parts = [f"{found[name]:g} {name}" for name in ("running", "waiting") if found.get(name) is not None]
    reasons = found.get("waiting_by_reason")
    if reasons:
        parts[-1:] = [
            f"{' '.join(parts[-1:])} ({', '.join(f'{n:g} {printable(why)}' for why, n in reasons.items())})"
        ]
    if found.get("page_share") is not None:
        total = f" of {found['pages_total']:,}" if found.get("pages_total") else ""
        parts.append(f"{percent(found['page_share'])}{total} pages in use")
    return ", ".join(parts)


def screen(url: str, seen: Observation) -> Group:
    """The table for a terminal."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("", "tokens per slot-step", "tokens", "steps", "preemptions", "prefix hits", "seconds"):
        table.add_column(head, justify="left" if not head else "right", no_wrap=True)
    for name, span in spans(seen).items():
        if span:
            told = span.as_dict()
            table.add_row(
                name,
                "-" if span.tokens_per_slot_step is None else f"{span.tokens_per_slot_step:.6f}",
                f"{told['tokens']:,}",
                f"{told['steps']:,}",
                "-" if told["preemptions"] is None else f"{told['preemptions']:,}",
                percent(told["prefix_hit_rate"]),
                "-" if span.seconds is None else significant(span.seconds),
            )
    restarted = f", segment {seen.segment}: the engine has restarted" if seen.segment > 1 else ""
    parts: list[RenderableType] = [
        Text(f"{printable(url)} at {clock(seen.at, '%H:%M:%S')}{restarted}", style="bold"),
        table,
    ]
    if seen.sampled:
        parts.append(Text(f"sampled: {sampled(seen.sampled)}"))
    if seen.missing:
        parts.append(Text(f"missing: {', '.join(seen.missing)}", style="yellow"))
    if seen.problem:
        parts.append(Text(printable(seen.problem), style="red"))
    return Group(*parts)


def clock(at: float, form: str) -> str:
    """A time of day in the local zone."""
    return datetime.fromtimestamp(at).astimezone().strftime(form)
