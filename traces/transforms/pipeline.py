"""Parse the list of transforms in a scenario, and apply it in order.

    [{between: [60s, 600s]}, {sample: 0.1}, {rate: 5}, {cap_lengths: {prompt: 4096}}, shuffle_lengths]

An entry is {name: options}; a transform without options can be written as its name alone. Durations, the values under
the keys DURATIONS, are integer nanoseconds. Random numbers come from the stream `transforms/NAME`, those of the
second entry of that name from `transforms/NAME/2`, so they do not depend on other entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from sim.request import Request
from traces.errors import BadInput, known_keys, nearest, shown
from traces.synthetic import DURATIONS as LAW_DURATIONS
from traces.synthetic.arrivals import Arrivals
from traces.synthetic.parser import ARRIVALS, arrivals
from traces.synthetic.streams import Stream
from traces.transforms import copies, operations

TIMELESS = ("first", "thin", "sample", "tenants", "shuffle_lengths", "cap_lengths")
DRAWS = "redraw_arrivals"
DURATIONS = LAW_DURATIONS | {"between", "warm_up", "jitter", "resample", "repeat_until"}

Sessions = Mapping[str, str]
Apply = Callable[[Sequence[Request], Stream, Sessions], list[Request]]
"""A function of requests, the transform's stream, and the session by request id where known."""


def apply(
    entries: Sequence[object],
    requests: Sequence[Request],
    seed: int,
    sessions: Sessions | None = None,
    where: str = "transforms",
    timed: bool = True,
) -> list[Request]:
    """The requests after all transforms of `entries`, in order; not `timed`: the requests have no arrivals.

    Raises BadInput, with the entry's position counted from 0, for an unknown transform or option, for an error of a
    transform, such as that no request is left, and for one that needs arrivals where there are none.
    """
    found, seen = list(requests), dict[str, int]()
    for place, (name, transform) in enumerate(parse(entries, where)):
        if not timed and name not in (*TIMELESS, DRAWS):
            raise BadInput(f"{where}.{place}.{name}: the requests have no arrivals; expected {DRAWS} before it")
        timed = timed or name == DRAWS
        seen[name] = seen.get(name, 0) + 1
        stream = Stream(seed, "transforms") / name
        try:
            found = transform(found, stream / str(seen[name]) if seen[name] > 1 else stream, sessions or {})
        except BadInput as error:
            raise error.under(f"{where}.{place}") from None
    return found


def parse(entries: object, where: str = "transforms") -> list[tuple[str, Apply]]:
    """(name, function) of each entry. Raises BadInput for an unknown transform or option."""
    if isinstance(entries, str) or not isinstance(entries, Sequence):
        raise BadInput(f"{where} is {shown(entries)}; expected a list such as [{{first: 1000}}, {{rate: 5}}]")
    return [_entry(entry, f"{where}.{place}") for place, entry in enumerate(entries)]


def draws_arrivals(entries: Sequence[object]) -> bool:
    """Whether one of the transforms draws new arrivals."""
    return any(name == DRAWS for name, _ in parse(entries))


def _entry(entry: object, where: str) -> tuple[str, Apply]:
    named = {entry: None} if isinstance(entry, str) else entry
    if not isinstance(named, Mapping) or len(named) != 1:
        raise BadInput(f"{where} is {shown(entry)}; expected one transform, such as {{first: 1000}}")
    ((name, options),) = named.items()
    if name not in TRANSFORMS:
        raise BadInput(f"{where}.{name}: unknown transform; did you mean {nearest(str(name), TRANSFORMS)}?")
    return name, TRANSFORMS[name](options, f"{where}.{name}")


def _of_value(transform: Callable[[Sequence[Request], Any], list[Request]]) -> Callable[[Any, str], Apply]:
    return lambda value, _: lambda requests, stream, sessions: transform(requests, value)


def _drawn(transform: Callable[[Sequence[Request], Any, Stream], list[Request]]) -> Callable[[Any, str], Apply]:
    return lambda value, _: lambda requests, stream, sessions: transform(requests, value, stream)


def _sample(value: Any, where: str) -> Apply:
    del where
    return lambda requests, stream, sessions: operations.sample(requests, value, stream, sessions)


def _between(value: Any, where: str) -> Apply:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise BadInput(f"{where} is {shown(value)}; expected a start and an end, such as [0s, 60s]")
    start, end = value
    return lambda requests, stream, sessions: operations.between(requests, start, end)


def _tenants(value: Any, where: str) -> Apply:
    """How many times as many requests each tenant is to have."""
    if not isinstance(value, Mapping) or not value:
        raise BadInput(f"{where} is {shown(value)}; expected such as {{acme: {{times: 2}}}}")
    times = {}
    for name, options in value.items():
        if not isinstance(options, Mapping) or "times" not in options:
            raise BadInput(f"{where}.{name} is {shown(options)}; expected such as {{times: 2}}")
        known_keys(options, ("times",), f"{where}.{name}.")
        times[str(name)] = options["times"]
    return lambda requests, stream, sessions: copies.scale_tenants(requests, times, stream, sessions)


def _shuffle(value: Any, where: str) -> Apply:
    if value is not None:
        raise BadInput(f"{where} is {shown(value)}; expected no options")
    return lambda requests, stream, sessions: operations.shuffle_lengths(requests, stream)


def _cap(value: Any, where: str) -> Apply:
    if not isinstance(value, Mapping):
        raise BadInput(f"{where} is {shown(value)}; expected such as {{prompt: 4096, output: 1024}}")
    known_keys(value, ("prompt", "output"), f"{where}.")
    return lambda requests, stream, sessions: operations.cap_lengths(requests, **value)


def _redraw(value: Any, where: str) -> Apply:
    """An arrival law, whose rate may be left out."""
    named = {value: {}} if isinstance(value, str) else value

    def law(rate: float | None) -> Arrivals:
        drawn = arrivals(_with_rate(named, rate), where)
        if not isinstance(drawn, Arrivals):
            raise BadInput(f"{where} is at_once; expected a law with a rate")
        return drawn

    law(1.0)
    return lambda requests, stream, sessions: operations.redraw_arrivals(requests, law, stream)


def _with_rate(named: Any, rate: float | None) -> Any:
    """The law as written, with `rate` added if the law takes a rate and none is written.

    Raises BadInput if neither is given.
    """
    if not isinstance(named, Mapping) or len(named) != 1:
        return named
    ((name, options),) = named.items()
    takes_rate = name in ARRIVALS and any(field.name == "rate" for field in fields(ARRIVALS[name]))
    if not takes_rate or not (options is None or isinstance(options, Mapping)):
        return named
    own = options or {}
    if rate is None and "rate" not in own:
        raise BadInput(f"{DRAWS}.{name}.rate is missing; expected one, as the requests have no rate of their own")
    return {name: {"rate": rate, **own}}


TRANSFORMS: dict[str, Callable[[Any, str], Apply]] = {
    "scale_rate": _of_value(operations.scale_rate),
    "rate": _of_value(operations.rate),
    "first": _of_value(operations.first),
    "between": _between,
    "warm_up": _of_value(operations.warm_up),
    "thin": _drawn(operations.thin),
    "sample": _sample,
    "tenants": _tenants,
    "repeat_until": _of_value(copies.repeat_until),
    "resample": _drawn(operations.resample),
    "shuffle_lengths": _shuffle,
    "cap_lengths": _cap,
    "redraw_arrivals": _redraw,
    "jitter": _drawn(operations.jitter),
}
