"""Functions of all commands that open scenarios and print: results on standard output, remarks on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from slotstep.scenario.schema import Scenario


def open_scenario(
    path: Path, settings: Sequence[str], trace: Path | None = None, policy: str | None = None
) -> Scenario:
    """The scenario in a file with overrides, requests from `trace`, and under `policy`, where given."""
    from slotstep.runs.loading import load
    from slotstep.runs.resolution import with_policy

    scenario = load(path, settings, trace)
    return scenario if policy is None else with_policy(scenario, policy)


def print_json(content: Mapping[str, Any]) -> None:
    """One JSON object on standard output. Raises ValueError for a number that JSON does not have."""
    print(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False), flush=True)


def show(*parts: RenderableType) -> None:
    """Tables on standard output, as wide as the terminal."""
    from rich.console import Console

    console = Console()
    for part in parts:
        console.print(part)


def say(line: str) -> None:
    """A remark on standard error."""
    print(line, file=sys.stderr, flush=True)
