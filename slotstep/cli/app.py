"""The command line: makes the app of the registered commands, and turns errors into exit codes.

Results go to standard output, everything else to standard error. Bad input is one line and exit code 2; an internal
error is a traceback and exit code 1. Modules of commands import heavy packages inside functions, so that `--help` is
fast.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
import typer.core

from sim import kernel
from sim.kernel import KernelError
from slotstep.cli.registry import COMMANDS

INTERRUPTED = 130
"""The exit code after Ctrl-C, by a shell's convention."""


class Commands(typer.core.TyperGroup):
    """The group of all commands, which also finds those of installed packages and `module:function`."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by name; None for an unknown one. Raises BadInput for one that cannot be loaded."""
        return super().get_command(ctx, cmd_name) or (foreign(cmd_name) if COMMANDS.knows(cmd_name) else None)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, those of installed packages last."""
        return [*super().list_commands(ctx), *(name for name in COMMANDS.names() if name not in COMMANDS)]


def foreign(name: str) -> Any:
    """A command that is not built in. Raises BadInput for one that cannot be loaded."""
    from traces.errors import BadInput

    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    try:
        alone.command(name)(COMMANDS.find(name))
    except ValueError as error:
        raise BadInput(f"command {error}") from error
    return typer.main.get_command(alone)


def application(arguments: Sequence[str] = ()) -> typer.Typer:
    """The app of the command that these arguments begin with, so that no other is imported; else of all commands."""
    app = typer.Typer(
        cls=Commands,
        help="What did the slots of an LLM serving engine do, and what would they do under another policy?",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(options)
    trace = typer.Typer(help="Public request traces.", no_args_is_help=True)
    calibrate = typer.Typer(
        help="Make a profile, what a step costs, of measurements or shapes.", no_args_is_help=True
    )
    groups = {"": app, "trace": trace, "calibrate": calibrate}
    app.add_typer(trace, name="trace")
    app.add_typer(calibrate, name="calibrate")
    asked = [path for path in (" ".join(arguments[:words]) for words in (1, 2)) if path in COMMANDS]
    for path in asked or COMMANDS:
        place, _, name = path.rpartition(" ")
        groups[place].command(name)(COMMANDS[path])
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0, 2 for bad input, 130 on Ctrl-C, 1 for an internal error."""
    from traces.errors import BadInput

    try:
        given = sys.argv[1:] if arguments is None else arguments
        application(given)(given)
    except BadInput as error:
        refuse(str(error))
    except KernelError as error:
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
        from importlib.metadata import version

        print(f"slotstep {version('slotstep')}, kernel: {kernel.described()}")
        raise typer.Exit


def options(
    _: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """The options that every command shares."""
