"""`slotstep calibrate from-shapes`: a profile from a model's shape and a device's data sheet."""

from __future__ import annotations

import datetime
from typing import Annotated, Any

import typer

from slotstep.cli.calibrate.text import write_profile
from slotstep.cli.params import DeviceSheet, DType, KvDType, ModelShape, ProfileFile, TensorParallel, Utilization


def from_shapes(
    model: ModelShape,
    device: DeviceSheet,
    out: ProfileFile,
    tensor_parallel: TensorParallel = 1,
    dtype: DType = None,
    kv_dtype: KvDType = None,
    efficiency: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=SHARE", help="weights, cache, arithmetic, attention, link. May be repeated."),
    ] = None,
    context: Annotated[
        float | None, typer.Option(help="Mean cached positions of a sequence; a model with a window needs it.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="The engine whose host time is included: vllm, sglang or trtllm.")
    ] = "vllm",
    engine_version: Annotated[
        str | None, typer.Option(metavar="X.Y.Z", help="Its version; a current one if not given.")
    ] = None,
    scheduling: Annotated[
        str | None, typer.Option(help="asynchronous or synchronous; the default of the version if not given.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Host time of a step, in place of the engine's likely one.")
    ] = None,
    utilization: Utilization = 0.9,
) -> None:
    """Make a profile from a model's shape and a device's data sheet alone."""
    from calibrate.hardware.attained import Efficiency
    from calibrate.hardware.devices import device as known
    from calibrate.models.registry import architecture
    from calibrate.profiles.analytic import from_shapes as make
    from calibrate.profiles.host_time import host_time
    from slotstep.scenario import document
    from slotstep.scenario.units import coefficient
    from traces.errors import BadInput, known_keys

    shares: dict[str, Any] = {}
    document.override(shares, efficiency or ())
    known_keys(shares, Efficiency.__dataclass_fields__, "--efficiency ")
    try:
        times = host_time(engine, engine_version, scheduling)
        made = make(
            architecture(model),
            known(device),
            name=out.stem,
            date=datetime.date.today().isoformat(),
            dtype=dtype,
            kv_dtype=kv_dtype,
            tensor_parallel=tensor_parallel,
            given=shares,
            context=context,
            host=times if host is None else times.at(coefficient(host)),
            utilization=utilization,
        )
    except (ValueError, TypeError) as error:
        raise BadInput(str(error)) from None
    write_profile(made, out)
