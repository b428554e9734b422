"""`slotstep calibrate measure` and `fit`: an engine's steps timed on this machine, and the profile made of them.

Answers go to standard output, all else to standard error, and heavy imports are inside, as in `slotstep.cli.app`.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from slotstep.cli.run.replay import Attention, DeviceName, DTypeName, Fraction, Weights

if TYPE_CHECKING:
    from calibrate.fit.fit_run import Fitted

Model = Annotated[str, typer.Option(metavar="NAME", help="A named model (tiny, llama-3.1-8b, ...) or a config.json.")]


SIZES = {False: (16, 256, 1024), True: (128, 2048, 8192)}
"""Rows and positions of the largest step, positions of the longest sequence: on a CPU, on a GPU."""


def register(app: typer.Typer) -> None:
    """Add the commands to the group `slotstep calibrate`."""
    app.command()(measure)
    app.command()(fit)


def measure(
    model: Model,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The record; a run that was stopped goes on in it.")
    ],
    seconds: Annotated[float, typer.Option(help="For everything after the engine is open.")] = 240.0,
    rounds: Annotated[int, typer.Option(min=1, help="Visits of every point, at most.")] = 5,
    extra: Annotated[
        int | None, typer.Option(min=0, help="Visits beyond the rounds, at most; as many as there is time for.")
    ] = None,
    slots: Annotated[int | None, typer.Option(min=1, help="Rows of the largest step; 16, on a GPU 128.")] = None,
    token_budget: Annotated[
        int | None, typer.Option(min=8, help="Positions of the largest step; 256 or 2048.")
    ] = None,
    longest: Annotated[int | None, typer.Option(min=64, help="Of the longest sequence; 1024 or 8192.")] = None,
    page_size: Annotated[
        list[int] | None,
        typer.Option(min=1, max=128, help="Positions in a page, or 16. Repeated: each into a folder in DIR."),
    ] = None,
    pages: Annotated[
        int | None, typer.Option(min=1, help="Of the cache; as many as fit and the steps can use.")
    ] = None,
    factor: Annotated[float, typer.Option(min=1.2, help="From one batch of the grid to the next.")] = 2.0,
    ragged: Annotated[int, typer.Option(min=1, help="Steps held out of the fit.")] = 16,
    device: DeviceName = "auto",
    dtype: DTypeName = None,
    attention: Attention = "auto",
    memory_fraction: Fraction = 0.9,
    weights: Weights = None,
    seed: Annotated[int, typer.Option(min=0, help="Of weights, orders and held-out steps.")] = 0,
) -> None:
    """Time an engine's steps on this machine: decodes, chunks, mixed and ragged ones, by every clock there is."""
    from calibrate.decoder.engine.options import EngineOptions
    from calibrate.decoder.engine.protocol import CannotRun
    from calibrate.measure.measure import Plan
    from calibrate.measure.model import measure_model, on_gpu
    from slotstep.runs.result import prepare
    from traces.errors import BadInput

    prepare(out)
    sizes = SIZES[on_gpu(device)]
    slots, token_budget, longest = slots or sizes[0], token_budget or sizes[1], longest or sizes[2]
    for size in page_size or [16]:
        folder = out if len(page_size or ()) < 2 else out / f"page-{size}"
        try:
            options = EngineOptions(
                device=device,
                dtype=dtype,
                attention=attention,
                page_size=size,
                pages=pages,
                memory_fraction=memory_fraction,
                slots=slots,
                token_budget=token_budget,
                max_model_len=longest,
                seed=seed,
                weights=weights,
            )
            plan = Plan(
                slots, token_budget, rounds, ragged=ragged, factor=factor, seconds=seconds, extra=extra, seed=seed
            )
            journal = measure_model(model, options, folder, plan, say)
        except (CannotRun, ValueError) as error:
            raise BadInput(str(error)) from None
        visits, skipped = journal.of("visit"), journal.of("skip")
        steps = len({line["name"] for line in visits})
        say(f"{len(visits)} visits of {steps} steps, {len(skipped)} skipped; in {folder}")


def fit(
    run: Annotated[Path, typer.Argument(help="The folder of a measurement.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE.yaml", help="Write the profile here.")],
    form: Annotated[Literal["table", "roofline"], typer.Option(help="Of the curve.")] = "table",
    clock: Annotated[
        Literal["device", "cpu", "wall"] | None, typer.Option(help="cpu where it was read, else wall, if not given.")
    ] = None,
    host: Annotated[str, typer.Option(metavar="DURATION", help="Added to every step for the host.")] = "0s",
) -> None:
    """Make a profile of a measurement, and say how far it is from every point and they from the floor."""
    from calibrate.fit.fit_run import fit as fitted
    from calibrate.measure.model import folder_of
    from calibrate.measure.run_log import read_about, read_lines
    from reports.files import write_text
    from slotstep.scenario import units
    from traces.errors import BadInput

    try:
        about, lines = read_about(folder_of(run)), read_lines(run)
        found = fitted(lines, about, form, clock)
        made = found.profile(about, out.stem, datetime.date.today().isoformat(), units.nanoseconds(host))
    except ValueError as error:
        raise BadInput(str(error)) from None
    write_text(out, made.text())
    for line in lines_of(found):
        print(line)
    say(f"written to {out}")


def lines_of(found: Fitted) -> list[str]:
    """How good a fit is, in words."""
    points = found.points
    lines = [f"{len(points)} steps, {int(points['n'].sum())} times, by {found.clock} time"]
    for kind in ("decode", "chunk", "mixed", "uneven", "held_out"):
        if f"{kind}_n" in found.residuals:
            mean, most = found.residuals[f"{kind}_mean"], found.residuals[f"{kind}_max"]
            lines.append(
                f"{kind:<9} {found.residuals[f'{kind}_n']:>3} steps, off by {mean:.1%} on average, {most:.1%} at most"
            )
    known = points["over_floor"].dropna()
    if len(known):
        lines.append(
            f"floor     steps take {known.median():.2f} times the least possible (median), {known.min():.2f} at best"
        )
    lines.append(f"drift     {found.drift.verdict}")
    if found.contention is not None:
        lines.append(f"host      steps took {found.contention:.2f} times as long as their thread worked (median)")
    return lines + [f"skipped   {line}" for line in found.skipped]


def say(words: str) -> None:
    """A remark on standard error."""
    print(words, file=sys.stderr, flush=True)
