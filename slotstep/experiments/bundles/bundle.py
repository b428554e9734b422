"""The file of a bundle: a zip archive that is the same, byte for byte, for the same runs in the same environment.

    manifest.json         format, environment, inputs, own code, and the runs in order
    scenarios/FILE.yaml   the resolved scenario of each run; FILE is in the manifest
    results/FILE.json     its summary
    README.txt            how to run them again

Files that runs read are in it by size and digest only.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reports import files
from slotstep.experiments.bundles import inputs
from slotstep.experiments.bundles.environment import environment
from slotstep.experiments.sweeps import identity
from slotstep.scenario import document
from traces.errors import BadInput

FORMAT = "slotstep bundle 1"
README = """\
Runs of slotstep, to be run again: slotstep reproduce THIS_FILE.zip --inputs FOLDER

FOLDER has the files that manifest.json lists under inputs, under any name: they are told by size and SHA-256.
Code under code in manifest.json is looked for in the current directory.
scenarios/ has each run's scenario with every default, results/ what it gave.
"""
EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class BundledRun:
    """A run: its name, its resolved scenario, its summary, and the values of the axes of its sweep."""

    name: str
    settings: Mapping[str, Any]
    summary: Mapping[str, Any]
    axes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Bundle:
    """What a bundle holds. `inputs` by name: `bytes` and `sha256`; `code` by file: SHA-256."""

    environment: Mapping[str, str]
    inputs: Mapping[str, Mapping[str, Any]]
    code: Mapping[str, str]
    runs: tuple[BundledRun, ...]


def write(path: Path, runs: Iterable[BundledRun]) -> Path:
    """Write runs into a bundle, atomically; returns its path.

    Raises OSError for a file that cannot be read or written.
    """
    given = list(runs)
    names = inputs.named([run.settings for run in given])
    kept = [
        BundledRun(run.name, inputs.replaced(run.settings, names), inputs.replaced(run.summary, names), run.axes)
        for run in given
    ]
    filed = {file_name(place, run.name): run for place, run in enumerate(kept, start=1)}
    manifest = {
        "format": FORMAT,
        "environment": environment(),
        "inputs": inputs.described(names),
        "code": own_code(run.settings for run in given),
        "runs": [
            {"name": run.name, "file": file, **({"axes": run.axes} if run.axes else {})}
            for file, run in filed.items()
        ],
    }
    parts = {"README.txt": README, "manifest.json": as_json(manifest)}
    for file, run in filed.items():
        parts[f"scenarios/{file}.yaml"] = document.dump(dict(run.settings))
        parts[f"results/{file}.json"] = as_json(run.summary)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    return files.write_bytes(path, content.getvalue())


def file_name(place: int, run: str) -> str:
    """The name of a run's files: its place, and its name with characters that any file system takes."""
    safe = re.sub(r"[^\w.-]", "_", run)
    return f"{place}-{safe}"


def own_code(settings: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """SHA-256 by file of the code that is not part of slotstep and that these resolved scenarios name."""
    found = {file: digest for each in settings for file, digest in identity.user_code_files(each).items()}
    return dict(sorted(found.items()))


def as_json(content: object) -> str:
    """A value as indented JSON."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read(path: Path) -> Bundle:
    """The content of a bundle. Raises BadInput for a file that is none, or is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            if manifest["format"] != FORMAT:
                raise BadInput(f"{path}: its format is {manifest['format']!r}; expected {FORMAT!r}")
            runs = tuple(
                BundledRun(
                    run["name"],
                    document.parse(archive.read(f"scenarios/{run['file']}.yaml").decode()),
                    json.loads(archive.read(f"results/{run['file']}.json")),
                    run.get("axes", {}),
                )
                for run in manifest["runs"]
            )
        return Bundle(manifest["environment"], manifest["inputs"], manifest["code"], runs)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (OSError, zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path}: expected what --bundle wrote: {' '.join(str(error).split())}") from None
