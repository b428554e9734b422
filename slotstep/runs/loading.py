"""Scenarios from files and mappings: parsed, checked, and completed with what follows from their profiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from slotstep.runs import build, size_limits
from slotstep.runs.resolution import pinned
from slotstep.scenario import document, presets
from slotstep.scenario.schema import Scenario
from slotstep.scenario.validation_errors import complaint
from slotstep.scenario.workload import AUTO, SOURCES, TRACE_OPTIONS
from traces.errors import BadInput


def load(
    path: str | Path, overrides: Iterable[str] = (), trace: str | Path | None = None, allow_large: bool = False
) -> Scenario:
    """The scenario in the YAML file `path`, with KEY=VALUE `overrides` applied and its requests from `trace`.

    `trace` takes the place of the workload's source and keeps what is done to the requests; it is read as
    the kind of trace that the scenario names, or found out if its workload is no trace. File names in the
    scenario and its overrides are relative to its folder, `trace` to the present one. `allow_large` as in `parse`.

    Raises BadInput, one line with file and key, for a file that cannot be read and for what is wrong in it.
    """
    path = Path(path)
    mapping = document.read(path)
    document.override(mapping, overrides)
    if trace is not None:
        read_from(Path(trace), mapping)
    return parse(mapping, str(path), path.parent, path.stem, allow_large)


def parse(
    mapping: Mapping[str, Any],
    source: str = "scenario",
    folder: Path | None = None,
    name: str = "scenario",
    allow_large: bool = False,
) -> Scenario:
    """A checked scenario from a mapping of plain values; `source` begins its error messages.

    `folder` is where relative file names start (default: the present one), `name` is used if it has none.
    `allow_large` lifts the limits of `slotstep.runs.size_limits`, as the key of that name does.
    Raises BadInput, one line with `source` and key.
    """
    given = {"name": name, **mapping, **({"allow_large": True} if allow_large else {})}
    try:
        scenario = Scenario.model_validate(given, context={"folder": folder or Path(), "source": source})
    except ValidationError as error:
        raise BadInput(f"{source}: {complaint(error, Scenario, spelling(mapping))}") from None
    size_limits.check(scenario)
    complete = pinned(scenario)
    build.check(complete)
    return complete


def spelling(mapping: Mapping[str, Any]) -> dict[str, str]:
    """Our names of the keys that a scenario gives by another name, each with that."""
    engine_section = mapping.get("engine")
    if not isinstance(engine_section, dict):
        return {}
    return {f"engine.{name}": f"engine.{alias}" for alias, name in presets.written(engine_section).items()}


def read_from(trace: Path, mapping: dict[str, Any]) -> None:
    """Make the file `trace` the source of a scenario's workload."""
    workload = mapping.get("workload")
    kept = dict(workload) if isinstance(workload, dict) else {}
    given = kept.get("trace")
    kinds = [key for key in given if key not in TRACE_OPTIONS] if isinstance(given, dict) else []
    kind = kinds[0] if kinds else AUTO
    for source in SOURCES:
        kept.pop(source, None)
    mapping["workload"] = {"trace": {kind: str(trace.absolute())}, **kept}
