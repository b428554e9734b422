"""`slotstep validate --replay MODEL`: predictions compared with a real engine on this machine."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from slotstep.cli.output import open_scenario, print_json, say, show

if TYPE_CHECKING:
    from rich.table import Table

    from calibrate.replay.live import Pacing
    from calibrate.validate.experiment import Trial
    from calibrate.validate.judge import Judgement

EXIT = {"within": 0, "beyond": 1, "not measurable here": 3}
"""The verdict as an exit code: a host on which it cannot be measured neither passes nor fails."""


def validate_replay(
    scenario: Path,
    model: str,
    settings: list[str],
    clock: Pacing | None,
    tolerance: float | None,
    rounds: int,
    seconds: float,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Validate a scenario's prediction on a model, print the result, and exit with the verdict's code."""
    from slotstep.runs.result import prepare
    from slotstep.validation.experiment import validate

    loaded = open_scenario(scenario, settings)
    if out is not None:
        prepare(out)
    found, about = validate(
        loaded,
        model,
        pacing=clock,
        tolerance=tolerance,
        rounds=rounds,
        seconds=seconds,
        folder=None if out is None else out / "measured",
        say=say,
        **options,
    )
    told = {"scenario": loaded.name, **about, **found.judgement.told(), "fit": found.fitted.residuals}
    if out is not None:
        write(out, found, about, told)
    if as_json:
        print_json(told)
    else:
        print("\n".join(found.judgement.lines()), flush=True)
        show(figures_table(found.judgement))
    raise typer.Exit(EXIT[found.judgement.verdict])


def write(out: Path, found: Trial, about: dict[str, Any], told: dict[str, Any]) -> None:
    """Write the profile that predicted, and the comparison."""
    from reports import files

    made = found.fitted.profile(about, "profile", datetime.date.today().isoformat())
    files.write_text(out / "profile.yaml", made.text())
    files.write_json(out / "validation.json", told)
    say(f"written to {out}")


def figures_table(judgement: Judgement) -> Table:
    """Errors of the simulation against the mean of the replays, and by how much these differ."""
    from rich import box
    from rich.table import Column, Table

    right = [Column(name, justify="right", no_wrap=True) for name in ("simulated", "allowed", "replays differ by")]
    table = Table(Column("against the replays", no_wrap=True), *right, box=box.SIMPLE)
    allowed = judgement.allowed
    for key, error in judgement.free.items():
        most, noise = (f"{each[key]:.1%}" if key in each else "" for each in (allowed, judgement.noise))
        table.add_row(key.replace("_", " "), f"{error:+.1%}", most, noise)
    return table
