"""`slotstep validate`: the error of predictions against measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from slotstep.cli.params import (
    AsJson,
    Attention,
    Device,
    EngineDType,
    Kernel,
    MemoryFraction,
    Prompts,
    Settings,
    Weights,
    Yes,
    engine_options,
    permitted,
)

OF_MEASUREMENTS = {"measurements", "scenario", "profile", "prompts", "settings", "out", "as_json", "yes"}


def validate(
    context: typer.Context,
    measurements: Annotated[
        list[Path] | None,
        typer.Argument(help="Against these measured runs, in any format; or statistics by load, one YAML file."),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="Against a replay on this machine: a named model, a config.json, or synthetic."
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile", metavar="NAME|FILE.yaml", help="What a step costs, instead of the scenario's cost."
        ),
    ] = None,
    prompts: Prompts = None,
    *,
    scenario: Annotated[Path, typer.Option("--scenario", metavar="FILE", help="What is simulated and replayed.")],
    settings: Settings = None,
    clock: Annotated[
        Literal["wall", "cpu"] | None,
        typer.Option(help="Of steps and pacing; cpu on a CPU, wall on a GPU, if not given."),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Of the error in busy time; 0.2 on a CPU, 0.03 on a GPU, 0.02 synthetic, if not given."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Visits of every measured step.")] = 4,
    seconds: Annotated[float, typer.Option(help="For measuring before the replay, by the wall.")] = 120.0,
    device: Device = "auto",
    dtype: EngineDType = None,
    attention: Attention = "auto",
    memory_fraction: MemoryFraction = 0.9,
    weights: Weights = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write the measurement, profile and errors here.")
    ] = None,
    as_json: AsJson = False,
    yes: Yes = False,
    kernel: Kernel = None,
) -> None:
    """Compare a prediction with measured runs, with measured statistics, or with a replay on this machine.

    With --replay: calibrate, simulate and replay; exit code 1 beyond the tolerance, 3 if it cannot be told here.
    """
    from slotstep.scenario.cost import PROFILE_ENDINGS
    from traces.errors import BadInput

    if (measurements is None) == (replay is None):
        found = "both" if replay else "neither"
        raise BadInput(f"validate: found {found} of measured runs and --replay; expected one of them")
    statistics = [file for file in measurements or () if file.suffix in PROFILE_ENDINGS]
    given = {name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")}
    unused = sorted(given - OF_MEASUREMENTS if measurements else given & {"profile", "prompts"})
    if unused:
        other = "goes with --replay" if measurements else "goes with measured runs"
        raise BadInput(f"validate: --{unused[0].replace('_', '-')} {other}")
    if statistics:
        if len(measurements or ()) > 1:
            raise BadInput(f"validate: found other files beside {statistics[0]}; expected one file of statistics")
        if "prompts" in given:
            raise BadInput("validate: --prompts goes with measured runs that have a row for each request")
        from slotstep.cli.run.validate_statistics import validate_statistics

        validate_statistics(statistics[0], scenario, profile, permitted(settings, yes), out, as_json)
        return
    if measurements:
        from slotstep.cli.run.validate_measurements import validate_measurements

        validate_measurements(measurements, scenario, profile, permitted(settings, yes), prompts, out, as_json)
        return
    assert replay is not None
    from slotstep.cli.run.validate_replay import validate_replay

    chosen = engine_options(device, dtype, attention, memory_fraction, weights)
    allowed = permitted(settings, yes)
    validate_replay(scenario, replay, allowed, clock, tolerance, rounds, seconds, out, as_json, **chosen)
