"""`slotstep profiles`: the step costs that come with slotstep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slotstep.cli.output import print_json, show
from slotstep.cli.params import AsJson

if TYPE_CHECKING:
    from calibrate.profiles.profile import Profile


KINDS = ("decode", "prefill", "mixed")


def profiles(
    as_json: AsJson = False,
) -> None:
    """List the step costs that come with slotstep: of which model on which device, how good, from where."""
    from calibrate.profiles.profile import named, shipped

    listed = [named(name) for name in shipped()]
    if as_json:
        content = [{"name": each.name, "sha256": each.sha256, **each.content} for each in listed]
        print_json({"profiles": content})
        return
    from rich import box
    from rich.table import Column, Table

    whole = [Column(name, no_wrap=True) for name in ("profile", "device", "dtype", "content")]
    errors = [Column(kind, justify="right", no_wrap=True) for kind in KINDS]
    table = Table(*whole[:3], *errors, whole[3], box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    table.caption = "mean errors of whole steps against what they were made of"
    for each in listed:
        means = [f"{mean:.1%}" if mean is not None else "-" for mean in (mean_error(each, kind) for kind in KINDS)]
        device = each.content["device"].removeprefix("NVIDIA ").removeprefix("GeForce ")
        table.add_row(each.name, device, each.content["dtype"], *means, each.sha256[:8])
    show(table)


def mean_error(profile: Profile, kind: str) -> float | None:
    """The mean residual of one kind of step."""
    found = (profile.content["residuals"] or {}).get(f"{kind}_mean")
    return None if found is None else float(found)
