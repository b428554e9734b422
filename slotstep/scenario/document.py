"""YAML text to mappings and back, and the overrides of the command line.

Scalars are read as YAML 1.2 reads them, so `1e3` is a number and `no` is text; a duplicate key is an error. Does not
depend on the keys of a scenario.
"""

from __future__ import annotations

import copy
import re
from collections import abc
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import yaml

from traces.errors import BadInput

Mapping = dict[str, Any]

MOST_COPIES = 1_000_000
"""Most values that aliases may add to the written ones."""

PLAIN_SCALARS = {
    "tag:yaml.org,2002:bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "tag:yaml.org,2002:int": (r"[-+]?[0-9][0-9_]*", "-+0123456789"),
    "tag:yaml.org,2002:float": (
        r"[-+]?(\.[0-9]+|[0-9][0-9_]*\.[0-9]*|[0-9][0-9_]*(?=[eE]))([eE][-+]?[0-9]+)?",
        "-+.0123456789",
    ),
    "tag:yaml.org,2002:null": (r"~|null|Null|NULL|", "~nN\0"),
    "tag:yaml.org,2002:merge": (r"<<", "<"),
}


class Loader(yaml.SafeLoader):
    """Refuses duplicate keys and an anchor inside itself."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - the name and type are PyYAML's

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.deep_construct = True

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key.value} is given twice", problem_mark=key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        try:
            return int(str(node.value).replace("_", ""))
        except ValueError:
            raise yaml.MarkedYAMLError(problem="too many digits", problem_mark=node.start_mark) from None


class Dumper(yaml.SafeDumper):
    """Quotes text that this loader or one of YAML 1.1 would read as another type."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


for tag, (pattern, starts) in PLAIN_SCALARS.items():
    resolver = re.compile(f"(?:{pattern})\\Z")
    Loader.add_implicit_resolver(tag, resolver, ["" if c == "\0" else c for c in starts])
    Dumper.add_implicit_resolver(tag, resolver, ["" if c == "\0" else c for c in starts])
Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)


def read(path: Path) -> Mapping:
    """The mapping in the YAML file `path`.

    Raises BadInput, with line and column where known, for a file that cannot be read, is not UTF-8, not YAML, empty,
    or not a mapping.
    """
    try:
        document = parse(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a directory; expected a file") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start} is not UTF-8 text") from None
    except yaml.YAMLError as error:
        raise BadInput(f"{path}{place(error)}") from None
    if document is None:
        raise BadInput(f"{path}: the file is empty; expected a scenario")
    if not isinstance(document, dict):
        raise BadInput(f"{path}: found {brief(document)}; expected keys such as workload and cost")
    return document


def parse(text: str) -> Any:
    """The one YAML document in `text` as plain Python values; raises yaml.YAMLError."""
    loader = Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        count_copies(node)
        return loader.construct_document(node)
    except RecursionError:
        raise yaml.MarkedYAMLError(problem="values inside values, more than can be read") from None
    finally:
        loader.dispose()


def count_copies(document: yaml.Node) -> None:
    """Raise yaml.MarkedYAMLError for aliases that stand for more than MOST_COPIES values in all."""
    sizes: dict[yaml.Node, int] = {}

    def size(node: yaml.Node) -> int:
        if node not in sizes:
            sizes[node] = 0  # what it counts for inside itself, which its construction refuses
            parts = node.value if isinstance(node, yaml.CollectionNode) else ()
            inner = (part for entry in parts for part in (entry if isinstance(entry, tuple) else (entry,)))
            sizes[node] = 1 + sum(map(size, inner))
        return sizes[node]

    copies = size(document) - len(sizes)
    if copies > MOST_COPIES:
        raise yaml.MarkedYAMLError(problem=f"its aliases stand for more than {MOST_COPIES:,} values")


def dump(document: Mapping) -> str:
    """`document` as YAML that `read` reads back, keys in their order."""
    return yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)


def override(document: Mapping, settings: Iterable[str]) -> None:
    """Apply each KEY=VALUE of `settings` to `document`, in order; missing mappings on the way are created.

    A part of the key that meets a list is a position in it, from 0. Raises BadInput for a setting without
    a key or value, a value that is not YAML, or a position that the list does not have.
    """
    for setting in settings:
        key, equals, text = setting.partition("=")
        parts = key.split(".")
        if not equals or not all(parts):
            raise BadInput(f"--set {setting}: expected KEY=VALUE, such as engine.slots=8")
        try:
            value = parse(text)
        except yaml.YAMLError as error:
            raise BadInput(f"--set {setting}{place(error)}") from None
        put(document, parts, value, setting)


def override_with(document: Mapping, settings: abc.Mapping[str, Any]) -> None:
    """As `override`, with parsed values by dotted key; values are copied."""
    for key, value in settings.items():
        parts = key.split(".")
        if not all(parts):
            raise BadInput(f"{key}: expected keys joined by dots, such as engine.slots")
        put(document, parts, copy.deepcopy(value), f"{key}={brief(value)}")


def put(document: Mapping, parts: list[str], value: Any, setting: str) -> None:
    """Set the entry at the path `parts` of `document`; a value on the way that is no container becomes a mapping."""
    here: Any = document
    for depth, part in enumerate(parts):
        last = depth == len(parts) - 1
        key: Any = part
        if isinstance(here, list):
            if not part.isdecimal() or int(part) >= len(here):
                known = f"0 to {len(here) - 1}" if here else "none"
                raise BadInput(f"--set {setting}: {'.'.join(parts[:depth])} is a list; its positions are {known}")
            key = int(part)
        if last:
            here[key] = value
        elif not isinstance(here[key] if isinstance(here, list) else here.get(key), dict | list):
            here[key] = {}
        here = here[key]


def place(error: yaml.YAMLError) -> str:
    """Where in the text and what: `, line 3, column 7: ...`, on one line."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    problem = getattr(error, "problem", None) or getattr(error, "context", None) or str(error)
    return f"{where}: invalid YAML: {' '.join(str(problem).split())}"


def brief(value: object, width: int = 60) -> str:
    """`value` as it would be typed in Python, cut to `width` characters, for an error message."""
    shown = "nothing" if value is None else repr(value)
    return shown if len(shown) <= width else f"{shown[: width - 3]}..."
