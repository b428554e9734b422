"""The command line: makes the app, registers the commands, and turns errors into exit codes.

Results go to standard output, everything else to standard error. Bad input is one line and exit code 2; an internal
error is a traceback and exit code 1. Modules of commands import heavy packages inside functions, so that `--help` is
fast.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from slotstep.cli.calibrate.fit import fit
from slotstep.cli.calibrate.from_aiconfigurator import from_aiconfigurator
from slotstep.cli.calibrate.from_log import from_log
from slotstep.cli.calibrate.from_operators import from_operators
from slotstep.cli.calibrate.from_shapes import from_shapes
from slotstep.cli.calibrate.from_steps import from_steps
from slotstep.cli.calibrate.measure import measure
from slotstep.cli.calibrate.pages import pages
from slotstep.cli.calibrate.profiles import profiles
from slotstep.cli.calibrate.transfer import transfer
from slotstep.cli.experiments.capacity import capacity
from slotstep.cli.experiments.check import check
from slotstep.cli.experiments.results import results
from slotstep.cli.experiments.study import study
from slotstep.cli.experiments.sweep import sweep
from slotstep.cli.reports.policies import policies
from slotstep.cli.reports.report import report
from slotstep.cli.run.compare import compare
from slotstep.cli.run.parity import parity
from slotstep.cli.run.replay import replay
from slotstep.cli.run.run import run
from slotstep.cli.run.validate import validate
from slotstep.cli.traces.convert import convert
from slotstep.cli.traces.fetch import fetch
from slotstep.cli.traces.fit import fit as fit_trace
from slotstep.cli.traces.generate import generate
from slotstep.cli.traces.info import info
from slotstep.cli.watch.watch import watch

INTERRUPTED = 130
"""The exit code after Ctrl-C, by a shell's convention."""

COMMANDS = (
    *(policies, profiles, pages, replay, validate, report, check, watch),
    *(sweep, results, study, capacity, run, compare, parity),
)
OF_TRACES = (info, fit_trace, convert, generate, fetch)
OF_CALIBRATION = (from_steps, from_log, from_operators, from_aiconfigurator, from_shapes, measure, fit, transfer)

app = typer.Typer(
    help="What did the slots of an LLM serving engine do, and what would they do under another policy?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
traces_app = typer.Typer(help="Public request traces.", no_args_is_help=True)
calibrate_app = typer.Typer(
    help="Make a profile, what a step costs, of measurements or shapes.", no_args_is_help=True
)
app.add_typer(traces_app, name="trace")
app.add_typer(calibrate_app, name="calibrate")
for group, commands in ((app, COMMANDS), (traces_app, OF_TRACES), (calibrate_app, OF_CALIBRATION)):
    for command in commands:
        group.command()(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0, 2 for bad input, 130 on Ctrl-C, 1 for an internal error."""
    from traces.errors import BadInput

    try:
        app(arguments)
    except BadInput as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            print("interrupted", file=sys.stderr)
        raise


def refuse(reason: str) -> None:
    """Print on one line what is wrong with the input, and exit with 2."""
    print("error:", " ".join(reason.split()), file=sys.stderr)
    sys.exit(2)


def print_version(wanted: bool) -> None:
    """Print the version and exit, if requested."""
    if wanted:
        print(f"slotstep {version('slotstep')}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """The options that every command shares."""
