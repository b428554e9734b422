"""A profile: what a step costs on a device, and its source. Read, checked, identified by its content, written.

A YAML file with every key of `calibrate.profiles.schema.KEYS`; null: the source does not state it. Durations in
`curve` are nanoseconds. Two profiles are the same if and only if their content is (`sha256`): the file's name does
not matter.
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from calibrate.profiles.forms import curve
from calibrate.profiles.schema import FORMAT, KEYS, OPTIONAL, check, digest, known_keys
from sim.cost.forms import Curve


@dataclass(frozen=True)
class Profile:
    """A checked profile. `content` is the mapping of its file; `name` is a label only.

    Raises ValueError, one line, for content that is not a profile's.
    """

    name: str
    content: Mapping[str, Any]

    def __post_init__(self) -> None:
        check(self.content)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 over the canonical JSON of the content."""
        return digest(self.content)

    @property
    def kind(self) -> str:
        """The kind of its curve."""
        return str(next(iter(self.content["curve"])))

    @property
    def range(self) -> Mapping[str, float]:
        """The largest measured values, by name of `BOUNDS`; without those that are not known."""
        return {key: value for key, value in (self.content["range"] or {}).items() if value is not None}

    def cost(self, **terms: Any) -> Curve:
        """The curve as the kernel takes it; `terms` replace coefficients.

        Raises ValueError for a term that a curve of this kind does not have.
        """
        return curve(self.kind, {**self.content["curve"][self.kind], **terms})

    def text(self) -> str:
        """The file's text; reading it back gives the same content."""
        dumped = yaml.dump(dict(self.content), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)
        return str(dumped)


def profile(curve: Mapping[str, Mapping[str, Any]], *, name: str = "profile", **about: Any) -> Profile:
    """A profile of a curve, as in `{"roofline": {"weight_pass": 1e7, ...}}`, and the other keys of a profile.

    Keys that are left out are null. Raises ValueError for an unknown key, or one that is missing and has to be
    stated.
    """
    stated = {"format": FORMAT, **about, "curve": curve}
    known_keys(stated, KEYS)
    return Profile(name, {key: yaml_value(stated.get(key)) for key in KEYS if key in stated or key not in OPTIONAL})


def read(path: str | Path) -> Profile:
    """The profile in a file. Raises ValueError, one line with file and key; OSError if there is no such file."""
    path = Path(path)
    return parse(path.read_bytes(), path.stem, str(path))


@lru_cache(maxsize=64)
def parse(text: bytes | str, name: str, source: str) -> Profile:
    """The profile in a file's text; `source` begins the message of the ValueError raised for an invalid one.

    Parsed profiles are cached by their text.
    """
    try:
        content = yaml.load(text, Loader=Loader)
    except RecursionError:
        raise ValueError(f"{source}: invalid YAML: nested too deeply to be read") from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"{source}: invalid YAML: {' '.join(str(error).split())}") from None
    try:
        return Profile(name, content)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def shipped() -> list[str]:
    """The names of the profiles that ship with slotstep, sorted."""
    folder = resources.files("calibrate") / "profiles"
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


def named(name: str) -> Profile:
    """The shipped profile of that name; raises ValueError with the nearest name if there is none."""
    names = shipped()
    if name not in names:
        nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
        hint = f"did you mean {nearest[0]}?" if nearest else "none is shipped"
        raise ValueError(f"{name}: no profile of that name; {hint} (a file is given as FILE.yaml)")
    file = resources.files("calibrate") / "profiles" / f"{name}.yaml"
    return parse(file.read_bytes(), name, f"{name}.yaml")


def yaml_value(value: Any) -> Any:
    """`value` as YAML holds it: mappings, lists, and the numbers of numpy as Python's."""
    if isinstance(value, Mapping):
        return {str(key): yaml_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [yaml_value(inner) for inner in value]
    return value.item() if hasattr(value, "item") else value


class Loader(yaml.SafeLoader):
    """Plain YAML that refuses a key given twice, and aliases: a few of them can stand for any number of values."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # PyYAML's stubs lack it
            raise yaml.MarkedYAMLError(problem="found an alias; expected the value itself", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = [key.value for key, _ in node.value]
        for key in seen:
            if seen.count(key) > 1:
                raise yaml.MarkedYAMLError(problem=f"the key {key} is given twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


class Dumper(yaml.SafeDumper):
    """Plain YAML with short lists of numbers on one line and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_list(self, data: Iterable[Any]) -> yaml.SequenceNode:
        items = list(data)
        numbers = all(isinstance(item, int | float) for item in items)
        return self.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=numbers)


Dumper.add_representer(list, Dumper.represent_list)
