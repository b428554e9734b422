"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sim import kernel

ScenarioFile = Annotated[Path, typer.Argument(help="The scenario, a YAML file.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as in engine.slots=8. May be repeated."),
]
PolicyName = Annotated[
    str | None, typer.Option("--policy", metavar="NAME", help="Run under this policy instead of the scenario's.")
]
RequestsFile = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        help="Read the requests from FILE instead, in the format of the scenario's trace, or found out if "
        "its workload is none; the workload's scale_rate, first, between and max_output still apply.",
    ),
]
OutFolder = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Write summary, tables, resolved scenario and figures here."),
]
BundleFile = Annotated[
    Path | None,
    typer.Option(
        "--bundle",
        metavar="FILE.zip",
        help="Write scenarios, digests of inputs, environment and results here, for slotstep reproduce.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, help="Runs at once; as many as there are cores.")]
Yes = Annotated[bool, typer.Option("--yes", help="Run it however large it is; the limits are in docs/scenario.md.")]


def choose_kernel(choice: kernel.Choice | None) -> None:
    """Choose the kernel before a command imports it. Raises `sim.kernel.KernelError` if it cannot be had."""
    if choice is not None:
        kernel.choose(choice)


Kernel = Annotated[
    Literal["auto", "python", "compiled"] | None,
    typer.Option(
        "--kernel",
        callback=choose_kernel,
        is_eager=True,
        help="What simulates: Python, or its compiled modules, faster and with the same log; "
        "auto, or SLOTSTEP_KERNEL, if not given.",
    ),
]

EngineModel = Annotated[
    str,
    typer.Option(
        "--model", metavar="NAME", help="A named model (tiny, llama-3.1-8b, ...), a config.json, or synthetic."
    ),
]
Device = Annotated[
    Literal["auto", "cpu", "cuda"],
    typer.Option("--device", help="Where it runs; auto: a GPU if there is one."),
]
EngineDType = Annotated[
    Literal["float32", "bfloat16", "float16"] | None,
    typer.Option("--dtype", help="Of weights and cache; the model's own, if not given, and float32 on a CPU."),
]
Attention = Annotated[
    Literal["auto", "torch", "triton", "flashinfer"], typer.Option("--attention", help="The attention backend.")
]
MemoryFraction = Annotated[float, typer.Option("--memory-fraction", help="Most of the device's memory that is used.")]
Weights = Annotated[
    Path | None,
    typer.Option("--weights", metavar="DIR", help="A folder with safetensors; random weights if not given."),
]

ModelShape = Annotated[str, typer.Option("--model", metavar="NAME|FILE", help="A model's name, or its config.json.")]
DeviceSheet = Annotated[
    str,
    typer.Option("--device", metavar="NAME|NUMBERS", help="A device's name, or memory=...,bandwidth=...,rate=..."),
]
DType = Annotated[
    str | None,
    typer.Option("--dtype", help="Of the weights: float32, bfloat16, float16, fp8, int8; as published if not given."),
]
KvDType = Annotated[
    str | None,
    typer.Option("--kv-dtype", help="Of the KV cache; as the weights, or bfloat16 if these have 8 bits."),
]
Utilization = Annotated[float, typer.Option("--utilization", help="Share of the memory that the engine may use.")]
TensorParallel = Annotated[int, typer.Option("--tensor-parallel", min=1, help="Devices that share the model.")]
ProfileFile = Annotated[Path, typer.Option("--out", metavar="FILE.yaml", help="Write the profile here.")]
OptionalProfileFile = Annotated[
    Path | None, typer.Option("--out", metavar="FILE.yaml", help="Write the profile here.")
]
About = Annotated[
    list[str] | None,
    typer.Option("--about", metavar="KEY=VALUE", help="What the profile is of, as in device=H100. May be repeated."),
]
Prompts = Annotated[
    int | None,
    typer.Option(
        "--prompts",
        metavar="N",
        min=1,
        help="The client sent the same N prompts in turn; the engine's prefix cache may find one sent before.",
    ),
]

TraceFile = Annotated[Path, typer.Argument(help="The trace: plain, gzip or zstd.")]
TraceFormat = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="The file's format; found out by its content if not given."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="ROLE=COLUMN", help="Which column is what, as in arrival=ts:ms. May be repeated."),
]
RunName = Annotated[str | None, typer.Option("--run", metavar="NAME", help="One of several runs in the file.")]
TargetFile = Annotated[Path, typer.Argument(help="The file to write.")]
TargetFormat = Annotated[
    str | None,
    typer.Option("--to", metavar="NAME", help="parquet, vidur, mooncake or tracev2; by OUT's ending if not given."),
]


def permitted(settings: Sequence[str] | None, yes: bool) -> list[str]:
    """The overrides of `--set`, and `allow_large=true` if `--yes` was given."""
    return [*(settings or ()), *(["allow_large=true"] if yes else ())]


def engine_options(
    device: str, dtype: str | None, attention: str, memory_fraction: float, weights: Path | None
) -> dict[str, Any]:
    """The options of a real engine by the names of `EngineOptions`."""
    return {
        "device": device,
        "dtype": dtype,
        "attention": attention,
        "memory_fraction": memory_fraction,
        "weights": weights,
    }


def listed(option: str, given: str | None) -> tuple[str, ...]:
    """The names of a comma-separated list; raises BadInput for an empty or a repeated one."""
    from traces.errors import BadInput

    names = tuple(name.strip() for name in given.split(",")) if given is not None else ()
    if not all(names) or len(set(names)) < len(names):
        raise BadInput(f"{option} {given}: expected different names separated by commas")
    return names


def numbers(option: str, given: str | None) -> tuple[int, ...]:
    """The whole numbers of a comma-separated list; raises BadInput for anything else."""
    from traces.errors import BadInput

    try:
        found = tuple(int(name) for name in listed(option, given))
    except ValueError:
        found = (0,)
    if any(number < 1 for number in found):
        raise BadInput(f"{option} {given}: expected whole numbers of at least 1 separated by commas")
    return found
