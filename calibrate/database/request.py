"""What a profile is asked for, and the engine of the package that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from calibrate.database.models import Model
from calibrate.database.package import one_of, sdk
from calibrate.database.steps import DatabaseSteps

QUANTISATIONS = {
    "gemm": "GEMMQuantMode",
    "moe": "MoEQuantMode",
    "kv": "KVCacheQuantMode",
    "attention": "FMHAQuantMode",
}
"""What may be quantised, and the package's names of how."""


@dataclass(frozen=True)
class Request:
    """A model on a system, an engine, and how its devices share it.

    version   of the backend; None: the current one of the package
    tensor_parallel, pipeline_parallel, data_parallel   of attention
    moe_tensor_parallel, expert_parallel   of the experts; None: what is left of the devices, and where both are, each
                                           expert shared by all or, if that was not measured, experts divided
    gemm, moe, kv, attention   quantisations by the package's names; None: as the model is published
    """

    model: str
    system: str
    backend: str
    version: str | None = None
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    moe_tensor_parallel: int | None = None
    expert_parallel: int | None = None
    gemm: str | None = None
    moe: str | None = None
    kv: str | None = None
    attention: str | None = None

    @property
    def devices(self) -> int:
        """Devices of all ranks."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel

    def layouts(self, experts: int) -> list[tuple[int, int]]:
        """(tensor-parallel, expert-parallel) of the experts, in the order in which they are tried; (1, 1) if dense.

        Raises ValueError for numbers whose product is not the devices of a stage.
        """
        if not experts:
            return [(1, 1)]
        wide = self.tensor_parallel * self.data_parallel
        shared, divided = self.moe_tensor_parallel, self.expert_parallel
        if shared is None and divided is None:
            both = [(wide, 1), (1, wide)]
            return both if self.data_parallel == 1 else both[::-1]
        found = (shared or wide // (divided or 1), divided or wide // (shared or 1))
        if found[0] * found[1] != wide:
            raise ValueError(
                f"moe_tensor_parallel x expert_parallel is {found[0]} x {found[1]}; expected {wide}, as "
                "tensor_parallel x data_parallel"
            )
        return [found]


@dataclass(frozen=True)
class Opened:
    """The steps of a request, and what the package says of the model in it.

    weights   bytes on a device
    modes     quantisations by name, as resolved
    experts   (tensor-parallel, expert-parallel)
    """

    steps: DatabaseSteps
    weights: float
    modes: Mapping[str, str]
    experts: tuple[int, int]


def opened(request: Request, model: Model, version: str) -> Opened:
    """The engine of a request. Raises ValueError, one line that names what was measured, where tables are missing.

    Where the attention of prompts was not measured in the model's own quantisation, it is taken in 16 bits, as the
    package's own command does.
    """
    common = sdk("common")
    for key, kind in QUANTISATIONS.items():
        given = getattr(request, key)
        if given is not None:
            one_of(key, given, [mode.name for mode in getattr(common, kind)], "its names")
    layouts = request.layouts(int(parsed(model.path)["num_experts"] or 0))
    refusals = []
    for attention in dict.fromkeys((request.attention, request.attention or "bfloat16")):
        for experts in layouts:
            try:
                return tried(request, model, version, experts, attention)
            except Exception as error:  # the package raises its own, Rust's and plain ones
                refusals.append(" ".join(str(error).split()))
    raise ValueError(
        f"{model.name} with {request.backend} {version} on {request.system}: {brief(refusals[0])}; measured there: "
        f"{measured(request.system, request.backend, version)}"
    )


def tried(request: Request, model: Model, version: str, experts: tuple[int, int], attention: str | None) -> Opened:
    """The engine with this quantisation of attention; raises whatever the package raises."""
    import aiconfigurator_core

    modes = {
        "gemm_quant_mode": request.gemm,
        "moe_quant_mode": request.moe,
        "kvcache_quant_mode": request.kv,
        "fmha_quant_mode": attention,
    }
    sizes = {
        "tp_size": request.tensor_parallel,
        "pp_size": request.pipeline_parallel,
        "attention_dp_size": request.data_parallel,
        "moe_tp_size": experts[0],
        "moe_ep_size": experts[1],
    }
    built = sdk("models").get_model(
        model.path, sdk("config_builders").build_model_config(**sizes, **modes), request.backend
    )
    compiled = sdk("engine").compile_engine(model.path, request.system, request.backend, version, **sizes, **modes)
    steps = DatabaseSteps(aiconfigurator_core.AicEngine.from_spec(compiled))
    config = built.config
    return Opened(
        steps,
        sum(operator.get_weights() for operator in built.context_ops) / request.pipeline_parallel,
        {
            "gemm": config.gemm_quant_mode.name,
            "moe": config.moe_quant_mode.name,
            "kv": config.kvcache_quant_mode.name,
            "attention": config.fmha_quant_mode.name,
        },
        experts,
    )


def parsed(path: str) -> dict[str, Any]:
    """The package's reading of a model's config; raises ValueError for an architecture that it does not have."""
    try:
        found: dict[str, Any] = sdk("utils").get_model_config_from_model_path(path)
    except (ValueError, KeyError, OSError) as error:
        raise ValueError(f"model {path}: aiconfigurator-core cannot read it: {brief(str(error))}") from None
    return found


def measured(system: str, backend: str, version: str) -> str:
    """The quantisations that were measured, for a message."""
    known = sdk("perf_database").get_database(system, backend, version).supported_quant_mode
    parts = {"gemm": "gemm", "moe": "moe", "kv": "generation_attention"}
    return "; ".join(f"{name} {', '.join(known[key]) or 'none'}" for name, key in parts.items())


def settings(request: Request) -> dict[str, Any]:
    """What was asked for, without what was left open."""
    return {key: value for key, value in asdict(request).items() if value is not None}


def brief(text: str) -> str:
    """A message of the package without its paths and its advice, at most 160 characters."""
    short = text.split(" at /")[0].split(": tried ")[0].split(", which ")[0].removeprefix("perf database error: ")
    return short if len(short) <= 160 else f"{short[:157]}..."
