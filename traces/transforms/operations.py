"""Transforms of requests: rate, selection, lengths, arrivals.

Each takes requests sorted by arrival and returns a new list sorted by arrival; requests of equal arrival keep their
order. Random numbers come from a stream given by the caller.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from sim.request import SECOND, Nanoseconds, Request
from traces.errors import BadInput, number_within, whole_within
from traces.limits import LATEST
from traces.synthetic.arrivals import Arrivals, ArrivalTimes
from traces.synthetic.streams import Stream

CONTENT = ("prompt", "output", "declared", "tokens", "blocks", "block_size", "adapter")
MOST_STRETCHES = 1_000_000


def scale_rate(requests: Sequence[Request], factor: float) -> list[Request]:
    """The same requests at `factor` times the rate: every arrival divided by `factor`.

    The division is exact in integers and rounds to the nearest nanosecond, halves up. A float counts as the
    decimal it prints as: 1.1 is 11/10. Raises BadInput for a factor outside 1e-9 to 1e9, and when an
    arrival would pass 2^62 ns.
    """
    number_within("scale_rate", factor, 1e-9, 1e9)
    return _stretched(requests, Fraction(str(factor)), f"scale_rate is {factor}")


def rate(requests: Sequence[Request], target: float) -> list[Request]:
    """The same requests at `target` requests per second: their number over the time from first to last arrival.

    Exact as `scale_rate`. Raises BadInput for a target outside 1e-9 to 1e9, requests that all arrive at
    once, and when an arrival would pass 2^62 ns.
    """
    number_within("rate", target, 1e-9, 1e9)
    if (now := _mean_rate(requests)) is None:
        raise BadInput(f"rate: all {len(requests)} requests arrive at once; they have no rate")
    return _stretched(requests, Fraction(str(target)) / now, f"rate is {target}")


def first(requests: Sequence[Request], n: int) -> list[Request]:
    """The first `n` requests, or all of them when there are fewer.

    Raises BadInput unless `n` is a whole number of at least 1, or when there is no request at all.
    """
    whole_within("first", n, least=1)
    return _not_empty(list(requests[:n]), "first", "no request to take")


def between(requests: Sequence[Request], start: Nanoseconds, end: Nanoseconds) -> list[Request]:
    """The requests with start <= arrival < end, their arrivals counted from `start`.

    Raises BadInput unless 0 <= start < end in whole nanoseconds, or when no request arrives in that time.
    """
    whole_within("between.start", start, least=0, most=LATEST)
    whole_within("between.end", end, least=0, most=LATEST)
    if end <= start:
        raise BadInput(f"between.end is {end} ns; expected later than between.start, {start} ns")
    inside = [
        replace(request, arrival=request.arrival - start) for request in requests if start <= request.arrival < end
    ]
    return _not_empty(inside, "between", f"no request arrives from {start} ns to before {end} ns")


def warm_up(requests: Sequence[Request], lasts: Nanoseconds) -> list[Request]:
    """The requests that arrive after the first `lasts` nanoseconds, their arrivals counted from there.

    Raises BadInput for a time below 0, or when no request arrives so late.
    """
    whole_within("warm_up", lasts, least=0, most=LATEST)
    late = [replace(request, arrival=request.arrival - lasts) for request in requests if request.arrival >= lasts]
    return _not_empty(late, "warm_up", f"no request arrives at {lasts} ns or later")


def thin(requests: Sequence[Request], share: float, stream: Stream) -> list[Request]:
    """Each request independently with probability `share`; the choice depends only on its id and the stream.

    Raises BadInput for a share outside 0 to 1, or when none is left.
    """
    return _chosen(requests, "thin", share, stream, lambda request: request.id)


def sample(
    requests: Sequence[Request], share: float, stream: Stream, sessions: Mapping[str, str] | None = None
) -> list[Request]:
    """Whole sessions, each with probability `share`; `sessions` gives the session of a request's id.

    A request without session is a session of its own. Raises BadInput for a share outside 0 to 1, or when none is
    left.
    """
    known = sessions or {}
    return _chosen(requests, "sample", share, stream, lambda request: known.get(request.id, request.id))


def resample(requests: Sequence[Request], length: Nanoseconds, stream: Stream) -> list[Request]:
    """A bootstrap sample: stretches of `length` nanoseconds of the requests, drawn at random with replacement.

    The circular block bootstrap (Politis and Romano 1992): a stretch may begin at any time and continues at the start
    when it reaches the end, so all requests are equally likely; requests within `length` of each other stay together.
    There are as many stretches as fit the time from 0 to the last arrival, at least one. The request `a` in the third
    stretch gets the id `a#3`, and its session likewise, so a session cut by the end of a stretch becomes two.
    Raises BadInput for a length below 1 ns, for more than MOST_STRETCHES, or when no request is left.
    """
    whole_within("resample", length, least=1, most=LATEST)
    span = requests[-1].arrival + 1 if requests else 1
    arrivals = [request.arrival for request in requests]
    length = min(length, span)
    stretches = max(round(span / length), 1)
    if stretches > MOST_STRETCHES:
        raise BadInput(f"resample is {length} ns, for {stretches:,} stretches; expected at most {MOST_STRETCHES:,}")
    starts = stream.generator().integers(0, span, stretches).tolist()
    drawn = []
    for place, start in enumerate(starts):
        first, end = bisect_left(arrivals, start), bisect_left(arrivals, start + length)
        again = bisect_left(arrivals, start + length - span)
        for shift, chosen in ((start, requests[first:end]), (start - span, requests[:again])):
            drawn += [
                replace(
                    request,
                    id=f"{request.id}#{place + 1}",
                    session=request.session and f"{request.session}#{place + 1}",
                    arrival=request.arrival - shift + place * length,
                )
                for request in chosen
            ]
    return _not_empty(drawn, "resample", "no request came in the stretches that were drawn")


def shuffle_lengths(requests: Sequence[Request], stream: Stream) -> list[Request]:
    """The same arrivals, with lengths and prompt contents permuted at random.

    A request's prompt and output stay together; its id, tenant and priority stay with the arrival.
    """
    dealt = stream.generator().permutation(len(requests)).tolist()
    return [
        replace(request, **{name: getattr(requests[other], name) for name in CONTENT})
        for request, other in zip(requests, dealt, strict=True)
    ]


def cap_lengths(requests: Sequence[Request], prompt: int | None = None, output: int | None = None) -> list[Request]:
    """The same requests with prompts of at most `prompt` tokens and outputs, and limits, of at most `output`.

    A shortened prompt keeps its beginning. Raises BadInput for a cap below 1, or if neither is given.
    """
    if prompt is None and output is None:
        raise BadInput("cap_lengths.prompt is missing; expected prompt, output or both")
    for name, most in (("prompt", prompt), ("output", output)):
        if most is not None:
            whole_within(f"cap_lengths.{name}", most, least=1)
    return [_cut(_shortened(request, output), prompt) for request in requests]


def redraw_arrivals(
    requests: Sequence[Request], law: Callable[[float | None], Arrivals], stream: Stream
) -> list[Request]:
    """The same requests, in their order, with arrivals drawn from `law(rate)`, where `rate` is their mean rate (1/s).

    The rate is None if they all arrive at one time. Raises BadInput if too few requests arrive before 2^62 ns.
    """
    rate = _mean_rate(requests)
    drawn = law(None if rate is None else float(rate))
    clock = ArrivalTimes(drawn, drawn.rate, stream)
    horizon = min(LATEST, int(len(requests) / drawn.rate * SECOND) + 1)
    while len(times := clock.until(horizon)) < len(requests):
        if horizon == LATEST:
            raise BadInput(f"redraw_arrivals: only {len(times)} of {len(requests)} requests arrive in 146 years")
        horizon = min(LATEST, horizon + horizon // 4 + 1)
    return [replace(request, arrival=time) for request, time in zip(requests, times.tolist(), strict=False)]


def jitter(requests: Sequence[Request], width: Nanoseconds, stream: Stream) -> list[Request]:
    """Each request delayed by a uniform time from 0 to below `width` nanoseconds, for a trace with coarse ticks.

    Raises BadInput for a width below 1.
    """
    whole_within("jitter", width, least=1, most=LATEST // 2)
    later = stream.generator().integers(0, width, len(requests)).tolist()
    moved = [replace(request, arrival=request.arrival + by) for request, by in zip(requests, later, strict=True)]
    return sorted(moved, key=lambda request: request.arrival)


def merge(parts: Mapping[str, Sequence[Request]]) -> list[Request]:
    """The requests of several workloads; one without a tenant (`default`) gets the name of its part as tenant.

    At equal arrivals they are in the order of the parts. Ids, sessions and block ids become "NAME-ID": prompts of two
    parts share no content.
    """
    both = [
        replace(
            request,
            id=f"{name}-{request.id}",
            tenant=name if request.tenant == "default" else request.tenant,
            session=f"{name}-{request.session}" if request.session else "",
            blocks=tuple(f"{name}-{block}" for block in request.blocks),
        )
        for name, requests in parts.items()
        for request in requests
    ]
    return sorted(both, key=lambda request: request.arrival)


def _stretched(requests: Sequence[Request], factor: Fraction, named: str) -> list[Request]:
    up, down = factor.as_integer_ratio()
    arrivals = [(2 * request.arrival * down + up) // (2 * up) for request in requests]
    if arrivals and arrivals[-1] > LATEST:
        raise BadInput(f"{named}; the last arrival would be after {LATEST} ns")
    return [replace(request, arrival=arrival) for request, arrival in zip(requests, arrivals, strict=True)]


def _mean_rate(requests: Sequence[Request]) -> Fraction | None:
    """Requests per second from the first arrival to the last; None if they are at one time."""
    span = requests[-1].arrival - requests[0].arrival if requests else 0
    return Fraction(len(requests) * SECOND, span) if span else None


def _chosen(
    requests: Sequence[Request], name: str, share: float, stream: Stream, key: Callable[[Request], str]
) -> list[Request]:
    number_within(name, share, 0, 1)
    kept = [request for request in requests if _uniform(stream, key(request)) < share]
    return _not_empty(kept, name, f"no request is left of {len(requests)}")


def _uniform(stream: Stream, key: str) -> float:
    """A uniform number from 0 to below 1 that depends only on the stream and `key`."""
    digest = hashlib.sha256(f"{stream.seed}/{stream.name}/{key}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) * 2.0**-53


def _shortened(request: Request, output: int | None) -> Request:
    if output is None or request.max_output <= output:
        return request
    return replace(request, output=min(request.output, output), declared=output if request.declared else 0)


def _cut(request: Request, prompt: int | None) -> Request:
    """The request with a shorter prompt; a block that becomes partial gets another id."""
    if prompt is None or request.prompt <= prompt:
        return request
    tokens = None if request.tokens is None else request.tokens[:prompt]
    blocks = request.blocks
    if blocks:
        full, rest = divmod(prompt, request.block_size)
        blocks = (*blocks[:full], *([f"{blocks[full]}[:{rest}]"] if rest else []))
    return replace(request, prompt=prompt, tokens=tokens, blocks=blocks)


def _not_empty(requests: list[Request], name: str, reason: str) -> list[Request]:
    if not requests:
        raise BadInput(f"{name}: {reason}")
    return requests
