"""`slotstep calibrate from-operators` and `from-shapes`: profiles without a run of the engine.

Answers go to standard output, all else to standard error, and heavy imports are inside, as in `slotstep.cli`.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from calibrate.profile import Profile

Out = Annotated[Path, typer.Option("--out", metavar="FILE.yaml", help="Write the profile here.")]
About = Annotated[
    list[str] | None,
    typer.Option("--about", metavar="KEY=VALUE", help="What the profile is of, as in device=H100. May be repeated."),
]
Model = Annotated[str, typer.Option("--model", metavar="NAME|FILE", help="A model's name, or its config.json.")]
Devices = Annotated[int, typer.Option("--tensor-parallel", min=1, help="Devices that share the model.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the group `slotstep calibrate`."""
    app.command()(from_operators)


def from_operators(
    folder: Annotated[Path, typer.Argument(help="A folder of operator tables, LLMServingSim's or Vidur's.")],
    model: Model,
    out: Out,
    about: About = None,
    tensor_parallel: Devices = 1,
    attention: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Attention from this file instead of the folder's own.")
    ] = None,
    source: Annotated[str | None, typer.Option(help="Where the tables come from.")] = None,
) -> None:
    """Compose whole steps of published tables of operators."""
    from calibrate.anatomy import anatomy
    from calibrate.compose import composed_profile
    from calibrate.operators import read
    from slotstep import provenance
    from traces.errors import BadInput

    try:
        shape = anatomy(model)
        of = [*(about or ()), f"model.name={shape.name}", f"tensor_parallel={tensor_parallel}"]
        said = provenance.said(of, out) | {"model": shape.described()}
        operators = read(folder, shape, tensor_parallel, attention)
        made = composed_profile(
            operators,
            shape,
            name=out.stem,
            **{
                "date": datetime.date.today().isoformat(),
                "source": source or f"operator tables in {folder.name}",
                **said,
            },
        )
    except ValueError as error:
        raise BadInput(str(error)) from None
    write(made, out)


def write(made: Profile, out: Path) -> None:
    """Write a profile, whole or not at all, and say its residuals and its content."""
    from reports.files import write_text
    from slotstep.profile_commands import error

    write_text(out, made.text())
    print(f"{out}: {made.kind}, content {made.sha256[:12]}; {error(made)}")
