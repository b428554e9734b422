"""Scenarios from files and mappings: parsed, checked, and completed with what follows from their profiles."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from slotstep.runs import build, costs, size_limits
from slotstep.runs.resolution import pinned
from slotstep.scenario import cluster, document, presets
from slotstep.scenario.cost import Cost
from slotstep.scenario.schema import Scenario
from slotstep.scenario.validation_errors import complaint
from slotstep.scenario.workload import AUTO, SOURCES, TRACE_OPTIONS
from traces.errors import BadInput

DEVICE_KEYS = ("device", "device_memory")


def load(
    path: str | Path, overrides: Iterable[str] = (), trace: str | Path | None = None, allow_large: bool = False
) -> Scenario:
    """The scenario in the YAML file `path`, with KEY=VALUE `overrides` applied.

    trace        a file that replaces the source of the workload; transforms are kept. It is read in the format that
                 the scenario names, or in a detected one if its workload is not a trace
    allow_large  lift the limits of size, as in `parse`

    File names in the scenario and in overrides are relative to the scenario's folder, `trace` to the current one.
    Raises BadInput, one line with file and key, for a file that cannot be read and for an invalid scenario.
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
    """A checked scenario from a mapping of plain values.

    source       begins error messages
    folder       where relative file names start; the current folder if not given
    name         the scenario's name if the mapping has none
    allow_large  lift the limits of `slotstep.runs.size_limits`, as the key of that name does

    Raises BadInput, one line with `source` and key.
    """
    placed = on_devices(mapping, folder or Path())
    given = {"name": name, **placed, **({"allow_large": True} if allow_large else {})}
    try:
        scenario = Scenario.model_validate(given, context={"folder": folder or Path(), "source": source})
    except ValidationError as error:
        raise BadInput(f"{source}: {complaint(error, Scenario, spelling(mapping))}") from None
    scenario.keep_given(mapping)
    size_limits.check(scenario)
    complete = pinned(scenario)
    build.check(complete)
    return complete


def on_devices(mapping: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A scenario whose engines with a preset name the device of their cost, unless they name one, or its memory.

    A cost that is invalid, or of no device, leaves its engine as it is.
    """
    base, cost = mapping.get("engine") or {}, mapping.get("cost")
    if not isinstance(base, Mapping):
        return dict(mapping)
    placed = {**mapping, "cluster": copy.deepcopy(mapping["cluster"])} if "cluster" in mapping else dict(mapping)
    for group in cluster.groups_given(placed):
        own = group.get("engine") or {}
        if isinstance(own, Mapping) and ("cost" in group or "preset" in own):
            known = presets.chosen({**base, **own})
            named = any(key in section for section in (base, own) for key in DEVICE_KEYS)
            if known is not None and not named:
                group["engine"] = {**own, **device_of(group.get("cost", cost), folder)}
    if presets.chosen(base) is not None and not any(key in base for key in DEVICE_KEYS):
        placed["engine"] = {**base, **device_of(cost, folder)}
    return placed


def device_of(given: object, folder: Path) -> dict[str, str]:
    """The keys of an engine that name the device of a cost, as far as the cost knows them."""
    try:
        found = costs.device(Cost.model_validate(given, context={"folder": folder}))
    except (ValidationError, ValueError):
        return {}
    if found is None:
        return {}
    name, size = found
    return {"device": name} if size is None else {"device": name, "device_memory": f"{size / 2**30:.6g}GiB"}


def spelling(mapping: Mapping[str, Any]) -> dict[str, str]:
    """The keys of a scenario that were given under a preset's name: that name by our key."""
    engine_section = mapping.get("engine")
    if not isinstance(engine_section, dict):
        return {}
    return {f"engine.{name}": f"engine.{alias}" for alias, name in presets.written(engine_section).items()}


def read_from(trace: Path, mapping: dict[str, Any]) -> None:
    """Replace the source of a scenario's workload by the file `trace`."""
    workload = mapping.get("workload")
    kept = dict(workload) if isinstance(workload, dict) else {}
    given = kept.get("trace")
    kinds = [key for key in given if key not in TRACE_OPTIONS] if isinstance(given, dict) else []
    kind = kinds[0] if kinds else AUTO
    for source in SOURCES:
        kept.pop(source, None)
    mapping["workload"] = {"trace": {kind: str(trace.absolute())}, **kept}
