"""`slotstep pages`: how many pages of KV cache fit beside a model."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from slotstep.cli.params import AsJson, DeviceSheet, DType, KvDType, ModelShape, TensorParallel, Utilization


def pages(
    model: ModelShape,
    device: DeviceSheet,
    tensor_parallel: TensorParallel = 1,
    dtype: DType = None,
    kv_dtype: KvDType = None,
    utilization: Utilization = 0.9,
    page_size: Annotated[int, typer.Option(min=1, help="Token positions in a page.")] = 16,
    token_budget: Annotated[int, typer.Option(min=1, help="Most tokens of one step.")] = 2048,
    slots: Annotated[int, typer.Option(min=1, help="Most sequences at once.")] = 256,
    graphs: Annotated[str, typer.Option(metavar="MEMORY", help="For captured graphs, as in 1GiB.")] = "0GiB",
    as_json: AsJson = False,
) -> None:
    """Say how many pages of KV cache fit beside a model: what to give a scenario as engine.pages."""
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
