"""Checks of a synthetic workload's size before it is generated. Limits can be lifted with `allow_large`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sim.request import SECOND
from traces.errors import TooLarge
from traces.limits import MOST_BLOCKS, MOST_REQUESTS
from traces.synthetic.arrivals import Arrivals, AtOnce, Poisson
from traces.synthetic.spec import Synthetic, Tenant

Integers = NDArray[np.int64]


def rates(spec: Synthetic, tenants: Sequence[Tenant]) -> list[tuple[Arrivals, float]]:
    """The law of arrival of each tenant, and its rate."""
    common = Poisson(1.0) if isinstance(spec.arrivals, AtOnce) else spec.arrivals
    total = sum(tenant.share for tenant in tenants)
    laws = [cast(Arrivals, tenant.arrivals or common) for tenant in tenants]
    return [
        (law, law.rate if tenant.arrivals is not None else law.rate * tenant.share / total)
        for law, tenant in zip(laws, tenants, strict=True)
    ]


def check_arrivals(spec: Synthetic, tenants: Sequence[Tenant]) -> None:
    """Raise TooLarge for more than MOST_REQUESTS requested or expected arrivals."""
    if spec.requests is not None and spec.requests > MOST_REQUESTS:
        raise TooLarge(f"synthetic.requests is {spec.requests:,}", MOST_REQUESTS)
    if spec.duration is None:
        return
    rate = sum(each for _, each in rates(spec, tenants))
    seconds = spec.duration / SECOND
    expected = round(rate * seconds)
    if expected > MOST_REQUESTS:
        raise TooLarge(
            f"synthetic.duration is {seconds:g} s, in which {expected:,} requests arrive at {rate:g}/s", MOST_REQUESTS
        )


def check_turns(turns: Integers) -> None:
    """Raise TooLarge for sessions that have more than MOST_REQUESTS turns together."""
    total = int(turns.sum())
    if total > MOST_REQUESTS:
        each = total / len(turns)
        raise TooLarge(
            f"synthetic.sessions: {len(turns):,} of {each:,.6g} turns each are {total:,} requests", MOST_REQUESTS
        )


def check_blocks(tenants: Sequence[Tenant], owners: Integers, prompts: Integers, size: int) -> None:
    """Raise TooLarge for more than MOST_BLOCKS blocks in the prompts of tenants with sessions or prefixes."""
    share = np.array([tenant.sessions is not None or tenant.prefixes is not None for tenant in tenants])
    known = prompts[share[owners]]
    count = int((-(-known // size)).sum())
    if count > MOST_BLOCKS:
        found = f"synthetic: {len(known):,} prompts that share content have {count:,} blocks of {size} tokens"
        raise TooLarge(found, MOST_BLOCKS)
