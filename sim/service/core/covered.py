"""Which engines and clients the compiled core simulates; all others run on the Python kernel, with the same log."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from operator import length_hint

from sim.cost.forms import StepCost
from sim.engine.planner import Planner
from sim.engine.scheduler import Scheduler
from sim.memory.extents import ExtentPool
from sim.memory.pool import PagePool
from sim.policy.base import LastAdmitted, LeastUrgent, Optimistic, Order, Policy, Reserve
from sim.policy.fixed_rank import FixedRank
from sim.request import ENDLESS, Nanoseconds, Request
from sim.service.clients import Clients, ClosedLoop, Distant, OpenLoop, Window
from sim.service.core import costs


def engine(scheduler: Planner, cost: StepCost) -> bool:
    """Whether the core simulates this engine, which is empty, at this cost.

    Steps that mix prompts and decodes, without late eviction, contiguous memory, swapping and displacement. Types are
    compared exactly: what is derived from a covered class may differ.
    """
    if type(scheduler) is not Scheduler or not memory(scheduler.pool):
        return False
    config, pool = scheduler.config, scheduler.pool
    return (
        not (config.evict_late or config.harvest_late or config.contiguous or config.swap or config.preempt_for_slot)
        and policy(scheduler.policy)
        and costs.covered(cost)
        and not (scheduler.busy or scheduler.log.requests or scheduler.state.decoders.step)
        and pool.pages * pool.page_size * config.slots < costs.EXACT
    )


def memory(pool: PagePool) -> bool:
    """Whether the core counts the pages of this pool, which is empty."""
    empty = pool.free == pool.pages and not pool.cached
    return empty and type(pool) in (PagePool, ExtentPool)


def policy(given: Policy) -> bool:
    """Whether the core keeps the queue, admits and preempts as this policy."""
    admission, victim = type(given.admission), type(given.victim)
    return (
        rank(given) is not None
        and given.batch_wait is None
        and not (given.order.listeners or given.order.preempts)
        and admission in (Optimistic, Reserve)
        and victim in (LastAdmitted, LeastUrgent)
    )


def rank(given: Policy) -> FixedRank | None:
    """The order as a number for each request, if its own class says so; a class derived from that may differ."""
    method: Callable[[Order], FixedRank | None] | None = vars(type(given.order)).get("fixed_rank")
    return None if method is None else method(given.order)


def senders(clients: Clients) -> OpenLoop | ClosedLoop | None:
    """The clients without their delay, if the core sends as they do: on schedule, by a window, in a closed loop."""
    inner = clients.clients if type(clients) is Distant else clients
    if clients.delay >= costs.EXACT:
        return None
    if type(inner) is ClosedLoop:
        return inner if isinstance(inner.think, repeat) and think(inner) < costs.EXACT else None
    return inner if isinstance(inner, OpenLoop) and type(inner) in (OpenLoop, Window) else None


def think(clients: ClosedLoop) -> Nanoseconds:
    """The thinking time, where it is always the same; EXACT where it is not, or ends."""
    endless = length_hint(clients.think, -1) < 0
    return next(clients.think) if endless else costs.EXACT


def requests(given: list[Request], pool: PagePool) -> bool:
    """Whether no client gives up, and no request times out, at a certain time; no content is known to a cache."""
    if pool.remembers and any(request.tokens is not None or request.blocks for request in given):
        return False
    limits = {request.patience for request in given if request.patience is not ENDLESS}
    return all(each.cancel_after is each.queue_timeout is each.timeout is None for each in limits)
