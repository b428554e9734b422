"""A profile: what a step costs somewhere, and where that was learned. Read, checked, named by its content, written.

A YAML file with every key of `KEYS`; null says that the source does not state it. Durations in `curve` are
nanoseconds. Two profiles are the same if and only if their content is (`sha256`): never by the file's name.
Knows the kinds of curve as the kernel builds them, not how one is measured or fitted.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from importlib import resources
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

from sim.cost import Affine, Curve, Roofline
from sim.coverage import BOUNDS
from sim.table import KNOTS, LINES, Table, table

FORMAT = 1
CURVES: dict[str, type[Curve]] = {"affine": Affine, "roofline": Roofline, "table": Table}
PARTS = (*KNOTS, *LINES, "graph_sizes")
"""Coefficients that are no numbers."""
KEYS = {
    "format": "the version of this format, 1",
    "device": "its name, as the driver or the vendor gives it",
    "memory": "of the device, bytes",
    "driver": "its version",
    "software": "versions by name: of the engine, of the kernels",
    "model": "a mapping with its name and whatever of its shape is known",
    "dtype": "of the weights and the KV cache, such as bfloat16",
    "tensor_parallel": "devices that share one copy of the model",
    "page_size": "token positions in a page of the KV cache",
    "date": "when it was measured or derived, YYYY-MM-DD",
    "method": "how, in a sentence or two",
    "residuals": "how far the curve is from what it was made of: numbers by name, relative ones as fractions",
    "source": "what it was made of",
    "licence": "of the source",
    "not_included": "what a real step pays and this curve does not, a list",
    "range": f"the largest measured values of {', '.join(BOUNDS)}; a step beyond one of them is an extrapolation",
    "curve": f"one of {', '.join(CURVES)}, with its coefficients in nanoseconds",
    "details": "whatever else its maker has to say: confidence intervals, bandwidths, held-out errors",
}
STATED = (
    "format",
    "device",
    "model",
    "dtype",
    "tensor_parallel",
    "date",
    "method",
    "source",
    "curve",
    "not_included",
)
MAPPINGS = ("software", "model", "residuals", "range", "details")


@dataclass(frozen=True)
class Profile:
    """A checked profile. `content` is the mapping of its file; `name` is what to call it and means nothing else."""

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
        """The curve as the kernel takes it; `terms` take the place of coefficients it has.

        Raises ValueError for a term that a curve of this kind has not.
        """
        return curve(self.kind, {**self.content["curve"][self.kind], **terms})

    def text(self) -> str:
        """The file's text; reading it back gives the same content."""
        dumped = yaml.dump(dict(self.content), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)
        return str(dumped)


def profile(curve: Mapping[str, Mapping[str, Any]], *, name: str = "profile", **about: Any) -> Profile:
    """A profile of a curve, as in `{"roofline": {"weight_pass": 1e7, ...}}`, and the rest of `KEYS`.

    Keys that are left out are null. Raises ValueError for an unknown key or one that has to be stated.
    """
    stated = {"format": FORMAT, **about, "curve": curve}
    known_keys(stated, KEYS)
    return Profile(name, {key: plain(stated.get(key)) for key in KEYS if key in stated or key != "details"})


def read(path: str | Path) -> Profile:
    """The profile in a file. Raises ValueError, one line with file and key; OSError if there is no such file."""
    path = Path(path)
    return parse(path.read_bytes(), path.stem, str(path))


@lru_cache(maxsize=64)
def parse(text: bytes | str, name: str, source: str) -> Profile:
    """The profile in a file's text; `source` begins the message of the ValueError raised for a wrong one.

    The same text is parsed once: what is kept goes by the text, not by a file.
    """
    try:
        content = yaml.load(text, Loader=Loader)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"{source}: invalid YAML: {' '.join(str(error).split())}") from None
    try:
        return Profile(name, content)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def shipped() -> list[str]:
    """The names of the profiles that come with slotstep, sorted."""
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


