"""Parse the mapping in a scenario into a synthetic workload.

    {requests: 1000, arrivals: {poisson: {rate: 20}}, prompt: 512, output: {lognormal: {mean: 200, cv: 1}}}

A law is written as {name: options}. A number where a length is expected means `fixed`; options that are not a mapping
are the value of the law's first option (`{geometric: 50}`, `{empirical: [1, 2]}`); a law without options can be
written as its name alone (`at_once`). Durations, the values under the keys DURATIONS, are integer nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, cast, get_args, get_type_hints

from traces.errors import BadInput, is_number, known_keys, nearest, shown
from traces.synthetic.arrivals import Arrivals, AtOnce, Batches, Gamma, Poisson, Ticks, Weibull
from traces.synthetic.empirical_lengths import Empirical, Quantiles
from traces.synthetic.lengths import (
    Bimodal,
    Exponential,
    Fixed,
    Geometric,
    Lognormal,
    Pareto,
    Uniform,
    Zipf,
)
from traces.synthetic.modulated import Diurnal, Markov, Piece, Piecewise
from traces.synthetic.spec import Patience, Population, Prefixes, Sessions, Synthetic, Tenant
from traces.synthetic.token_counts import Length

ARRIVALS: dict[str, type[Any]] = {
    "poisson": Poisson,
    "gamma": Gamma,
    "weibull": Weibull,
    "markov": Markov,
    "diurnal": Diurnal,
    "piecewise": Piecewise,
    "batches": Batches,
    "ticks": Ticks,
}
FOR_ALL: dict[str, type[Any]] = {**ARRIVALS, "at_once": AtOnce}
LENGTHS: dict[str, type[Any]] = {
    "fixed": Fixed,
    "uniform": Uniform,
    "lognormal": Lognormal,
    "exponential": Exponential,
    "geometric": Geometric,
    "pareto": Pareto,
    "zipf": Zipf,
    "bimodal": Bimodal,
    "empirical": Empirical,
    "quantiles": Quantiles,
}
DURATIONS = frozenset(["duration", "lasts", "every", "period", "peak", "think"])
RECORDS: tuple[type[Any], ...] = (Sessions, Prefixes, Patience, Population, Piece)


def parse(mapping: Mapping[str, object], where: str = "synthetic") -> Synthetic:
    """The workload that `mapping` describes.

    Raises BadInput, with the path of the key from `where` on, for an unknown key or law, a missing or contradictory
    one, and a value of the wrong type or out of range.
    """
    options = _options(mapping, where, [field.name for field in fields(Synthetic)])
    tenants = _mapping(options.pop("tenants", {}), f"{where}.tenants")
    given = _values(Synthetic, options, where)
    each = [_tenant(str(name), value, f"{where}.tenants.{name}") for name, value in tenants.items()]
    return cast(Synthetic, _build(Synthetic, {**given, "tenants": tuple(each)}, where))


def arrivals(value: object, where: str) -> Arrivals | AtOnce:
    """Parse an arrival law. Raises BadInput, with the path `where`, for anything else."""
    return cast("Arrivals | AtOnce", _law(value, FOR_ALL, where, "{poisson: {rate: 20}}"))


def length(value: object, where: str) -> Length:
    """Parse a law of lengths. Raises BadInput, with the path `where`, for anything else."""
    value = {"fixed": value} if is_number(value) else value
    return cast(Length, _law(value, LENGTHS, where, "a number of tokens or {geometric: {mean: 50}}"))


def _tenant(name: str, value: object, where: str) -> object:
    known = [field.name for field in fields(Tenant) if field.name != "name"]
    options = _options({} if value is None else value, where, known)
    return _build(Tenant, {"name": name, **_values(Tenant, options, where)}, where)


def _law(value: object, laws: Mapping[str, type[Any]], where: str, example: str) -> object:
    named = {value: {}} if isinstance(value, str) and value in laws else value
    if not isinstance(named, Mapping) or len(named) != 1:
        raise BadInput(f"{where} is {shown(value)}; expected one law, such as {example}")
    ((name, options),) = named.items()
    if name not in laws:
        raise BadInput(f"{where}.{name}: unknown law; did you mean {nearest(str(name), laws)}?")
    law, place = laws[name], f"{where}.{name}"
    known = fields(law)
    if known and options is not None and not isinstance(options, Mapping):
        options = {known[0].name: options}
    return _record(law, {} if options is None else options, place)


def _record(kind: type[Any], value: object, where: str) -> object:
    options = _options(value, where, [field.name for field in fields(kind)])
    return _build(kind, _values(kind, options, where), where)


def _values(kind: type[Any], options: Mapping[str, object], where: str) -> dict[str, object]:
    """The options of a law or record, each parsed by the type of its field."""
    hints = get_type_hints(kind)
    return {name: _value(hints[name], value, f"{where}.{name}") for name, value in options.items()}


def _value(hint: Any, value: object, where: str) -> object:
    held = get_args(hint) or (hint,)
    if Length in held:
        return length(value, where)
    if AtOnce in held:
        return arrivals(value, where)
    if Arrivals in held:
        return _law(value, ARRIVALS, where, "{poisson: {rate: 20}}")
    for record in RECORDS:
        if record in held and Ellipsis not in held:
            return _record(record, value, where)
        if record in held and isinstance(value, list | tuple):
            return tuple(_record(record, one, f"{where}.{place}") for place, one in enumerate(value))
    return value


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
