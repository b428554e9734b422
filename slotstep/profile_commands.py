"""`slotstep profiles`: the step costs that come with slotstep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from calibrate.profile import Profile


def profiles(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with their content.")] = False,
) -> None:
    """List the step costs that come with slotstep: of which model on which device, how good, from where."""
    from calibrate.profile import named, shipped

    listed = [named(name) for name in shipped()]
    if as_json:
        content = [{"name": each.name, "sha256": each.sha256, **each.content} for each in listed]
        print(json.dumps({"profiles": content}, indent=2, ensure_ascii=False))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Column, Table

    whole = [Column(name, no_wrap=True) for name in ("profile", "content")]
    table = Table(whole[0], "device", "model", "mean error", whole[1], box=box.SIMPLE)
    for each in listed:
        table.add_row(each.name, each.content["device"], model(each), error(each), each.sha256[:12])
    Console().print(table)


def model(profile: Profile) -> str:
    """The model with its number type and how many devices share it."""
    content = profile.content
    parts = [content["model"]["name"], content["dtype"], f"TP{content['tensor_parallel']}"]
    return ", ".join(parts)


def error(profile: Profile) -> str:
    """The mean residuals in words."""
    residuals: Mapping[str, Any] = profile.content["residuals"] or {}
    means = {key.removesuffix("_mean"): value for key, value in residuals.items() if key.endswith("_mean")}
    return ", ".join(f"{key.replace('_', ' ')} {value:.1%}" for key, value in means.items()) or "-"
