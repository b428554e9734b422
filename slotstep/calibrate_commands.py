"""`slotstep calibrate`: step costs for an engine that is not shipped, from whatever is known of it."""

from __future__ import annotations

import typer

from slotstep import fit_commands, made_commands, measure_commands, transfer_commands

calibrate_app = typer.Typer(
    help="Make a profile, what a step costs, of measurements or shapes.", no_args_is_help=True
)


@calibrate_app.callback()
def group() -> None:
    """Make a profile, what a step costs, of measurements or shapes."""


fit_commands.register(calibrate_app)
made_commands.register(calibrate_app)
measure_commands.register(calibrate_app)
transfer_commands.register(calibrate_app)
