"""The scenarios that the values of a baseline were recorded with, in a file beside it, and what changed since.

`baseline.yaml` has them in `baseline.resolved.yaml`, by check: every key with its default, files by their content,
the digests of code that is not part of slotstep, and the version of slotstep. `slotstep check --update` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from slotstep.experiments.sweeps import identity
from slotstep.runs.resolution import resolved
from slotstep.scenario import document
from slotstep.scenario.schema import Scenario
from traces.errors import BadInput

DIGITS = 16
"""Hexadecimal digits by which the content of a file is told from another."""


def path_of(baseline: Path) -> Path:
    """The file of the scenarios of a baseline."""
    return baseline.with_name(f"{baseline.stem}.resolved.yaml")


def read(baseline: Path) -> dict[str, Mapping[str, Any]]:
    """The recorded scenarios of a baseline, by check; {} where there is no file.

    Raises BadInput for a file that is not as `text` writes it.
    """
    path = path_of(baseline)
    if not path.exists():
        return {}
    found = document.read(path)
    for name, scenario in found.items():
        if not isinstance(scenario, Mapping):
            raise BadInput(f"{path}: {name}: found {document.brief(scenario)}; expected what check --update writes")
    return found


def text(baseline: Path, recorded: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of the file of a baseline's scenarios, which `read` reads back."""
    head = f"# The scenarios behind the values of {baseline.name}; written by slotstep check --update.\n"
    body: str = yaml.dump(
        dict(recorded),
        Dumper=document.Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=110,
        default_flow_style=None,
    )
    return head + body


def described(scenario: Scenario) -> dict[str, Any]:
    """A scenario as it is recorded. Raises OSError for a file that cannot be read."""
    settings = resolved(scenario)
    files = {file: digest[:DIGITS] for file, digest in identity.user_code_files(settings).items()}
    return {"slotstep": version("slotstep"), **({"code": files} if files else {}), **by_content(settings)}


def by_content(value: Any) -> Any:
    """Plain values with name and digest in place of each absolute path of a file."""
    if isinstance(value, Mapping):
        return {key: by_content(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [by_content(inner) for inner in value]
    if isinstance(value, str) and Path(value).is_absolute() and Path(value).is_file():
        return f"{Path(value).name} (sha256 {identity.digest(Path(value))[:DIGITS]})"
    return value


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """A line for each key that differs, `engine.token_budget: 4096 -> 16384`; slotstep itself last."""
    old, new = dict(leaves(before)), dict(leaves(now))
    keys = sorted((old | new).keys(), key=lambda key: key == "slotstep")
    return [f"{key}: {shown(old, key)} -> {shown(new, key)}" for key in keys if differs(old, new, key)]


def differs(old: Mapping[str, Any], new: Mapping[str, Any], key: str) -> bool:
    """Whether a key has another value, or is in one of them only."""
    return (key in old) != (key in new) or old[key] != new[key]


def shown(values: Mapping[str, Any], key: str) -> str:
    """A value as text; `absent` without one."""
    return document.brief(values[key]).strip("'") if key in values else "absent"


def leaves(value: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of nested mappings and lists by its dotted key; an empty one stands for itself."""
    inner = value if isinstance(value, Mapping) else dict(enumerate(value)) if isinstance(value, list) else None
    if not inner:
        yield before, value
        return
    for key, one in inner.items():
        yield from leaves(one, f"{before}.{key}" if before else str(key))
