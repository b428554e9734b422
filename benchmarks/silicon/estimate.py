"""The package's own estimate of a row, and shapes': what the simulation is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.silicon.loop import simulated
from benchmarks.silicon.rows import Row
from calibrate.database.models import found
from calibrate.database.package import resolved_version, sdk
from calibrate.database.request import parsed
from calibrate.hardware.devices import DEVICES

DEVICE = {"h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200"}
"""Our data sheets of the rows' systems."""
DTYPE = {"fp8": "fp8", "bf16": "bfloat16"}
"""Of the rows' precisions, those that shapes know."""


def own(row: Row, details: Mapping[str, Any]) -> tuple[float, float]:
    """(TTFT, TPOT) in seconds that the package estimates: one mixed and one decode step, and a factor for queueing.

    As its command `estimate` in mode `agg`: as many requests as clients, tokens of one prompt in a mixed step.
    `details`: of the row's profile, for the layout of the experts and the quantisation of attention. Raises what the
    package raises.
    """
    request = row.request()
    version = resolved_version(request.system, request.backend, None)
    modes = {"gemm_quant_mode": request.gemm, "moe_quant_mode": request.moe, "kvcache_quant_mode": request.kv}
    modes["fmha_quant_mode"] = details["quantisation"]["attention"]
    sizes: dict[str, Any] = {
        "tp_size": request.tensor_parallel,
        "pp_size": request.pipeline_parallel,
        "attention_dp_size": request.data_parallel,
        "moe_tp_size": details["experts"]["tensor_parallel"],
        "moe_ep_size": details["experts"]["expert_parallel"],
    }
    with found(request.model, sdk("common").DefaultHFModels, lambda path: parsed(path)["raw_config"]) as model:
        built = sdk("models").get_model(
            model.path, sdk("config_builders").build_model_config(**sizes, **modes), request.backend
        )
        tables = sdk("perf_database").get_database(request.system, request.backend, version)
        wanted = sdk("config").RuntimeConfig(batch_size=row.clients, isl=row.prompt, osl=row.output)
        backend = sdk("backends.factory").get_backend(request.backend)
        summary = backend.run_agg(built, tables, wanted, ctx_tokens=row.prompt).get_result_dict()
    return float(summary["ttft"]) / 1e3, float(summary["tpot"]) / 1e3


def from_shapes(row: Row) -> tuple[float, float] | None:
    """(TTFT, TPOT) in seconds of a simulation from shapes alone; None for what shapes do not know."""
    device, dtype = DEVICE.get(row.system), DTYPE.get(row.precision)
    if device not in DEVICES or dtype is None or not row.dense:
        return None
    shape = {"model": row.request().model, "device": device, "dtype": dtype, "kv_dtype": "fp8"}
    return simulated(row, {"shape": shape | {"tensor_parallel": row.tensor_parallel}})
