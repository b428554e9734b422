"""Requests written out one by one, as a scenario lists them. Knows nothing of files or durations as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import SupportsInt, cast

from sim.request import Request
from traces.errors import BadInput, known_keys, shown, whole_within
from traces.limits import LATEST, MAX_TOKENS

KEYS = ("id", "arrival", "prompt", "output", "max_output", "tenant")


def parse(entries: Sequence[Mapping[str, object]], where: str = "requests") -> list[Request]:
    """The requests that `entries` describe, by arrival; entries of equal arrival keep their order.

    An entry has `output` (tokens) and may have `id` (default: its position, "1" for the first), `arrival`
    (integer nanoseconds, 0), `prompt` (tokens, 1), `max_output` (tokens, the output) and `tenant`
    ("default"). Numbers serve as ids and tenant names too. Raises BadInput naming the entry, counted from 0
    as in `requests.0.output`, for a missing, unknown or impossible value and for an id that an earlier one has.
    """
    if isinstance(entries, str) or not isinstance(entries, Sequence):
        raise BadInput(f"{where} is {shown(entries)}; expected a list of requests")
    if not entries:
        raise BadInput(f"{where}: the list is empty; expected at least one request")
    positions: dict[str, int] = {}
    requests = []
    for position, entry in enumerate(entries):
        place = f"{where}.{position}"
        request = _request(entry, place, default_id=str(position + 1))
        first = positions.setdefault(request.id, position)
        if first != position:
            raise BadInput(f"{place}.id is {shown(request.id)}, which {where}.{first} has; expected a new one")
        requests.append(request)
    return sorted(requests, key=lambda request: request.arrival)


def _request(entry: Mapping[str, object], place: str, default_id: str) -> Request:
    if not isinstance(entry, Mapping):
        raise BadInput(f"{place} is {shown(entry)}; expected keys and values")
    known_keys(entry, KEYS, f"{place}.")
    if "output" not in entry:
        raise BadInput(f"{place}.output is missing; expected a whole number of tokens")
    output = _whole(entry, "output", place, least=1)
    return Request(
        id=_name(entry, "id", place, default_id),
        arrival=_whole(entry, "arrival", place, least=0, most=LATEST, default=0),
        prompt=_whole(entry, "prompt", place, least=1, default=1),
        output=output,
        tenant=_name(entry, "tenant", place, "default"),
        max_output=_whole(entry, "max_output", place, least=output, default=output),
    )


def _whole(
    entry: Mapping[str, object],
    key: str,
    place: str,
    least: int,
    most: int = MAX_TOKENS,
    default: int = 0,
) -> int:
    value = entry.get(key, default)
    whole_within(f"{place}.{key}", value, least, most)
    return int(cast(SupportsInt, value))


def _name(entry: Mapping[str, object], key: str, place: str, default: str) -> str:
    value = entry.get(key, default)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise BadInput(f"{place}.{key} is {shown(value)}; expected text")
    return str(value)
