"""`slotstep calibrate transfer`: a profile rescaled to another model on the same device."""

from __future__ import annotations

import datetime
from typing import Annotated

import typer

from slotstep.cli.params import ModelShape, ProfileFile


def transfer(
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help="A shipped profile, or a file: a roofline.")],
    model: ModelShape,
    out: ProfileFile,
    from_model: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="The model that the profile is of, where it does not say its shape."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Of the host, between steps; as in the profile if not given."),
    ] = None,
) -> None:
    """Rescale a roofline to another dense model on the same device, by bytes and operations."""
    from calibrate.fit.rescale import carried_profile
    from calibrate.models.registry import architecture
    from reports.files import write_text
    from slotstep.runs import profiles
    from slotstep.scenario.units import coefficient, text
    from traces.errors import BadInput

    try:
        given = profiles.find(profile)
        made = carried_profile(
            given,
            architecture(model),
            name=out.stem,
            date=datetime.date.today().isoformat(),
            source=None if from_model is None else architecture(from_model),
            host=None if host is None else coefficient(host),
        )
    except ValueError as error:
        raise BadInput(str(error)) from None
    write_text(out, made.text())
    said = made.content["details"]["carried"]
    print(f"{out}: {said['from']} to {said['to']}, content {made.sha256[:12]}")
    for term, factor in said["factors"].items():
        value = getattr(made.cost(), term)
        print(f"  {term:<18} {text(float(f'{value:.4g}')):>10}  {factor:.3f} times that of {said['from']}")
    for term in said["stayed"]:
        print(f"  {term:<18} stayed")
