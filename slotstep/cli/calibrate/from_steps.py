"""`slotstep calibrate from-steps`: step costs from the steps that an engine logged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slotstep.cli.calibrate import step_source, text
from slotstep.cli.output import print_json, show
from slotstep.cli.params import About, AsJson, OptionalProfileFile


def from_steps(
    steps: Annotated[
        Path | None, typer.Argument(help="The log of steps: CSV, parquet, JSON lines, or forward-pass metrics.")
    ] = None,
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
    prefill_kv: Annotated[
        str | None,
        typer.Option(
            metavar="before|after",
            help="Of forward-pass metrics: sum_prefill_kv_tokens is what was cached before a step, or after it; "
            "found from the records if not given.",
        ),
    ] = None,
    live: Annotated[
        list[str] | None,
        typer.Option(metavar="tcp://HOST:PORT", help="Read forward-pass metrics from a socket. May be repeated."),
    ] = None,
    records: Annotated[int, typer.Option(min=1, help="Most records to read from sockets.")] = 2000,
    within: Annotated[str, typer.Option(metavar="DURATION", help="How long to read from sockets.")] = "60s",
    keep: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Write the records that came from sockets here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit a roofline or a sum to a log of steps, by relative non-negative least squares."""
    from calibrate.fit.from_steps import FORMS, fit
    from slotstep.validation import provenance
    from traces.errors import BadInput

    of = provenance.stated(about or (), out)
    if form not in FORMS:
        raise BadInput(f"--form {form}: expected {' or '.join(FORMS)}")
    source = step_source.StepSource(steps, clock, prefill_kv, tuple(live or ()), records, within, keep)
    read = source.read()
    try:
        found = fit(read, hold_out, form=form)
    except ValueError as error:
        raise BadInput(f"{source.name}: {error}") from None
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
            uncertainty=text.uncertainty(found.cost, found.intervals, found.covariance),
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
