"""Requests listed one by one in a scenario. Durations are integer nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import SupportsInt, cast

from sim.request import Patience, Request
from traces.errors import BadInput, known_keys, shown, whole_within
from traces.limits import LATEST, MAX_TOKENS

PATIENCE = ("cancel_after", "cancel_tokens", "queue_timeout", "timeout")
KEYS = (
    "id",
    "arrival",
    "prompt",
    "output",
    "max_output",
    "tenant",
    "priority",
    "tokens",
    "blocks",
    "block_size",
    "adapter",
    "session",
    "think",
    *PATIENCE,
)


def parse(entries: Sequence[Mapping[str, object]], where: str = "requests") -> list[Request]:
    """The requests that `entries` describe, sorted by arrival; entries of equal arrival keep their order.

    An entry has `output` (tokens) and may have `id` (default: its position, "1" for the first), `arrival`
    (integer nanoseconds, 0), `prompt` (tokens; the length of its content, else 1), `max_output` (tokens, the
    output), `tenant` ("default"), `priority` (0, the smaller the more urgent) and `adapter`; the prompt's content
    is a list of `tokens`, or of `blocks` of `block_size` tokens each, the last one perhaps partial. The client
    cancels after `cancel_after` ns or `cancel_tokens` tokens; `queue_timeout` and `timeout` are in ns. A turn of a
    `session` is sent `think` ns after the end of the turn before. Ids and names may be numbers. Raises BadInput
    naming the entry, counted from 0 as in `requests.0.output`, for a missing, unknown or impossible value and for an
    id that an earlier entry has.
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
    tokens = _listed(entry, "tokens", place, int)
    blocks = _listed(entry, "blocks", place, int | str)
    block_size = _block_size(entry, place)
    prompt = _whole(entry, "prompt", place, least=1, default=len(tokens) or len(blocks) * block_size or 1)
    if tokens and len(tokens) != prompt:
        raise BadInput(f"{place}.tokens has {len(tokens)} tokens; expected as many as its prompt, {prompt}")
    if blocks and len(blocks) != -(-prompt // block_size):
        raise BadInput(
            f"{place}.blocks has {len(blocks)} blocks of {block_size} tokens; "
            f"expected {-(-prompt // block_size)} for its prompt, {prompt}"
        )
    return Request(
        id=_name(entry, "id", place, default_id),
        arrival=_whole(entry, "arrival", place, least=0, most=LATEST, default=0),
        prompt=prompt,
        output=output,
        tenant=_name(entry, "tenant", place, "default"),
        declared=_whole(entry, "max_output", place, least=output) if "max_output" in entry else 0,
        priority=_whole(entry, "priority", place, least=-MAX_TOKENS),
        tokens=cast("tuple[int, ...]", tokens) or None,
        blocks=blocks,
        block_size=block_size,
        adapter=_name(entry, "adapter", place, "") if "adapter" in entry else "",
        session=_name(entry, "session", place, "") if "session" in entry else "",
        think=_think(entry, place),
        patience=_patience(entry, place),
    )


def _patience(entry: Mapping[str, object], place: str) -> Patience:
    given = [_whole(entry, key, place, least=1, most=LATEST) if key in entry else None for key in PATIENCE]
    return Patience(given[0], given[1], given[2], given[3])


def _think(entry: Mapping[str, object], place: str) -> int | None:
    if "think" not in entry:
        return None
    if "session" not in entry:
        raise BadInput(f"{place}.think is given without session; expected both, or a session alone")
    return _whole(entry, "think", place, least=0, most=LATEST)


def _listed(entry: Mapping[str, object], key: str, place: str, kind: type | UnionType) -> tuple[int | str, ...]:
    values = entry.get(key, ())
    expected = "token ids, whole numbers of at least 0" if kind is int else "block ids, whole numbers or text"
    if key in entry and (isinstance(values, str) or not isinstance(values, Sequence) or not values):
        raise BadInput(f"{place}.{key} is {shown(values)}; expected a list of {expected}")
    found = cast("Sequence[object]", values)
    for position, value in enumerate(found):
        if isinstance(value, bool) or not isinstance(value, kind) or (kind is int and cast(int, value) < 0):
            raise BadInput(f"{place}.{key}.{position} is {shown(value)}; expected {expected}")
    return cast("tuple[int | str, ...]", tuple(found))


def _block_size(entry: Mapping[str, object], place: str) -> int:
    if "blocks" not in entry:
        if "block_size" in entry:
            raise BadInput(f"{place}.block_size is given without blocks; expected both or neither")
        return 0
    if "tokens" in entry:
        raise BadInput(f"{place} has tokens and blocks; expected one of them")
    if "block_size" not in entry:
        raise BadInput(f"{place}.block_size is missing; expected how many tokens a block has")
    return _whole(entry, "block_size", place, least=1)


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
