"""`slotstep policies`: the policies and the other choices, with descriptions, options and sources."""

from __future__ import annotations

import json

from slotstep.cli.output import print_json, show
from slotstep.cli.params import AsJson


def policies(
    as_json: AsJson = False,
) -> None:
    """List the policies: what each does, its options with their defaults, and its source; then the other choices."""
    from slotstep.cli.reports.catalogue import choices

    found = choices()
    if as_json:
        print_json(found)
        return
    from rich import box
    from rich.table import Column, Table

    heads = {
        "policy": "what goes first",
        "admission": "who may enter",
        "victim": "who leaves when pages run out",
        "predict": "what it says of output lengths",
    }
    for (axis, about), entries in zip(heads.items(), found.values(), strict=True):
        whole = [Column(name, no_wrap=True) for name in (axis, "options")]
        table = Table(whole[0], about, whole[1], "source", box=box.SIMPLE)
        for entry in entries:
            options = "\n".join(f"{name}: {shown(default)}" for name, default in entry["options"].items())
            table.add_row(entry["name"], entry["about"], options, entry["source"])
        show(table)


def shown(default: object) -> str:
    """A default as a scenario file has it; empty without one."""
    if default is None:
        return ""
    return default if isinstance(default, str) else json.dumps(default)
