"""`slotstep calibrate`: step costs for an engine that is not shipped, from whatever is known of it."""

from __future__ import annotations

import typer

from slotstep.cli.calibrate import composed, fits, measure, transfer

calibrate_app = typer.Typer(
    help="Make a profile, what a step costs, of measurements or shapes.", no_args_is_help=True
)


@calibrate_app.callback()
def group() -> None:
    """Make a profile, what a step costs, of measurements or shapes."""


fits.register(calibrate_app)
composed.register(calibrate_app)
measure.register(calibrate_app)
transfer.register(calibrate_app)
