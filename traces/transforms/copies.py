"""Transforms that copy requests: more or fewer of a tenant's, and all of them again until a time.

A copy is another request with the same lengths: the id of the second copy ends in `#2`, its session's likewise, and
its prompt shares content with prompts of the same copy only. Requests are sorted by arrival, before and after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sim.request import Nanoseconds, Request
from traces.errors import BadInput, nearest, number_within, whole_within
from traces.limits import LATEST
from traces.synthetic.streams import Stream

MOST_COPIES = 10_000


def scale_tenants(
    requests: Sequence[Request], times: Mapping[str, float], stream: Stream, sessions: Mapping[str, str] | None = None
) -> list[Request]:
    """`times` as many requests of each tenant named, over the same time; other tenants stay as they are.

    Sessions are kept, copied or left out whole; a request without one is a session of its own, and `sessions` gives
    those by a request's id. With 2.5 each session comes twice, and a third time with probability 1/2; 0 removes the
    tenant. A copied session is later by a uniform time from 0 to the next beginning of a session of its tenant, so
    that copies follow the tenant's course over time without coming at once. Raises BadInput for a tenant that no
    request has, for a number outside 0 to MOST_COPIES, and when no request is left.
    """
    present = dict.fromkeys(request.tenant for request in requests)
    for name, number in times.items():
        if name not in present:
            raise BadInput(f"tenants.{name}: no request of this tenant; did you mean {nearest(name, present)}?")
        number_within(f"tenants.{name}.times", number, 0, MOST_COPIES)
    found = [request for request in requests if request.tenant not in times]
    for name, number in times.items():
        grouped = _sessions([request for request in requests if request.tenant == name], sessions or {})
        draws = (stream / name).generator()
        gaps = _until_next([group[0].arrival for group in grouped])
        for copy in range(1, int(-(-number // 1)) + 1):
            kept = draws.random(len(grouped)) < number - (copy - 1)
            later = [0] * len(grouped) if copy == 1 else (draws.random(len(grouped)) * gaps).astype(int).tolist()
            for group, keep, delay in zip(grouped, kept.tolist(), later, strict=True):
                found += [_copy(request, copy, delay) for request in group if keep]
    if not found:
        raise BadInput(f"tenants: no request is left of {len(requests)}")
    return sorted(found, key=lambda request: request.arrival)


def repeat_until(requests: Sequence[Request], end: Nanoseconds) -> list[Request]:
    """The requests again and again, each time after the one before, as far as they arrive before `end`.

    One round lasts from 0 to the last arrival and a mean gap between arrivals. Raises BadInput for an `end` below
    1 ns, for requests that arrive at once, and for more than MOST_COPIES rounds.
    """
    whole_within("repeat_until", end, least=1, most=LATEST)
    span = requests[-1].arrival - requests[0].arrival if requests else 0
    if not span:
        raise BadInput(f"repeat_until: all {len(requests)} requests arrive at once; expected two times of arrival")
    lasts = requests[-1].arrival + max(span // (len(requests) - 1), 1)
    rounds = -(-end // lasts)
    if rounds > MOST_COPIES:
        raise BadInput(f"repeat_until: {rounds:,} rounds of {lasts} ns; expected at most {MOST_COPIES:,}")
    copies = [_copy(request, number + 1, number * lasts) for number in range(rounds) for request in requests]
    return [request for request in copies if request.arrival < end]


def _copy(request: Request, number: int, delay: Nanoseconds) -> Request:
    """Copy `number` of a request, `delay` ns later; the first is the request."""
    if number == 1:
        return request
    return replace(
        request,
        id=f"{request.id}#{number}",
        arrival=request.arrival + delay,
        session=request.session and f"{request.session}#{number}",
        adapter=f"{request.adapter}#{number}" if request.tokens or request.blocks else request.adapter,
    )


def _sessions(requests: Sequence[Request], known: Mapping[str, str]) -> list[list[Request]]:
    """The requests of each session, the sessions in the order of their first arrivals."""
    groups: dict[tuple[str, str], list[Request]] = {}
    for request in requests:
        session = request.session or known.get(request.id, "")
        groups.setdefault(("session", session) if session else ("request", request.id), []).append(request)
    return list(groups.values())


def _until_next(starts: list[Nanoseconds]) -> list[Nanoseconds]:
    """ns from each start to the next one; 0 after the last."""
    return [after - start for start, after in zip(starts, [*starts[1:], *starts[-1:]], strict=True)]
