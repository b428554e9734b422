"""`slotstep calibrate from-steps`: step costs from the steps that an engine logged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slotstep.cli.calibrate import text
from slotstep.cli.output import print_json, show
from slotstep.cli.params import About, AsJson, OptionalProfileFile


def from_steps(
    steps: Annotated[Path, typer.Argument(help="The log of steps: CSV, parquet or JSON lines.")],
    out: OptionalProfileFile = None,
    about: About = None,
    clock: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="cpu or wall; cpu where the log has it, if not given."),
    ] = None,
    form: Annotated[
        str, typer.Option(metavar="NAME", help="roofline, or affine: a plain sum, as on a CPU.")
    ] = "roofline",
    hold_out: Annotated[float, typer.Option(help="Share of the steps, the last, to predict unseen.")] = 0.25,
    as_json: AsJson = False,
) -> None:
    """Fit a roofline or a sum to a log of steps, by relative non-negative least squares."""
    from calibrate.fit.from_steps import FORMS, fit
    from slotstep.validation import provenance
    from traces.errors import BadInput
    from traces.reading import step_logs

    of = provenance.stated(about or (), out)
    if clock not in (None, "cpu", "wall"):
        raise BadInput(f"--clock {clock}: expected cpu or wall")
    if form not in FORMS:
        raise BadInput(f"--form {form}: expected {' or '.join(FORMS)}")
    read = step_logs.read(steps, clock)  # type: ignore[arg-type]  # it is one of the two
    try:
        found = fit(read, hold_out, form=form)
    except ValueError as error:
        raise BadInput(f"{steps}: {error}") from None
    if out is not None:
        residuals = {
            f"{part}_{key}": value for part, of_part in found.residuals.items() for key, value in of_part.items()
        }
        made = provenance.profile(
            found.cost,
            of,
            out.stem,
            method=f"relative non-negative least squares on {len(found.errors):,} steps of an engine's own log",
            source=f"a log of {len(read):,} steps",
            residuals={key: abs(value) for key, value in residuals.items()},
            range=text.visited(read),
            not_included=["what happens between steps and outside the engine"],
            details=text.confidence(found.intervals, found.identified.lines()),
        )
        text.save(made.text(), out)
    if as_json:
        print_json(
            {
                "cost": text.coefficients(found.cost),
                **text.confidence(found.intervals, found.identified.lines()),
                **found.residuals,
            }
        )
        return
    print(text.step_lines(found))
    show(text.coefficient_table(found.cost, found.intervals, found.identified))
