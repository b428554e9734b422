"""A profile of a model on a measured system, from the package's tables."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from calibrate.compose.compose import EVEN, HOST
from calibrate.database.compose import Extent, compose
from calibrate.database.models import Model, found
from calibrate.database.package import NAME, installed, resolved_version, sdk
from calibrate.database.request import Opened, Request, opened, parsed, settings
from calibrate.hardware.memory_plan import capacity
from calibrate.models.architecture import BYTES
from calibrate.profiles.profile import Profile, profile

SAMPLER = 1
"""Rises with every change of what is sampled or composed."""
TOKENS = 16384
"""Tokens of the largest step that is sampled."""
UTILIZATION = 0.9
METHOD = (
    "Whole steps composed of operators that aiconfigurator measured on this system: what depends on tokens at every "
    "whole number, attention by decodes and context and by chunk and start. Residuals are of random steps against "
    "its own sums: mean, median, 99th percentile. Where a sum falls with more work the profile does not."
)


def identity(request: Request) -> str:
    """What the profile of a request depends on, as hex: of the package, of the model's config, of the sampler.

    Raises ValueError as `from_database` does before it samples.
    """
    version = resolved_version(request.system, request.backend, request.version)
    with model_of(request) as model:
        parts = [SAMPLER, installed(), version, model.digest, settings(request) | {"version": version}]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def model_of(request: Request) -> Any:
    """The model of a request, as a context."""
    installed()
    return found(request.model, sdk("common").DefaultHFModels, lambda path: parsed(path)["raw_config"])


def from_database(request: Request, *, name: str, date: str) -> Profile:
    """The profile of a request.

    Raises ValueError, one line, for a package that is missing, a model, system, backend or version that it does not
    have, tables that were not measured, and a model that does not fit.
    """
    version = resolved_version(request.system, request.backend, request.version)
    with model_of(request) as model:
        tables = opened(request, model, version)
        longest = int(parsed(model.path)["context"])
    memory = int(sdk("perf_database").load_system_spec(request.system)["gpu"]["mem_capacity"])
    positions = positions_that_fit(model, tables, request, memory)
    extent = Extent(TOKENS, min(longest, 131072), positions or 64 * longest)
    made = compose(tables.steps, extent)
    return profile(
        {"table": made.content},
        name=name,
        device=request.system,
        memory=memory,
        model=model.architecture.described() if model.architecture else {"name": model.name},
        dtype=tables.modes["gemm"],
        tensor_parallel=request.tensor_parallel,
        software={request.backend: version, NAME: installed()},
        date=date,
        method=METHOD,
        residuals=made.residuals,
        range=made.range,
        source=f"ai-dynamo/aiconfigurator, PyPI {NAME} {installed()}, {request.system}, {request.backend} {version}",
        licence="Apache-2.0",
        not_included=[*HOST, "kernel launches", EVEN, *omitted(request, tables, model)],
        details={
            "request": settings(request),
            "quantisation": dict(tables.modes),
            "kv_dtype": tables.modes["kv"],
            "weights": round(tables.weights),
            "devices": request.devices,
            "experts": {"tensor_parallel": tables.experts[0], "expert_parallel": tables.experts[1]},
            "not_measured": sorted(key for key, source in tables.steps.sources.items() if source == "empirical"),
            "sampler": SAMPLER,
        },
    )


def positions_that_fit(model: Model, tables: Opened, request: Request, memory: int) -> int | None:
    """Positions of the KV cache on a device by the memory plan; None where its bytes are not known.

    Raises ValueError for weights that do not fit.
    """
    if model.architecture is None or tables.modes["kv"] not in BYTES:
        if tables.weights > UTILIZATION * memory:
            raise ValueError(
                f"{model.name} does not fit: {tables.weights / 2**30:.1f} GiB of weights on each of "
                f"{request.devices} devices of {memory / 2**30:.1f} GiB; give it more of them"
            )
        return None
    plan = capacity(
        model.architecture,
        memory,
        dtype="bfloat16",
        kv_dtype=tables.modes["kv"],
        tensor_parallel=request.tensor_parallel,
        weights=tables.weights,
    )
    return plan.pages * 16 * request.pipeline_parallel


def omitted(request: Request, tables: Opened, model: Model) -> list[str]:
    """What besides is not in the profile of this request."""
    found = []
    if request.data_parallel > 1:
        found.append(
            f"waiting for the slowest of {request.data_parallel} data-parallel ranks: all have the same load"
        )
    if request.pipeline_parallel > 1:
        found.append("overlap of the pipeline's stages: a step passes all of them")
    if tables.steps.shares_projections:
        found.append("projections of the decodes beside a chunk, which its own are taken to include")
    if reason := uncertain(model):
        found.append(f"a certain number of pages: {reason}")
    return found


def uncertain(model: Model) -> str:
    """Why the number of pages that the memory plan finds is uncertain; empty: it is not."""
    sizes = model.architecture
    if sizes is None:
        return "the KV cache of its layers is not counted here; give engine.pages"
    if sizes.experts:
        return "what a mixture keeps beside its weights (dispatch buffers, other layouts) is not counted"
    return ""


def with_prompt_factor(made: Profile, factor: float) -> Profile:
    """The profile with the kernels of every step that computes any prompt taking so many times as long.

    Kernels are measured alone, in short bursts: in a server that computes prompts all the time they take longer, by a
    factor that is to be fitted (docs/silicon.md). Raises ValueError for a factor below 1.
    """
    if factor < 1:
        raise ValueError(f"prompt_factor is {factor:g}; expected at least 1")
    if factor == 1:
        return made
    given = made.content["curve"]["table"]
    dense = {**given["dense"], "ns": [each * factor for each in given["dense"]["ns"]]}
    chunk = {**given["chunk"], "ns": [[each * factor for each in row] for row in given["chunk"]["ns"]]}
    curve = {
        "decode_dense": given["dense"],
        **given,
        "dense": dense,
        "chunk": chunk,
        "launch": given["launch"] * factor,
    }
    details = {**(made.content.get("details") or {}), "prompt_factor": factor}
    return Profile(made.name, {**made.content, "curve": {"table": curve}, "details": details})
