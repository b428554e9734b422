"""`slotstep validate`: how far a prediction is from what was measured.

Answers go to standard output, all else to standard error, and heavy imports are inside, as in `slotstep.cli`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from slotstep.replay_commands import AsJson, Attention, DeviceName, DTypeName, Fraction, Settings, Weights, options


def validate(
    replay: Annotated[
        str,
        typer.Option(
            metavar="MODEL", help="Against a replay on this machine: a named model, a config.json, or synthetic."
        ),
    ],
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
    device: DeviceName = "auto",
    dtype: DTypeName = None,
    attention: Attention = "auto",
    memory_fraction: Fraction = 0.9,
    weights: Weights = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write the measurement, profile and errors here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Calibrate, simulate and replay, and compare; exit code 1 beyond the tolerance, 3 if it cannot be told here."""
    from slotstep.trial_commands import validate_replay

    chosen = options(device, dtype, attention, memory_fraction, weights)
    validate_replay(scenario, replay, settings, clock, tolerance, rounds, seconds, out, as_json, **chosen)
