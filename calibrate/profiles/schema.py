"""The format of a profile: its keys, their types, its curve, and the digest of its content. Reads no file."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from math import isfinite
from typing import Any

from calibrate.profiles.forms import FORMS, curve
from calibrate.uncertainty.model import UNCERTAINTY, from_mapping
from sim.accounting.extrapolation import BOUNDS
from sim.cost.forms import Curve
from sim.cost.knots import Knots
from sim.cost.surface import Surface
from sim.cost.table import Lines

FORMAT = 1
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
    "curve": f"one of {', '.join(FORMS)}, with its coefficients in nanoseconds",
    "details": "whatever else its maker has to say: confidence intervals, bandwidths, held-out errors",
    "uncertainty": "how wrong the curve may be, by the keys of docs/uncertainty.md",
}
OPTIONAL = ("details", "uncertainty")
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
MAPPINGS = ("software", "model", "residuals", "range", *OPTIONAL)


def check(content: Any) -> None:
    """Raise ValueError, one line that begins with the key, unless `content` is a profile's."""
    if not isinstance(content, Mapping):
        raise ValueError(f"found {brief(content)}; expected a mapping with keys such as device and curve")
    known_keys(content, KEYS)
    for key in KEYS:
        if key not in content and key not in OPTIONAL:
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
        made = curve(kind, coefficients)
    except ValueError as error:
        raise ValueError(f"curve.{error}") from None
    if content.get("uncertainty") is not None:
        check_uncertainty(content["uncertainty"], made)
    for key in MAPPINGS:
        try:
            digest(content.get(key))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{key}: {error}; expected text, finite numbers, lists and mappings") from None


def check_uncertainty(found: Mapping[str, Any], of: Curve) -> None:
    """Raise ValueError, one line that begins with the key, unless `found` is an uncertainty of this curve."""
    known_keys(found, UNCERTAINTY, "uncertainty.")
    if not isinstance(found.get("source"), str):
        raise ValueError("uncertainty.source: missing; expected text: what its numbers come from")
    try:
        stated = from_mapping(found)
    except ValueError as error:
        raise ValueError(f"uncertainty.{error}") from None
    for name in stated.terms:
        if not isinstance(getattr(of, name, None), int | float):
            raise ValueError(f"uncertainty.terms: found {name}; expected coefficients of the curve that are numbers")


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


def coefficients(cost: Curve) -> dict[str, dict[str, Any]]:
    """A curve of the kernel as a profile holds it, by its kind, without zeros; inverse of `curve`."""
    kind = next(name for name, form in FORMS.items() if isinstance(cost, form.kind))
    return {
        kind: {each.name: yaml_coefficient(value) for each in fields(cost) if (value := getattr(cost, each.name))}
    }


def yaml_coefficient(value: Any) -> Any:
    """A coefficient as YAML holds it: a number, a list of sizes, or a table with its points."""
    if isinstance(value, Knots):
        return {"at": list(value.at), "ns": list(value.y)}
    if isinstance(value, Lines):
        return {**yaml_coefficient(value.base), "per_position": list(value.per_position.y)}
    if isinstance(value, Surface):
        return {"at": list(value.at), "along": list(value.along), "ns": [list(row) for row in value.ns]}
    return list(value) if isinstance(value, tuple) else value


def digest(content: Any) -> str:
    """SHA-256, as hex, over canonical JSON: sorted keys, no spaces, whole floats as integers."""
    text = json.dumps(whole(content), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def brief(value: object) -> str:
    """`value` for a message, on one line of at most 60 characters."""
    shown = "nothing" if value is None else repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
