"""`slotstep calibrate from-operators`: a profile composed of published tables of operators."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated

import typer

from slotstep.cli.calibrate.text import write_profile
from slotstep.cli.params import About, ModelShape, ProfileFile, TensorParallel


def from_operators(
    folder: Annotated[Path, typer.Argument(help="A folder of operator tables, LLMServingSim's or Vidur's.")],
    model: ModelShape,
    out: ProfileFile,
    about: About = None,
    tensor_parallel: TensorParallel = 1,
    attention: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Attention from this file instead of the folder's own.")
    ] = None,
    link: Annotated[
        float | None, typer.Option(metavar="BYTES/S", help="Between the devices, for all-reduces: no table has them.")
    ] = None,
    multiprocessors: Annotated[
        int | None,
        typer.Option(
            min=1, help="Of a device (SMs): adds what a long sequence among short ones costs, by its kernel."
        ),
    ] = None,
    source: Annotated[str | None, typer.Option(help="Where the tables come from.")] = None,
) -> None:
    """Compose whole steps of published tables of operators."""
    from calibrate.compose.compose import composed_profile
    from calibrate.compose.operators import read
    from calibrate.models.registry import architecture
    from slotstep.validation import provenance
    from traces.errors import BadInput

    try:
        shape = architecture(model)
        of = [*(about or ()), f"model.name={shape.name}", f"tensor_parallel={tensor_parallel}"]
        said = {key: value for key, value in provenance.stated(of, out).items() if key != "model"}
        operators = read(folder, shape, tensor_parallel, attention)
        made = composed_profile(
            operators,
            shape,
            name=out.stem,
            link=link,
            multiprocessors=multiprocessors,
            **{
                "date": datetime.date.today().isoformat(),
                "source": source or f"operator tables in {folder.name}",
                **said,
            },
        )
    except ValueError as error:
        raise BadInput(str(error)) from None
    write_profile(made, out)
