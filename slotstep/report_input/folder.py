"""A folder that `--out` wrote, as a story for a report: one run, or one in each folder of a comparison.

Missing and damaged files are reported with their path.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.accounting.metrics import chosen
from traces.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

    from reports.page.report import Report, Run

SUMMARY = "summary.json"
COMPARISON = "comparison.json"
PROFILE = "profile.yaml"
STEPS = ("start_ns", "duration_ns", "decode", "prefill", "waiting", "reason", "pages_used")
REQUESTS = ("id", "tenant", "queued_ns", "admitted_ns", "ended_ns", "wait_s", "ttft_s", "tpot_s", "e2e_s")
STAYS = ("slot", "id", "status", "admitted_ns", "completed_ns", "released_ns")


def read(folder: Path) -> Report:
    """The report of a folder. Raises BadInput for one that holds no result, or an incomplete one."""
    from reports.page.report import Report

    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; expected one that --out wrote")
    if (folder / "sweep.json").exists():
        from slotstep.report_input.results import sweep

        return sweep(folder)
    if (folder / "capacity.json").exists():
        from slotstep.report_input.capacity import capacity

        return capacity(folder)
    if (folder / "plan.json").exists():
        from slotstep.report_input.plan import plan

        return plan(folder)
    if (folder / "replications.json").exists():
        from slotstep.report_input.replications import replications

        return replications(folder)
    if (folder / COMPARISON).exists():
        runs = [run(folder / name) for name in listed(folder / COMPARISON)]
    elif (folder / SUMMARY).exists():
        runs = [run(folder)]
    else:
        raise BadInput(f"{folder}: neither {SUMMARY} nor {COMPARISON} in it; expected what --out wrote, or a sweep")
    names = dict.fromkeys(one.summary["scenario"] for one in runs)
    return Report(", ".join(map(str, names)), named(runs))


def listed(path: Path) -> list[str]:
    """The folders of a comparison's runs."""
    try:
        names = json.loads(text(path))["runs"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: expected what compare --out wrote: {error!r}") from None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise BadInput(f"{path}: runs: expected a list of folders")
    return names


def named(runs: list[Run]) -> list[Run]:
    """The runs with distinct names."""
    from dataclasses import replace

    from reports.text.comparison_sentences import labels

    return [replace(one, name=name) for one, name in zip(runs, labels([r.summary for r in runs]), strict=True)]


def run(folder: Path) -> Run:
    """The run in a folder."""
    from reports.page.report import Run

    profile = folder / PROFILE
    return Run(
        folder.name,
        summary(folder / SUMMARY),
        table(folder / "requests.parquet", REQUESTS),
        table(folder / "steps.parquet", STEPS),
        table(folder / "slots.parquet", STAYS),
        text(folder / "scenario.yaml"),
        text(profile) if profile.exists() else None,
    )


def summary(path: Path) -> dict[str, Any]:
    """The summary in a file."""
    try:
        found = json.loads(text(path))
    except ValueError as error:
        raise BadInput(f"{path}: invalid JSON: {error}") from None
    if not isinstance(found, dict) or "slot_steps" not in found:
        raise BadInput(f"{path}: expected the summary of a run, with the key slot_steps")
    try:
        chosen(found.get("metrics", ()))
    except ValueError as error:
        raise BadInput(f"{path}: metrics: {error}") from None
    return found


def table(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    """The table in a parquet file, which has to have these columns."""
    import pandas as pd

    try:
        found = pd.read_parquet(path)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; write the run again with --out") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    missing = [column for column in columns if column not in found]
    if missing:
        raise BadInput(f"{path}: column {missing[0]} is missing; write the run again with --out")
    return found


def text(path: Path) -> str:
    """The text of a file."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; write the run again with --out") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
