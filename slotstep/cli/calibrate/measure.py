"""`slotstep calibrate measure`: an engine's steps timed on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slotstep.cli.output import say
from slotstep.cli.params import Attention, Device, EngineDType, MemoryFraction, Weights

SIZES = {False: (16, 256, 1024), True: (128, 2048, 8192)}
"""Rows and positions of the largest step, positions of the longest sequence: on a CPU, on a GPU."""


def measure(
    model: Annotated[
        str, typer.Option(metavar="NAME", help="A named model (tiny, llama-3.1-8b, ...) or a config.json.")
    ],
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
    device: Device = "auto",
    dtype: EngineDType = None,
    attention: Attention = "auto",
    memory_fraction: MemoryFraction = 0.9,
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
