"""`slotstep validate STATISTICS.yaml`: simulated statistics compared with measured ones, by load."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slotstep.cli.output import print_json, say, show
from slotstep.cli.run.validate_measurements import absolute, percent, time

if TYPE_CHECKING:
    from slotstep.validation.aggregates import Compared

Keys = tuple[str, ...]


def validate_statistics(
    statistics: Path, scenario: Path, profile: str | None, settings: Sequence[str], out: Path | None, as_json: bool
) -> None:
    """Simulate every load of a file of statistics and compare number by number. Raises BadInput."""
    from reports import files
    from slotstep.runs.result import prepare
    from slotstep.validation import aggregates

    given = list(settings)
    if profile is not None:
        given.append(f"cost={json.dumps({'profile': absolute(profile)})}")
    if out is not None:
        prepare(out)
    found = aggregates.runs(statistics, scenario, given)
    content = {"statistics": str(statistics), "runs": [each.content for each in found]}
    if out is not None:
        files.write_json(out / "validation.json", content)
        say(f"written to {out}")
    if as_json:
        print_json(content)
        return
    for each in found:
        print(heading(each))
        show(table(each))


def heading(found: Compared) -> str:
    """The load, how many requests finished, and whether the queue grew."""
    asked = found.content["requests"]
    grows = "; its queue grows: a longer run has other latencies" if found.content["queue_grows"] else ""
    return f"{found.name}: {asked['finished']:,} of {asked['injected']:,} finished{grows}"


def table(found: Compared) -> Any:
    """Every statistic measured and predicted, and its error."""
    from rich import box
    from rich.table import Column, Table

    right = [Column(head, justify="right", no_wrap=True) for head in ("measured", "predicted", "error")]
    made = Table(Column("metric", no_wrap=True), *right, box=box.SIMPLE)
    for path, one in leaves(found.content["metrics"]):
        made.add_row(*row(path, one))
    return made


def leaves(metrics: Mapping[str, Any], path: Keys = ()) -> Iterator[tuple[Keys, dict[str, Any]]]:
    """Every compared number with its keys."""
    for key, value in metrics.items():
        if "measured" in value:
            yield (*path, key), value
        else:
            yield from leaves(value, (*path, key))


def row(path: Keys, one: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """The name of a number, both values as text, and the error."""
    return " ".join(path), shown(path, one["measured"]), shown(path, one["predicted"]), percent(one["error"])


def shown(path: Keys, value: float | None) -> str:
    """A time or another number as text; a dash for None."""
    from slotstep.validation.aggregates import is_time

    if value is None:
        return "-"
    return time(value) if is_time(path) else f"{value:,.4g}"
