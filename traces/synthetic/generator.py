"""Requests from a synthetic workload and a seed.

Every tenant has random streams of its own: `synthetic/NAME/arrivals`, `.../prompt`, `.../output` and, where needed,
`.../turns`, `.../think`, `.../prefix` and `.../patience`. So its k-th request (or session) does not depend on other
tenants or on the end of the workload, except for its arrival, which scales with the tenant's share of the rate.
Lengths of shared system prompts come from `synthetic/prefixes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sim.request import ENDLESS, SECOND, Nanoseconds, Patience, Request
from traces.errors import BadInput
from traces.limits import LATEST, MAX_TOKENS
from traces.synthetic.arrivals import ArrivalTimes, AtOnce, gamma_gaps
from traces.synthetic.content import blocks
from traces.synthetic.size_limits import check_arrivals, check_blocks, check_turns, rates
from traces.synthetic.spec import DEFAULT_BLOCK_SIZE, Sessions, Synthetic, Tenant, laws
from traces.synthetic.streams import Stream
from traces.synthetic.token_counts import BELOW_ONE, Length, ranks

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Sent:
    """The requests of one tenant, by arrival, as columns of equal length.

    `number` counts its requests, or its sessions, from 1; `turn` counts the requests of a session from 1; `think` is
    the time (ns) after the turn before, 0 for the first; `prompt` and `output` are in tokens, of which the first
    `shared` tokens of the prompt are those of system prompt `group`; `patience` is the time (ns) after which the
    client gives up, 0 for never.
    """

    number: Integers
    turn: Integers
    think: Integers
    prompt: Integers
    output: Integers
    group: Integers
    shared: Integers
    patience: Integers


PROMPT = list(Sent.__annotations__).index("prompt")


class TenantTraffic:
    """One tenant: its arrival times as far as requested, and its requests."""

    def __init__(self, tenant: Tenant, clock: ArrivalTimes, stream: Stream, prefixes: Stream) -> None:
        self.tenant = tenant
        self.clock = clock
        self.stream = stream
        self.prefixes = prefixes

    def until(self, horizon: Nanoseconds) -> Integers:
        """All its arrival times up to and including `horizon`."""
        return self.clock.until(horizon)

    def sent(self, n: int) -> Sent:
        """Its first `n` requests."""
        prompts, outputs = self.lengths(n)
        group, shared = self.system_prompts(n)
        ones = np.ones(n, dtype=np.int64)
        return Sent(np.arange(1, n + 1), ones, 0 * ones, prompts + shared, outputs, group, shared, self.patience(n))

    def lengths(self, n: int) -> tuple[Integers, Integers]:
        """Own tokens of the first `n` prompts, and outputs."""
        return drawn_together(*laws(self.tenant), self.tenant.correlation, self.stream, n)

    def system_prompts(self, n: int) -> tuple[Integers, Integers]:
        """Group and length of the system prompt of the first `n` requests or sessions; 0 and 0 without prefixes."""
        given = self.tenant.prefixes
        if given is None:
            return np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        group = ranks((self.stream / "prefix").generator().random(n), given.skew, given.groups)
        return group, given.tokens.sample(self.prefixes, given.groups)[group]

    def patience(self, n: int) -> Integers:
        """The times (ns) after which the clients of the first `n` requests give up, 0 for never."""
        given = self.tenant.patience
        if given is None:
            return np.zeros(n, dtype=np.int64)
        waits = (self.stream / "patience").generator().standard_exponential(n) * given.lasts
        gives_up = (self.stream / "patience/share").generator().random(n) < given.share
        return np.where(gives_up, np.maximum(np.rint(waits), 1), 0).astype(np.int64)


class SessionTraffic(TenantTraffic):
    """One tenant whose arrivals are sessions of several turns."""

    def __init__(
        self, tenant: Tenant, clock: ArrivalTimes, stream: Stream, prefixes: Stream, allow_large: bool
    ) -> None:
        super().__init__(tenant, clock, stream, prefixes)
        self.sessions = cast(Sessions, tenant.sessions)
        self.allow_large = allow_large

    def until(self, horizon: Nanoseconds) -> Integers:
        starts = self.clock.until(horizon)
        turns = self.sessions.turns.sample(self.stream / "turns", len(starts))
        if not self.allow_large:
            check_turns(turns)
        number, turn = np.repeat(np.arange(1, len(starts) + 1), turns), counted(turns)
        think = self.thinking(turn)
        times = starts[number - 1] + within_session(think, turn)
        group, shared = self.system_prompts(len(starts))
        own, output = self.lengths(len(turn))
        history = within_session(own + output, turn)
        prompt = shared[number - 1] + history - output
        if prompt.size and prompt.max() > MAX_TOKENS:
            raise BadInput(f"{self.stream.name}: a prompt of {prompt.max()} tokens; expected at most {MAX_TOKENS}")
        fits = times <= horizon
        if self.sessions.context is not None:
            fits &= within_session((prompt + output > self.sessions.context).astype(np.int64), turn) == 0
        order = np.flatnonzero(fits)[np.argsort(times[fits], kind="stable")]
        session, patience = number[order] - 1, self.patience(len(turn))[order]
        lengths = (prompt[order], output[order])
        self.all = Sent(number[order], turn[order], think[order], *lengths, group[session], shared[session], patience)
        return times[order]

    def thinking(self, turn: Integers) -> Integers:
        """The time (ns) from the turn before to each turn; 0 for the first."""
        cv, generator = self.sessions.think_cv, (self.stream / "think").generator()
        gaps = gamma_gaps(generator, cv, len(turn)) if cv else np.ones(len(turn))
        waits = np.where(turn > 1, np.rint(gaps * self.sessions.think), 0.0)
        if waits.sum() > LATEST:
            raise BadInput(f"{self.stream.name}: think times of more than {LATEST} ns in all; expected shorter ones")
        return waits.astype(np.int64)

    def sent(self, n: int) -> Sent:
        columns = (getattr(self.all, name) for name in Sent.__annotations__)
        return Sent(*(column[:n] for column in columns))


def generate(spec: Synthetic, seed: int, allow_large: bool = False) -> list[Request]:
    """The requests of the workload, sorted by arrival; at equal arrivals in the order of the tenants.

    Ids count from "1"; with tenants they are "NAME-1", "NAME-2", ... of each; turns of sessions are "1.1",
    "1.2", ... Arrivals count from the start of the processes, so the first is after 0 (all are 0 under
    at_once). Raises BadInput when nothing arrives in the duration, when fewer than `requests` arrive before
    2^62 ns, and when a prompt or output above 2^31 is drawn; TooLarge, unless `allow_large`, for more than
    MOST_REQUESTS and for prompts of more than MOST_BLOCKS.
    """
    tenants = spec.members()
    if not allow_large:
        check_arrivals(spec, tenants)
    sources = _sources(spec, tenants, Stream(seed, "synthetic"), allow_large)
    times, owners = _arrivals(spec, sources)
    each = [source.sent(int((owners == owner).sum())) for owner, source in enumerate(sources)]
    places = np.empty(len(owners), dtype=np.int64)
    places[np.argsort(owners, kind="stable")] = np.arange(len(owners))
    columns = [np.concatenate([getattr(sent, name) for sent in each])[places] for name in Sent.__annotations__]
    size = spec.block_size or DEFAULT_BLOCK_SIZE
    if not allow_large:
        check_blocks(tenants, owners, columns[PROMPT], size)
    requests = []
    for time, owner, number, turn, think, prompt, output, group, shared, patience in zip(
        times.tolist(), owners.tolist(), *(column.tolist() for column in columns), strict=True
    ):
        tenant = tenants[owner]
        name = f"{tenant.name}-{number}" if spec.named else str(number)
        ids: tuple[int, ...] = ()
        if tenant.sessions is not None or tenant.prefixes is not None:
            family = 0 if tenant.prefixes is spec.prefixes else owner + 1
            group, whose = group * (len(tenants) + 1) + family, number * len(tenants) + owner
            ids = blocks(prompt, shared, group, whose, turn, size)
        requests.append(
            Request(
                f"{name}.{turn}" if tenant.sessions else name,
                time,
                prompt,
                output,
                tenant.name,
                blocks=ids,
                block_size=size if ids else 0,
                patience=Patience(cancel_after=patience) if patience else ENDLESS,
                session=name if tenant.sessions else "",
                think=think if turn > 1 else None,
            )
        )
    return requests


def sessions(spec: Synthetic, requests: Sequence[Request]) -> dict[str, str]:
    """The session of each id, "1" for "1.2", of the tenants that have sessions."""
    those = {tenant.name for tenant in spec.members() if tenant.sessions is not None}
    return {request.id: request.id.rpartition(".")[0] for request in requests if request.tenant in those}


def drawn_together(
    prompt: Length, output: Length, correlation: float | None, stream: Stream, n: int
) -> tuple[Integers, Integers]:
    """`n` prompts and outputs; with a correlation, by inversion of correlated normal variables."""
    if correlation is None:
        return prompt.sample(stream / "prompt", n), output.sample(stream / "output", n)
    from scipy.special import ndtr

    first = (stream / "prompt").generator().standard_normal(n)
    other = (stream / "output").generator().standard_normal(n)
    second = correlation * first + (1 - correlation**2) ** 0.5 * other
    shares = (np.minimum(ndtr(normal), BELOW_ONE) for normal in (first, second))
    return prompt.quantile(next(shares)), output.quantile(next(shares))


def counted(turns: Integers) -> Integers:
    """1, 2, ... up to each of `turns`, concatenated: [2, 3] gives 1 2 1 2 3."""
    ends = np.cumsum(turns)
    count: Integers = np.arange(1, int(turns.sum()) + 1) - np.repeat(ends - turns, turns)
    return count


def within_session(values: Integers, turn: Integers) -> Integers:
    """Cumulative sums of `values` within each session."""
    sums: Integers = np.cumsum(values)
    starts = np.flatnonzero(turn == 1)
    before = np.concatenate([[0], sums])[starts]
    since: Integers = sums - np.repeat(before, np.diff(np.append(starts, len(turn))))
    return since


def _sources(spec: Synthetic, tenants: Sequence[Tenant], root: Stream, allow_large: bool) -> list[TenantTraffic]:
    sources: list[TenantTraffic] = []
    for tenant, (law, rate) in zip(tenants, rates(spec, tenants), strict=True):
        stream = root / tenant.name
        prefixes = stream / "prefixes" if tenant.prefixes is not spec.prefixes else root / "prefixes"
        clock = ArrivalTimes(law, rate, stream / "arrivals", allow_large)
        if tenant.sessions is None:
            sources.append(TenantTraffic(tenant, clock, stream, prefixes))
        else:
            sources.append(SessionTraffic(tenant, clock, stream, prefixes, allow_large))
    return sources


def _arrivals(spec: Synthetic, sources: Sequence[TenantTraffic]) -> tuple[Integers, Integers]:
    """The sorted arrival times, and the index of each request's tenant."""
    horizon = _horizon(sources, spec.requests) if spec.requests is not None else cast(int, spec.duration) - 1
    each = [source.until(horizon) for source in sources]
    times = np.concatenate(each)
    owners = np.repeat(np.arange(len(sources)), [len(mine) for mine in each])
    order = np.argsort(times, kind="stable")[: spec.requests]
    if not len(order):
        raise BadInput(f"synthetic: no request arrives within the duration of {spec.duration} ns")
    return np.zeros_like(order) if isinstance(spec.arrivals, AtOnce) else times[order], owners[order]


def _horizon(sources: Sequence[TenantTraffic], requests: int) -> Nanoseconds:
    """A time by which at least `requests` requests have arrived."""
    rate = sum(source.clock.rate for source in sources)
    sessions = any(source.tenant.sessions for source in sources)
    goal = requests + 4 * requests**0.5
    horizon = min(LATEST, int((goal / 8 if sessions else goal) / rate * SECOND))
    while (arrived := sum(len(source.until(horizon)) for source in sources)) < requests:
        if horizon == LATEST:
            raise BadInput(f"synthetic.requests is {requests}; only {arrived} arrive in 146 years")
        horizon = min(LATEST, horizon + horizon // 4 + 1)
    return horizon
