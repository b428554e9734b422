"""The identity of a run: a digest of the resolved scenario, the files it reads, its axes, and the code.

It depends on the content of files, not on their names. The content of a profile is part of the resolved scenario.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from slotstep.experiments.sweeps import user_code
from slotstep.scenario.cluster import group_sections
from slotstep.scenario.workload import TRACE_OPTIONS

PACKAGES = ("sim", "policies", "traces", "calibrate", "slotstep")
BLOCK = 1 << 20


def name(settings: Mapping[str, Any], axes: Mapping[str, Any]) -> str:
    """The name of a run of the resolved scenario `settings` at the point `axes`: 32 hexadecimal digits.

    Raises OSError for a trace or a cache that cannot be read.
    """
    content = {
        "scenario": {**without_permission(settings), "workload": by_content(settings["workload"])},
        "warm": [digest(Path(file)) for file in warm_files(settings)],
        "user_code": user_code_digests(settings),
        "axes": dict(axes),
        "code": code(),
    }
    return named(content)


def sources(settings: Mapping[str, Any]) -> dict[str, str]:
    """What the result of a run depends on beside its settings, as columns of its row.

    code         of slotstep, as `code`
    user_code    JSON text: SHA-256 by file of what is not part of slotstep
    input_files  JSON text: SHA-256 by file of traces and of caches that replicas start from

    Raises OSError for a file that cannot be read.
    """
    read = {file: digest(Path(file)) for file in [*trace_files(settings["workload"]), *warm_files(settings)]}
    return {"code": code(), "user_code": json.dumps(user_code_files(settings)), "input_files": json.dumps(read)}


def trace_files(workload: Mapping[str, Any]) -> list[str]:
    """The trace files of a workload and of its parts."""
    parts = [file for part in workload.get("merge", {}).values() for file in trace_files(part)]
    return [*(file for kind, file in workload.get("trace", {}).items() if kind not in TRACE_OPTIONS), *parts]


def warm_files(settings: Mapping[str, Any]) -> list[str]:
    """The cache files that replicas start from, each once."""
    engines = [settings["engine"], *(group["engine"] for group in group_sections(settings))]
    return list(dict.fromkeys(engine["warm"] for engine in engines if engine.get("warm")))


def without_permission(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A resolved scenario without `allow_large`, which does not change a result."""
    return {key: value for key, value in settings.items() if key != "allow_large"}


def named(content: Mapping[str, Any]) -> str:
    """32 hexadecimal digits of the SHA-256 of plain values."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def by_content(workload: Mapping[str, Any]) -> dict[str, Any]:
    """A workload with the digests of its traces in place of their names."""
    found = dict(workload)
    if "trace" in found:
        kinds = {kind: file for kind, file in found["trace"].items() if kind not in TRACE_OPTIONS}
        found["trace"] = found["trace"] | {kind: digest(Path(file)) for kind, file in kinds.items()}
    if "merge" in found:
        found["merge"] = {part: by_content(inner) for part, inner in found["merge"].items()}
    return found


def user_code_digests(settings: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The digests of the files behind the names that are not part of slotstep, by name."""
    return {
        name: {file: digest(path) for file, path in user_code.sources(module).items()}
        for name, module in user_code.modules(settings).items()
    }


def user_code_files(settings: Mapping[str, Any]) -> dict[str, str]:
    """SHA-256 by file of the code that is not part of slotstep and that a resolved scenario names."""
    return {file: found for part in user_code_digests(settings).values() for file, found in part.items()}


def digest(path: Path) -> str:
    """SHA-256 of a file's content, read anew if the file has changed since. Raises OSError."""
    status = path.stat()
    return _digest(path, status.st_ino, status.st_size, status.st_mtime_ns)


@cache
def _digest(path: Path, *_: int) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            found.update(block)
    return found.hexdigest()


@cache
def code() -> str:
    """The version of slotstep with a digest of the code that makes results: `0.1.0+1f0c5e7a9b3d`."""
    found = hashlib.sha256()
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        assert spec is not None
        for folder in spec.submodule_search_locations or ():
            for path in sorted(Path(folder).rglob("*.py")):
                found.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{version('slotstep')}+{found.hexdigest()[:12]}"
