"""From the plain mapping a scenario holds to a synthetic workload.

    {requests: 1000, arrivals: {poisson: {rate: 20}}, prompt: 512, output: {lognormal: {mean: 200, cv: 1}}}

A law is a mapping of its name to its options. A number where a length is expected is `fixed`; a value that
is no mapping is the law's first option (`{geometric: 50}`, `{empirical: [1, 2]}`); a law without options
may stand as its name alone (`at_once`). Durations are integer nanoseconds already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, cast, get_type_hints

from traces.errors import BadInput, is_number, known_keys, nearest, shown
from traces.synthetic.arrivals import Arrivals, AtOnce, Gamma, Poisson
from traces.synthetic.lengths import (
    Bimodal,
    Empirical,
    Exponential,
    Fixed,
    Geometric,
    Length,
    Lognormal,
    Pareto,
)
from traces.synthetic.spec import Synthetic, Tenant

ARRIVALS: dict[str, type[Any]] = {"poisson": Poisson, "gamma": Gamma, "at_once": AtOnce}
LENGTHS: dict[str, type[Any]] = {
    "fixed": Fixed,
    "lognormal": Lognormal,
    "exponential": Exponential,
    "geometric": Geometric,
    "pareto": Pareto,
    "bimodal": Bimodal,
    "empirical": Empirical,
}
WORKLOAD_KEYS = ("requests", "duration", "arrivals", "prompt", "output", "tenants")
TENANT_KEYS = ("weight", "arrivals", "prompt", "output")


def parse(mapping: Mapping[str, object], where: str = "synthetic") -> Synthetic:
    """The workload that `mapping` describes.

    Raises BadInput with the path of the key from `where` on for an unknown key or law, a missing or
    contradictory one, and a value of the wrong kind or out of range.
    """
    options = _options(mapping, where, WORKLOAD_KEYS)
    tenants = options.pop("tenants", {})
    _mapping(tenants, f"{where}.tenants")
    given = {key: _part(key, value, f"{where}.{key}") for key, value in options.items()}
    each = [_tenant(str(name), value, f"{where}.tenants.{name}") for name, value in tenants.items()]
    return cast(Synthetic, _build(Synthetic, {**given, "tenants": tuple(each)}, where))


def _tenant(name: str, value: object, where: str) -> Tenant:
    options = _options({} if value is None else value, where, TENANT_KEYS)
    given = {key: _part(key, option, f"{where}.{key}") for key, option in options.items()}
    return cast(Tenant, _build(Tenant, {"name": name, **given}, where))


def _part(key: str, value: object, where: str) -> object:
    if key == "arrivals":
        return arrivals(value, where)
    return length(value, where) if key in ("prompt", "output") else value


def arrivals(value: object, where: str) -> Arrivals | AtOnce:
    """The arrival law that `value` describes; BadInput, with its path, if it describes none."""
    return cast("Arrivals | AtOnce", _law(value, ARRIVALS, where, "{poisson: {rate: 20}}"))


def length(value: object, where: str) -> Length:
    """The law of lengths that `value` describes; BadInput, with its path, if it describes none."""
    value = {"fixed": value} if is_number(value) else value
    return cast(Length, _law(value, LENGTHS, where, "a number of tokens or {geometric: {mean: 50}}"))


def _law(value: object, laws: Mapping[str, type[Any]], where: str, example: str) -> object:
    named = {value: {}} if isinstance(value, str) and value in laws else value
    if not isinstance(named, Mapping) or len(named) != 1:
        raise BadInput(f"{where} is {shown(value)}; expected one law, such as {example}")
    ((name, options),) = named.items()
    if name not in laws:
        raise BadInput(f"{where}.{name}: unknown law; did you mean {nearest(str(name), laws)}?")
    law, place = laws[name], f"{where}.{name}"
    known = fields(law)
    if known and not isinstance(options, Mapping):
        options = {known[0].name: options}
    given = _options({} if options is None else options, place, [field.name for field in known])
    for field in known:
        if field.name in given and get_type_hints(law)[field.name] is Length:
            given[field.name] = length(given[field.name], f"{place}.{field.name}")
    return _build(law, given, place)


def _build(kind: type[Any], given: dict[str, object], where: str) -> object:
    for field in fields(kind):
        if _required(field) and field.name not in given:
            raise BadInput(f"{where}.{field.name} is missing")
    try:
        return kind(**given)
    except BadInput as error:
        raise error.under(where) from None


def _required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _options(value: object, where: str, known: Any) -> dict[str, Any]:
    options = _mapping(value, where)
    known_keys(options, known, f"{where}.")
    return dict(options)


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadInput(f"{where} is {shown(value)}; expected keys and values")
    return value
