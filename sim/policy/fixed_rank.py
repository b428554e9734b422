"""An order that is known by a number for each request (FixedRank), so that compiled code may keep the queue.

An order has a method `fixed_rank()` if it is one; for what is derived from its class, that method does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sim.request import Request


@dataclass(frozen=True)
class FixedRank:
    """An order whose rank depends on the request and on how many tokens it has generated, and on nothing else.

    by             "arrival": as they come, a preempted sequence in front of all; "rank": the smallest first, ties by
                   arrival; "urgency": as `sim.policy.base.urgency`
    rank           of a request that has generated nothing, whenever it arrives, by "rank"
    per_generated  what each generated token adds to the rank when a preempted sequence returns
    """

    by: Literal["arrival", "rank", "urgency"]
    rank: Callable[[Request], float] | None = None
    per_generated: float = 0.0
