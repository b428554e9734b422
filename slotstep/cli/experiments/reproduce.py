"""`slotstep reproduce`: whether the runs of a bundle give what they gave."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slotstep.cli.params import Jobs, Kernel


def reproduce(
    bundle: Annotated[Path, typer.Argument(metavar="FILE.zip", help="What --bundle wrote.")],
    inputs: Annotated[
        Path, typer.Option("--inputs", metavar="DIR", help="Where the files are that the runs read, under any name.")
    ] = Path(),
    within: Annotated[
        str | None,
        typer.Option("--within", metavar="SHARE", help="What numbers with a fraction may differ by, as in 0.01%."),
    ] = None,
    jobs: Jobs = None,
    kernel: Kernel = None,
) -> None:
    """Run the runs of a bundle again and compare every value with the recorded one.

    Exit code 0 if all are as recorded, 1 if one differs, 2 if a run fails or an input is not there.
    """
    from reports.checks.outcome import exit_code
    from reports.checks.text import text
    from slotstep.cli.progress import Meter
    from slotstep.experiments.bundles import reproduce as again
    from slotstep.experiments.bundles.bundle import read
    from slotstep.experiments.checks.expected import tolerance
    from traces.errors import BadInput

    try:
        allowed = None if within is None else tolerance(within)
    except ValueError as error:
        raise BadInput(f"--within: {error}") from None
    content = read(bundle)
    with Meter("reproduce", len(content.runs), "runs") as meter:
        found = again.reproduce(content, inputs, allowed, jobs, meter)
    print(text(found, "run"), flush=True)
    raise typer.Exit(exit_code(found))
