"""`slotstep validate MEASUREMENTS`: predictions compared with measured runs, metric by metric."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slotstep.cli.output import print_json, say, show

if TYPE_CHECKING:
    from slotstep.validation.validation import ComparedRun


def validate_measurements(
    measurements: Sequence[Path],
    scenario: Path,
    profile: str | None,
    settings: Sequence[str],
    prompts: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Simulate measured runs and compare: latencies by metric and by load, throughput, time-outs. Raises BadInput."""
    from slotstep.runs.result import prepare
    from slotstep.validation import measured_runs
    from slotstep.validation.validation import compared_run

    given = list(settings)
    if profile is not None:
        given.append(f"cost={json.dumps({'profile': absolute(profile)})}")
    runs = measured_runs.runs(measurements, scenario, given, prompts)
    for remark in (*measured_runs.remarks(runs), *measured_runs.hints(runs)):
        say(remark)
    if out is not None:
        prepare(out)
    found = [compared_run(run) for run in runs]
    if out is not None:
        save(found, out)
    if as_json:
        print_json({"runs": [each.content for each in found]})
        return
    for each in found:
        print(*summary(each), sep="\n")
        show(table(each))


def absolute(profile: str) -> str:
    """A profile name as it is, or a profile file made absolute, because the scenario's folder may be another."""
    from slotstep.scenario.cost import is_file

    return str(Path(profile).absolute()) if is_file(profile) else profile


def save(found: Sequence[ComparedRun], folder: Path) -> None:
    """Write validation.json, and for each run a figure and a table of its requests."""
    from reports import files
    from reports.figures.fidelity import fidelity
    from reports.figures.png import write_png

    drawn = {each.name.replace("/", "-").replace(":", "-"): each for each in found}
    write_png({name: fidelity(each.name, each.pairs, each.series) for name, each in drawn.items()}, folder)
    for name, each in drawn.items():
        files.write_parquet(folder / f"{name}.parquet", each.pairs)
    files.write_json(folder / "validation.json", {"runs": [each.content for each in found]})
    say(f"written to {folder}")


def summary(found: ComparedRun) -> list[str]:
    """The number of compared requests, and the throughput of both runs."""
    asked, over_time = found.content["requests"], found.content
    ended = {
        side: ", ".join(f"{count:,} {name}" for name, count in asked[side].items() if count)
        for side in ("measured", "predicted")
    }
    timeless = (
        [] if "makespan_s" in over_time else ["  not known when requests were sent: nothing over time or by load"]
    )
    lines = [
        f"{found.name}: {asked['compared']:,} requests ended well in both runs",
        f"  measured  {ended['measured']}"
        + (f"; {asked['not_replayed']:,} not replayed" if asked["not_replayed"] else ""),
        f"  predicted {ended['predicted']}",
        *timeless,
    ]
    for name, words in (
        ("makespan_s", "makespan"),
        ("requests_per_s", "requests/s"),
        ("output_tokens_per_s", "tokens/s"),
    ):
        if name not in over_time:
            continue
        one = over_time[name]
        error = f" ({one['error']:+.1%})" if one["error"] is not None else ""
        lines.append(f"  {words}: measured {one['measured']:,.1f}, predicted {one['predicted']:,.1f}{error}")
    gaps = found.content["gaps_between"]
    if gaps["chunks"]:
        lines.append(
            f"  gaps of {gaps['chunks']:,} requests are between chunks, not between tokens, and compared with nothing"
            + (f"; ITL is of the {gaps['tokens']:,} others" if gaps["tokens"] else ": there is no ITL")
        )
    return lines


def table(found: ComparedRun) -> Any:
    """Every statistic measured and predicted, its error, and the errors at three levels of load."""
    from rich import box
    from rich.table import Column, Table

    levels = found.content["by_load"]
    loads = [f"{level['level']}\n{level['in_flight'][0]}-{level['in_flight'][1]}" for level in levels]
    heads = ["measured", "predicted", "error", *loads]
    made = Table(
        Column("metric", no_wrap=True), *(Column(h, justify="right", no_wrap=True) for h in heads), box=box.SIMPLE
    )
    for metric, of in found.content["metrics"].items():
        name = metric.removesuffix("_s").upper() if metric != "wait_s" else "wait"
        for statistic in ("mean", "p50", "p90", "p99"):
            one = of[statistic]
            parts = [level["metrics"].get(metric, {}).get(statistic, {}).get("error") for level in levels]
            made.add_row(
                f"{name} {statistic}", time(one["measured"]), time(one["predicted"]), percent(one["error"]),
                *map(percent, parts),
            )  # fmt: skip
        if of.get("each") is not None:
            made.add_row(f"{name} of each", "", "", f"{of['each']:.1%}", end_section=True)
    return made


def time(seconds: float) -> str:
    """Seconds as text in ms or s."""
    return f"{seconds * 1e3:,.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"


def percent(error: float | None) -> str:
    """A signed relative error in percent."""
    return "" if error is None else f"{error:+.1%}"
