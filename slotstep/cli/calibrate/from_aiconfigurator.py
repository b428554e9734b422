"""`slotstep calibrate from-aiconfigurator`: a profile of measured operators that another project keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from slotstep.cli.calibrate.text import write_profile
from slotstep.cli.output import say
from slotstep.cli.params import ProfileFile

if TYPE_CHECKING:
    from calibrate.profiles.profile import Profile


def from_aiconfigurator(
    model: Annotated[str, typer.Argument(help="A model's name, or a folder with its config.json.")],
    out: ProfileFile,
    system: Annotated[str, typer.Option(metavar="NAME", help="The measured system, as in h100_sxm.")],
    backend: Annotated[str, typer.Option(metavar="NAME", help="The measured engine: vllm, sglang or trtllm.")],
    version: Annotated[
        str | None, typer.Option(help="Of the engine; the current one of the tables, if not given.")
    ] = None,
    tensor_parallel: Annotated[
        int, typer.Option("--tensor-parallel", "--tp", min=1, help="Devices that share the attention of a layer.")
    ] = 1,
    pipeline_parallel: Annotated[int, typer.Option(min=1, help="Stages of layers.")] = 1,
    data_parallel: Annotated[
        int, typer.Option(min=1, help="Ranks of attention; the profile is of one, all equally loaded.")
    ] = 1,
    moe_tensor_parallel: Annotated[int | None, typer.Option(min=1, help="Devices that share an expert.")] = None,
    expert_parallel: Annotated[int | None, typer.Option(min=1, help="Devices that divide the experts.")] = None,
    gemm: Annotated[str | None, typer.Option(metavar="MODE", help="Of matrix products, as in fp8.")] = None,
    moe: Annotated[str | None, typer.Option(metavar="MODE", help="Of the experts.")] = None,
    kv: Annotated[str | None, typer.Option(metavar="MODE", help="Of the KV cache.")] = None,
    attention: Annotated[str | None, typer.Option(metavar="MODE", help="Of the attention of prompts.")] = None,
    prompt_factor: Annotated[
        float, typer.Option(min=1.0, help="Times that the kernels of a step with a prompt take; see docs/silicon.md.")
    ] = 1.0,
) -> None:
    """Compose whole steps of the measured operators in the package aiconfigurator-core."""
    from calibrate.database.profile import with_prompt_factor
    from calibrate.database.request import Request
    from slotstep.runs.profiles import of_database
    from traces.errors import BadInput

    request = Request(
        model, system, backend, version, tensor_parallel, pipeline_parallel, data_parallel, moe_tensor_parallel,
        expert_parallel, gemm, moe, kv, attention,
    )  # fmt: skip
    try:
        made = with_prompt_factor(of_database(request, out.stem), prompt_factor)
    except ValueError as error:
        raise BadInput(str(error)) from None
    write_profile(made, out)
    print(of(made))
    for each in made.content["not_included"]:
        if each.startswith("a certain number of pages"):
            say(f"pages are uncertain: {each.partition(': ')[2]}")


def of(made: Profile) -> str:
    """What the profile is of, and how near its steps are to those of the database, on a line each."""
    content, residuals = made.content, made.content["residuals"]
    quantised = ", ".join(f"{key} {mode}" for key, mode in content["details"]["quantisation"].items())
    kinds = [kind for kind in ("decode", "prefill", "mixed") if f"{kind}_median" in residuals]
    near = ", ".join(f"{kind} {residuals[f'{kind}_median']:.1%} and {residuals[f'{kind}_p99']:.1%}" for kind in kinds)
    software = ", ".join(f"{name} {version}" for name, version in content["software"].items())
    experts = content["details"]["experts"]
    if content["model"].get("experts") or experts["tensor_parallel"] * experts["expert_parallel"] > 1:
        quantised += (
            f"; experts on {experts['tensor_parallel']} x {experts['expert_parallel']} devices (shared x divided)"
        )
    return f"{software}; {quantised}\nmedian and 99th percentile of errors against direct queries: {near}"
