"""From a synthetic workload and a seed to requests.

Every tenant has three streams of its own, `synthetic/NAME/arrivals`, `.../prompt` and `.../output`: its k-th
request is the same whatever other tenants there are and wherever the workload ends, but for its arrival,
which scales with the tenant's share of the rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sim.request import SECOND, Nanoseconds, Request
from traces.errors import BadInput
from traces.limits import LATEST
from traces.synthetic.arrivals import AtOnce, Clock, Poisson
from traces.synthetic.spec import Synthetic, Tenant
from traces.synthetic.streams import Stream

Integers = NDArray[np.int64]


def generate(spec: Synthetic, seed: int) -> list[Request]:
    """The requests of the workload, by arrival; ties go to the tenant named first.

    Ids count from "1"; with tenants they are "NAME-1", "NAME-2", ... of each. Arrivals count from the
    start of the processes, so the first is after 0 (all are 0 under at_once). Raises BadInput when nothing
    arrives in the duration, when fewer than `requests` arrive before 2^62 ns, and when a length above 2^31
    is drawn.
    """
    tenants = spec.tenants or (Tenant("default"),)
    streams = [Stream(seed, "synthetic") / tenant.name for tenant in tenants]
    times, owners = _arrivals(spec, tenants, streams)
    prompts, outputs, numbers = (np.empty(len(times), dtype=np.int64) for _ in range(3))
    for owner, (tenant, stream) in enumerate(zip(tenants, streams, strict=True)):
        mine = np.flatnonzero(owners == owner)
        numbers[mine] = np.arange(1, len(mine) + 1)
        prompt, output = spec.lengths_of(tenant)
        prompts[mine] = prompt.sample(stream / "prompt", len(mine))
        outputs[mine] = output.sample(stream / "output", len(mine))
    columns = [column.tolist() for column in (owners, numbers, times, prompts, outputs)]
    names = [tenant.name for tenant in tenants]
    prefixes = [f"{name}-" for name in names] if spec.tenants else [""]
    return [
        Request(f"{prefixes[owner]}{number}", time, prompt, output, names[owner])
        for owner, number, time, prompt, output in zip(*columns, strict=True)
    ]


def _arrivals(spec: Synthetic, tenants: Sequence[Tenant], streams: Sequence[Stream]) -> tuple[Integers, Integers]:
    """When each request arrives, in order, and the index of the tenant it belongs to."""
    clocks = _clocks(spec, tenants, streams)
    horizon = _horizon(clocks, spec.requests) if spec.requests is not None else cast(int, spec.duration) - 1
    each = [clock.until(horizon) for clock in clocks]
    times = np.concatenate(each)
    owners = np.repeat(np.arange(len(clocks)), [len(mine) for mine in each])
    order = np.argsort(times, kind="stable")[: spec.requests]
    if not len(order):
        raise BadInput(f"synthetic: no request arrives within the duration of {spec.duration} ns")
    return np.zeros_like(order) if isinstance(spec.arrivals, AtOnce) else times[order], owners[order]


def _clocks(spec: Synthetic, tenants: Sequence[Tenant], streams: Sequence[Stream]) -> list[Clock]:
    common = Poisson(1.0) if isinstance(spec.arrivals, AtOnce) else spec.arrivals
    total = sum(tenant.share for tenant in tenants)
    clocks = []
    for tenant, stream in zip(tenants, streams, strict=True):
        if tenant.arrivals is not None:
            clocks.append(Clock(tenant.arrivals, tenant.arrivals.rate, stream / "arrivals"))
        elif common is not None:
            clocks.append(Clock(common, common.rate * tenant.share / total, stream / "arrivals"))
    return clocks


def _horizon(clocks: Sequence[Clock], requests: int) -> Nanoseconds:
    """A time by which at least `requests` requests have arrived."""
    rate = sum(clock.rate for clock in clocks)
    horizon = min(LATEST, int((requests + 4 * requests**0.5) / rate * SECOND))
    while (arrived := sum(len(clock.until(horizon)) for clock in clocks)) < requests:
        if horizon == LATEST:
            raise BadInput(f"synthetic.requests is {requests}; only {arrived} arrive in 146 years")
        horizon = min(LATEST, horizon + horizon // 4 + 1)
    return horizon
