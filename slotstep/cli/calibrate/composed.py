"""`slotstep calibrate from-operators` and `from-shapes`, `slotstep pages`: what is known without a run of the engine.

Answers go to standard output, all else to standard error, and heavy imports are inside, as in `slotstep.cli.app`.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from calibrate.profiles.profile import Profile

Out = Annotated[Path, typer.Option("--out", metavar="FILE.yaml", help="Write the profile here.")]
About = Annotated[
    list[str] | None,
    typer.Option("--about", metavar="KEY=VALUE", help="What the profile is of, as in device=H100. May be repeated."),
]
Model = Annotated[str, typer.Option("--model", metavar="NAME|FILE", help="A model's name, or its config.json.")]
DeviceName = Annotated[
    str,
    typer.Option("--device", metavar="NAME|NUMBERS", help="A device's name, or memory=...,bandwidth=...,rate=..."),
]
DType = Annotated[
    str | None, typer.Option(help="Of the weights: float32, bfloat16, float16, fp8, int8; as published if not given.")
]
KvDType = Annotated[
    str | None, typer.Option(help="Of the KV cache; as the weights, or bfloat16 if these have 8 bits.")
]
Utilization = Annotated[float, typer.Option(help="Share of the memory that the engine may use.")]
Devices = Annotated[int, typer.Option("--tensor-parallel", min=1, help="Devices that share the model.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the group `slotstep calibrate`."""
    app.command()(from_operators)
    app.command()(from_shapes)


def from_operators(
    folder: Annotated[Path, typer.Argument(help="A folder of operator tables, LLMServingSim's or Vidur's.")],
    model: Model,
    out: Out,
    about: About = None,
    tensor_parallel: Devices = 1,
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
        said = {key: value for key, value in provenance.said(of, out).items() if key != "model"}
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
    write(made, out)


def from_shapes(
    model: Model,
    device: DeviceName,
    out: Out,
    tensor_parallel: Devices = 1,
    dtype: DType = None,
    kv_dtype: KvDType = None,
    efficiency: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=SHARE", help="weights, cache, arithmetic, attention, link. May be repeated."),
    ] = None,
    context: Annotated[
        float | None, typer.Option(help="Mean cached positions of a sequence; a model with a window needs it.")
    ] = None,
    host: Annotated[str, typer.Option(metavar="DURATION", help="What the host does between steps.")] = "0",
    utilization: Utilization = 0.9,
) -> None:
    """Make a profile from a model's shape and a device's data sheet alone."""
    from calibrate.hardware.devices import device as known
    from calibrate.models.registry import architecture
    from calibrate.profiles.analytic import Efficiency
    from calibrate.profiles.analytic import from_shapes as make
    from slotstep.scenario import document
    from slotstep.scenario.units import coefficient
    from traces.errors import BadInput, known_keys

    shares: dict[str, Any] = {}
    document.override(shares, efficiency or ())
    known_keys(shares, Efficiency.__dataclass_fields__, "--efficiency ")
    try:
        made = make(
            architecture(model),
            known(device),
            name=out.stem,
            date=datetime.date.today().isoformat(),
            dtype=dtype,
            kv_dtype=kv_dtype,
            tensor_parallel=tensor_parallel,
            efficiency=Efficiency(**shares),
            context=context,
            host_ns=coefficient(host),
            utilization=utilization,
        )
    except (ValueError, TypeError) as error:
        raise BadInput(str(error)) from None
    write(made, out)


def pages(
    model: Model,
    device: DeviceName,
    tensor_parallel: Devices = 1,
    dtype: DType = None,
    kv_dtype: KvDType = None,
    utilization: Utilization = 0.9,
    page_size: Annotated[int, typer.Option(min=1, help="Token positions in a page.")] = 16,
    token_budget: Annotated[int, typer.Option(min=1, help="Most tokens of one step.")] = 2048,
    slots: Annotated[int, typer.Option(min=1, help="Most sequences at once.")] = 256,
    graphs: Annotated[str, typer.Option(metavar="MEMORY", help="For captured graphs, as in 1GiB.")] = "0GiB",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")] = False,
) -> None:
    """Say how many pages of KV cache fit beside a model: what to give a scenario as engine.pages."""
    import json
    from dataclasses import asdict

    from calibrate.hardware.devices import GIB
    from calibrate.hardware.devices import device as known
    from calibrate.hardware.memory_plan import capacity
    from calibrate.models.registry import architecture
    from slotstep.scenario.units import gibibytes, memory
    from traces.errors import BadInput

    try:
        kept = float(gibibytes(memory(graphs))) * GIB if graphs != "0GiB" else 0.0
        found = capacity(
            architecture(model),
            known(device).memory,
            dtype=dtype,
            kv_dtype=kv_dtype,
            utilization=utilization,
            tensor_parallel=tensor_parallel,
            page_size=page_size,
            token_budget=token_budget,
            slots=slots,
            graphs=kept,
        )
    except ValueError as error:
        raise BadInput(str(error)) from None
    if as_json:
        print(json.dumps(asdict(found), indent=2))
        return
    for name, amount in asdict(found).items():
        if name not in ("pages", "page_bytes"):
            print(f"{name:<12}{amount / GIB:8.2f} GiB")
    print(f"{'page':<12}{found.page_bytes / 2**20:8.3f} MiB")
    print(f"engine.pages: {found.pages}   # {found.pages * page_size:,} token positions")


def write(made: Profile, out: Path) -> None:
    """Write a profile, whole or not at all, and say its residuals and its content."""
    from reports.files import write_text
    from slotstep.cli.calibrate.profiles import error

    write_text(out, made.text())
    print(f"{out}: {made.kind}, content {made.sha256[:12]}; mean error {error(made)}")
