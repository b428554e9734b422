"""The directory of a sweep as findings of a report: means over seeds with intervals, and curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from reports.page.report import Curve, Report

METRICS = {
    "occupancy": "occupancy",
    "rates_output_tokens_per_s": "output tok/s",
    "ttft_s_mean": "mean TTFT, s",
    "ttft_s_p99": "p99 TTFT, s",
    "tpot_s_p99": "p99 TPOT, s",
    "e2e_s_p99": "p99 E2E, s",
    "attainment": "attainment",
    "preemptions": "preemptions",
}
DRAWN = ("occupancy", "output tok/s", "p99 TTFT, s", "attainment")
SEED = "seed"
MOST_NAMES = 12
"""Most names of an axis over which metrics are drawn."""


def sweep(folder: Path) -> Report:
    """The report of a sweep's directory. Raises BadInput for an invalid one."""
    from reports.latency_origin import FROM_SENT
    from reports.page.report import Finding, Report
    from slotstep.experiments.sweeps import earlier
    from slotstep.experiments.sweeps.store import opened

    store = opened(folder)
    frame = store.frame()
    axes = {column: str(axis["key"]) for column, axis in store.axes.items() if column != SEED}
    ended = frame[frame["status"] == "ended"]
    failed = frame[frame["status"] == "failed"]
    title = f"Sweep of {', '.join(map(str, dict.fromkeys(frame['scenario'].dropna())))}"
    remarks = [*earlier.remarks(store), *(f"A run failed: {error}" for error in dict.fromkeys(failed["error"]))]
    if ended.empty:
        return Report(title, (), (), [*remarks, "No run has ended."])
    named = ended.rename(columns=axes)
    means = averages(named, list(axes.values()))
    seeds = means["seeds"]
    counted = f"{int(seeds.min())} to {int(seeds.max())}" if seeds.nunique() > 1 else f"{int(seeds.iloc[0])}"
    said = (
        f"{len(ended):,} runs of {len(means):,} settings, {counted} seeds of each. Numbers are means over seeds; "
        "the strokes in the curves are their 95% intervals (Student's t), where there are several."
    )
    late = [FROM_SENT] if (ended["client_wait_s_max"] > 0).any() else []
    found = Finding("Settings", means, [said, *late], curves(means, list(axes.values())), hidden(means))
    return Report(
        title,
        (),
        (found, Finding("Where the slot-steps went", shares(named, axes.values()))),
        remarks,
    )


def averages(runs: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """A row per setting: the number of seeds, and the mean and interval of each metric."""
    import pandas as pd

    from reports.statistics.intervals import mean

    rows = []
    for values, part in grouped(runs, keys):
        row: dict[str, Any] = {**dict(zip(keys, values, strict=True)), "seeds": len(part)}
        for column, name in METRICS.items():
            numbers = part[column].dropna().to_numpy("float64")
            if len(numbers):
                estimate = mean(numbers)
                row |= {name: estimate.value, f"{name} low": estimate.low, f"{name} high": estimate.high}
        rows.append(row)
    return pd.DataFrame(rows)


def shares(runs: pd.DataFrame, keys: Any) -> pd.DataFrame:
    """A row per setting: the share of each nonempty row of the ledger in the slot-steps bought, in percent."""
    import pandas as pd

    from reports import ledger_rows

    keys = list(keys)
    columns = [
        row.key for row in ledger_rows.ROWS if f"slot_steps_{row.key}" in runs and runs[f"slot_steps_{row.key}"].any()
    ]
    found = []
    for values, part in grouped(runs, keys):
        bought = part["slot_steps_bought"].sum()
        amounts = {key: part[f"slot_steps_{key}"].sum() for key in columns}
        found.append(
            dict(zip(keys, values, strict=True))
            | {f"{key}, %": 100 * amount / bought if bought else None for key, amount in amounts.items()}
        )
    return pd.DataFrame(found)


def grouped(runs: pd.DataFrame, keys: Sequence[str]) -> Any:
    """The runs of each setting, in order of the table."""
    return runs.groupby(list(keys), sort=False) if keys else [((), runs)]


def curves(means: pd.DataFrame, keys: Sequence[str]) -> list[Curve]:
    """Metrics over the first axis of several numbers, else of names; a line for each setting of the others."""
    import pandas as pd

    from reports.page.report import Curve

    several = [key for key in keys if means[key].nunique() > 1]
    drawn = [
        *(key for key in several if pd.api.types.is_numeric_dtype(means[key])),
        *(key for key in several if means[key].nunique() <= MOST_NAMES),
    ]
    if not drawn:
        return []
    across = drawn[0]
    others = [key for key in keys if key != across]
    split = ""
    if others:
        split = ", ".join(others)
        if split not in means:
            means[split] = means[others].astype(str).agg(", ".join, axis=1)
    return [Curve(across, name, split, f"{name} low", f"{name} high") for name in DRAWN if name in means.columns]


def hidden(means: pd.DataFrame) -> list[str]:
    """Columns that are drawn but not shown: bounds, and line names made of several axes."""
    made = [column for column in means if ", " in str(column) and column not in METRICS.values()]
    bounds = [column for column in means if str(column).endswith((" low", " high"))]
    return [str(column) for column in [*made, *bounds] if column in means]
