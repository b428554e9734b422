"""The files that runs read: told by their content, and named in a bundle without their place on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from slotstep.experiments.sweeps import identity
from traces.errors import BadInput

FOLDER = "inputs"


def paths_in(value: Any) -> Iterator[str]:
    """Every absolute path of a file among plain values."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from paths_in(inner)
    elif isinstance(value, str) and Path(value).is_absolute() and Path(value).is_file():
        yield value


def replaced(value: Any, names: Mapping[str, str]) -> Any:
    """Plain values in which each text of `names` is replaced, wherever it stands in a text."""
    if isinstance(value, Mapping):
        return {key: replaced(inner, names) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [replaced(inner, names) for inner in value]
    if isinstance(value, str):
        for old in sorted(names, key=len, reverse=True):
            value = value.replace(old, names[old])
    return value


def named(settings: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The files that resolved scenarios read: the name in a bundle of each by its path.

    The name is that of the file; files of one name and different content get their digest before it.
    """
    paths = list(dict.fromkeys(path for each in settings for path in paths_in(each)))
    digests = {path: identity.digest(Path(path)) for path in paths}
    contents = {name: {digests[path] for path in paths if Path(path).name == name} for name in map(base, paths)}
    return {
        path: f"{FOLDER}/{base(path)}"
        if len(contents[base(path)]) == 1
        else f"{FOLDER}/{digests[path][:8]}-{base(path)}"
        for path in paths
    }


def base(path: str) -> str:
    """The name of a file."""
    return Path(path).name


def described(names: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Size in bytes and SHA-256 of each file, by its name in a bundle."""
    return {
        name: {"bytes": Path(path).stat().st_size, "sha256": identity.digest(Path(path))}
        for path, name in sorted(names.items(), key=lambda item: item[1])
    }


def found(wanted: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, str]:
    """The absolute path of each input in a folder or below it, by its name in the bundle; told by content.

    Raises BadInput for one that is not there.
    """
    places: dict[str, str] = {}
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()] if wanted else []
    for name, content in wanted.items():
        alike = (path for path in files if path.stat().st_size == content["bytes"])
        place = next((path for path in alike if identity.digest(path) == content["sha256"]), None)
        if place is None:
            raise BadInput(
                f"{name.removeprefix(f'{FOLDER}/')}: not in {folder}; expected a file of {content['bytes']:,} bytes "
                f"with SHA-256 {content['sha256']}, whatever its name (--inputs names another folder)"
            )
        places[name] = str(place.absolute())
    return places