def digest(content: Any) -> str:
    """SHA-256, as hex, over canonical JSON: sorted keys, no spaces, whole floats as integers."""
    text = json.dumps(whole(content), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def curve(kind: str, coefficients: Mapping[str, Any]) -> Curve:
    """A curve of the kernel from its coefficients by name; raises ValueError for what it does not take."""
    if kind not in CURVES:
        raise ValueError(f"{kind}: unknown kind of curve; expected one of {', '.join(CURVES)}")
    known = [each.name for each in fields(CURVES[kind])]
    try:
        known_keys(coefficients, known)
        for key, value in coefficients.items():
            if key == "graph_sizes" and not isinstance(value, list | tuple):
                raise ValueError(f"{key} is {value!r}; expected a list of whole numbers")
            if key not in PARTS and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ValueError(f"{key} is {value!r}; expected a number of nanoseconds")
        return table(coefficients) if kind == "table" else CURVES[kind](**coefficients)
    except ValueError as error:
        raise ValueError(f"{kind}.{error}") from None


def check(content: Any) -> None:
    """Raise ValueError, one line that begins with the key, unless `content` is that of a profile."""
    if not isinstance(content, Mapping):
        raise ValueError(f"found {brief(content)}; expected a mapping with keys such as device and curve")
    known_keys(content, KEYS)
    for key in KEYS:
        if key not in content and key != "details":
            raise ValueError(f"{key}: missing; expected {KEYS[key]}, or null if that is not known")
    if content["format"] != FORMAT:
        raise ValueError(f"format: found {brief(content['format'])}; expected {FORMAT}")
    for key in STATED:
        if content[key] in (None, ""):
            raise ValueError(f"{key}: found nothing; expected {KEYS[key]}")
    for key in ("device", "dtype", "date", "method", "source", "driver", "licence"):
        if not isinstance(content[key], str | None):
            raise ValueError(f"{key}: found {brief(content[key])}; expected text (in quotes): {KEYS[key]}")
    for key in ("memory", "tensor_parallel", "page_size"):
        if content[key] is not None and not whole_from_one(content[key]):
            raise ValueError(f"{key}: found {brief(content[key])}; expected a whole number from 1: {KEYS[key]}")
    for key in MAPPINGS:
        if not isinstance(content.get(key), Mapping | None):
            raise ValueError(f"{key}: found {brief(content[key])}; expected a mapping: {KEYS[key]}")
    if not isinstance(content["model"].get("name"), str):
        raise ValueError("model.name: missing; expected the model's name")
    if not isinstance(content["not_included"], list):
        raise ValueError(f"not_included: found {brief(content['not_included'])}; expected a list of words")
    for section in ("residuals", "range"):
        for key, value in (content[section] or {}).items():
            if value is not None and not number_from_zero(value):
                raise ValueError(f"{section}.{key}: found {brief(value)}; expected a number from 0")
    known_keys(content["range"] or {}, BOUNDS, "range.")
    kinds = content["curve"]
    if not isinstance(kinds, Mapping) or len(kinds) != 1 or not isinstance(next(iter(kinds.values())), Mapping):
        raise ValueError(f"curve: found {brief(kinds)}; expected {KEYS['curve']}")
    ((kind, coefficients),) = kinds.items()
    try:
        curve(kind, coefficients)
    except ValueError as error:
        raise ValueError(f"curve.{error}") from None
    for key in MAPPINGS:
        try:
            digest(content.get(key))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{key}: {error}; expected text, finite numbers, lists and mappings") from None


def known_keys(found: Iterable[Any], known: Iterable[str], prefix: str = "") -> None:
    """Raise ValueError for the first key that is not known, with the nearest one."""
    names = list(known)
    for key in found:
        if key not in names:
            nearest = difflib.get_close_matches(str(key), names, n=1, cutoff=0.0)[0]
            raise ValueError(f"{prefix}{key}: unknown key; did you mean {prefix}{nearest}?")


def whole_from_one(value: object) -> bool:
    """Whether it is a whole number of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def number_from_zero(value: object) -> bool:
    """Whether it is a finite number of at least 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0


def whole(value: Any) -> Any:
    """`value` with every float that is a whole number as an integer, at any depth."""
    if isinstance(value, Mapping):
        return {str(key): whole(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def plain(value: Any) -> Any:
    """`value` as YAML holds it: mappings, lists, and the numbers of numpy as Python's."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value.item() if hasattr(value, "item") else value


def brief(value: object) -> str:
    """`value` for a message, on one line of at most 60 characters."""
    shown = "nothing" if value is None else repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


class Loader(yaml.SafeLoader):
    """Plain YAML that refuses a key given twice."""

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
