"""A metric of a sweep over one of its axes: the mean over seeds, and its interval, for each value of other axes."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reports.figures.sweep import Line, Panel, Point
from reports.statistics.intervals import mean
from slotstep.experiments.metric_path import declared, metric
from slotstep.experiments.sweeps import query
from traces.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

    from slotstep.experiments.sweeps.store import Store

SEED = "seed"
NUMERIC = ("int64", "double")
METRICS = ("occupancy", "rates.output_tokens_per_s", "ttft_s.p99", "tpot_s.p99")
"""Metrics that are drawn if none is named."""


@dataclass(frozen=True)
class Choice:
    """What is drawn: a panel for each metric over the axis `x`, a line for each setting of the axes `by`.

    Axes are columns of the sweep; metrics are those of a summary, joined by dots.
    """

    x: str
    by: tuple[str, ...]
    metrics: tuple[str, ...]


def choose(store: Store, x: str | None, by: Sequence[str], metrics: Sequence[str]) -> Choice:
    """The choice that these names mean; by default the first axis of numbers, or of names, all others, and METRICS.

    Raises BadInput for a name that no axis has, and for a sweep without an axis to draw over.
    """
    axes = [column for column in store.axes if column != SEED]
    if x is None and not axes:
        raise BadInput(f"{store.folder}: its runs differ in nothing but the seed; expected an axis to draw over")
    across = min(axes, key=lambda column: store.kinds[column] not in NUMERIC) if x is None else axis(store, x, "--x")
    chosen = tuple(axis(store, name, "--by") for name in by) or tuple(name for name in axes if name != across)
    return Choice(across, chosen, tuple(metrics) or METRICS)


def axis(store: Store, name: str, option: str) -> str:
    """The column of the axis with this column, key, or end of a key: `slots` is `engine.slots`.

    Raises BadInput for an unknown name and one that several axes end with.
    """
    keys = {column: str(found["key"]) for column, found in store.axes.items()}
    exact = [column for column, key in keys.items() if name in (column, key)]
    ends = exact or [column for column, key in keys.items() if key.endswith(f".{name}")]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise BadInput(
            f"{option} {name}: several axes end so; expected one of {', '.join(keys[end] for end in ends)}"
        )
    nearest = difflib.get_close_matches(name, keys.values(), n=1, cutoff=0.0)
    raise BadInput(
        f"{option} {name}: no axis of this sweep; " + (f"did you mean {nearest[0]}?" if nearest else "it has none")
    )


def panels(store: Store, choice: Choice, where: str | None = None) -> list[Panel]:
    """The panels of a choice, of the runs that ended.

    where  a condition in SQL for the rows that are drawn

    Raises BadInput if runs of one point differ in more than their seed, if none is left, and for a metric that the
    runs do not have.
    """
    condition = "status = 'ended'" + (f" AND ({where})" if where else "")
    frame = query.ask(store, f"SELECT * FROM runs WHERE {condition}", "--where")
    if frame.empty:
        raise BadInput(f"{store.folder}: no run that ended" + (f" has {where}" if where else ""))
    for column in store.axes:
        if column not in (choice.x, *choice.by, SEED) and frame[column].nunique() > 1:
            raise BadInput(
                f"{store.folder}: its runs differ in {column} too, which would be averaged over; "
                "expected it in --by, or one value of it by --where"
            )
    summaries = [json.loads(text) for text in frame["summary"]]
    return [panel(store, choice, frame, summaries, name) for name in choice.metrics]


def panel(store: Store, choice: Choice, frame: pd.DataFrame, summaries: Sequence[Any], name: str) -> Panel:
    """One metric over the axis. Raises BadInput for one that the runs do not have, or that is no number."""
    try:
        values = [metric(summary, name) for summary in summaries]
    except ValueError as error:
        raise BadInput(f"--y {error}") from None
    if any(isinstance(value, str) for value in values):
        raise BadInput(f"--y {name}: is text; expected a number")
    heights = frame[list(store.axes)].assign(height=[float("nan") if one is None else one for one in values])
    lines = []
    for line, part in heights.groupby(list(choice.by), sort=False) if choice.by else [((), heights)]:
        points = []
        for at, runs in part.groupby(choice.x, sort=True):
            samples = runs["height"].dropna().to_numpy("float64")
            if len(samples):
                estimate = mean(samples)
                points.append(Point(at, estimate.value, estimate.low, estimate.high, estimate.n))
        if points:
            lines.append(Line(named(store, choice.by, line), points))
    value = declared(name)
    return Panel(name, "" if value is None else value.unit, str(store.axes[choice.x]["key"]), lines)


def named(store: Store, columns: Sequence[str], values: Sequence[Any]) -> str:
    """The name of a line: the values of its axes, numbers with the end of their key."""
    texts = []
    for column, value in zip(columns, values, strict=True):
        end = f"{str(store.axes[column]['key']).rpartition('.')[2]} " if store.kinds[column] in NUMERIC else ""
        texts.append(end + query.shown(value))
    return ", ".join(texts)
