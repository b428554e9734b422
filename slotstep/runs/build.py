"""Builds the kernel's objects for a scenario: schedulers and memory pools, and checks that they fit.

Does not depend on any policy or router; defaults are in the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sim.accounting.metrics import chosen
from sim.cost.forms import StepCost
from sim.cost.full_batch import Bound, Load, Machine, bound, bound_of_prompts
from sim.engine.apart.config import ApartConfig, RatioConfig
from sim.engine.apart.scheduler import ApartScheduler
from sim.engine.config import EngineConfig
from sim.engine.planner import Planner
from sim.engine.scheduler import Scheduler
from sim.engine.speculative.scheduler import SpeculativeScheduler
from sim.engine.speculative.speculation import Speculation
from sim.engine.static import StaticScheduler
from sim.memory.extents import ExtentPool
from sim.memory.numbered import NumberedPool, NumberedPrefixPool
from sim.memory.pool import PagePool
from sim.memory.radix import RadixPool
from sim.policy.base import BatchWait, Policy
from sim.request import Request
from slotstep.runs import costs
from slotstep.runs.policy import admission, order, router, victim
from slotstep.runs.workload import check as check_workload
from traces.synthetic.acceptance import accepted

if TYPE_CHECKING:
    from slotstep.scenario.apart import Apart
    from slotstep.scenario.cluster import Pool
    from slotstep.scenario.engine import Engine
    from slotstep.scenario.schema import Scenario


def replicas(scenario: Scenario, pool: Pool) -> list[Scenario]:
    """The scenario of each replica of a pool: with the engine and cost of its group, where the group has its own."""
    if isinstance(pool.replicas, int):
        return [scenario] * pool.replicas
    return [
        scenario.model_copy(update={"engine": group.engine, "cost": group.cost or scenario.cost})
        for group in pool.replicas
        for _ in range(group.count)
    ]


def bounds(scenario: Scenario, load: Load, price: StepCost | None = None) -> list[list[Bound]] | None:
    """The most that each replica of each pool could bear of such requests, at its step cost or at `price`.

    None for static batches.
    """
    if any(engine.batching == "static" for engine in scenario.cluster.engines(scenario.engine)):
        return None
    pools = scenario.cluster.pools
    if len(pools) == 1:
        return [bounds_of_pool(scenario, pools[0], bound, load, price)]
    decoded = replace(load, prompt=0.0, output=max(load.output - 1, 1.0))
    return [
        bounds_of_pool(scenario, pools[0], bound_of_prompts, load, price),
        bounds_of_pool(scenario, pools[1], bound, decoded, price),
    ]


def bounds_of_pool(
    scenario: Scenario,
    pool: Pool,
    most: Callable[[StepCost, Machine, Load], Bound],
    load: Load,
    price: StepCost | None,
) -> list[Bound]:
    """What `most` says of each replica of a pool."""
    found: dict[tuple[int, int], Bound] = {}
    each_one = replicas(scenario, pool)
    for each in each_one:
        key = (id(each.engine), id(each.cost))
        if key not in found:
            found[key] = most(costs.with_drafts(each, price or costs.cost(each)), machine(each.engine), load)
    return [found[id(each.engine), id(each.cost)] for each in each_one]


def machine(engine: Engine) -> Machine:
    """What bounds the batch of an engine."""
    slots, apart = engine.max_active or engine.slots, engine.apart is not None
    found = Machine(slots, engine.pages, engine.page_size, engine.token_budget, apart)
    if engine.speculation is None:
        return found
    drafts = engine.speculation.tokens
    return replace(found, drafts=drafts, brings=engine.speculation.acceptance.expected(drafts))


def check(scenario: Scenario) -> None:
    """Build everything that needs no trace and no drawn requests. Raises BadInput for what is inconsistent."""
    check_replicas(scenario)
    with scenario.blamed("metrics: "):
        chosen(scenario.metrics or ())
    for pool in scenario.cluster.pools:
        for each in replicas(scenario, pool):
            costs.with_drafts(each, costs.cost(each))
        router(scenario, pool)
    check_workload(scenario, scenario.workload)


def check_replicas(scenario: Scenario) -> None:
    """Raise BadInput for a policy that does not fit a replica's engine, or an engine that does not fit its pool."""
    for pool in scenario.cluster.pools:
        for each in replicas(scenario, pool):
            scheduler(each)
            if len(scenario.cluster.pools) > 1:
                two_phases(each)


def two_phases(scenario: Scenario) -> None:
    """Raise BadInput for an engine that cannot hand over or take over a request between prefill and decode."""
    given = scenario.engine
    if given.apart is not None:
        with scenario.blamed("engine.apart: "):
            raise ValueError("pools of prefill and decode are modelled for engines that mix both in a step")
    for key, found, expected in (("batching", given.batching, "continuous"), ("evict", given.evict, "before")):
        with scenario.blamed(f"engine.{key}: "):
            if found != expected:
                raise ValueError(f"found {found}; pools of prefill and decode need {expected}")


def check_blocks(scenario: Scenario, sent: Sequence[Request]) -> None:
    """Raise BadInput for a request whose block size neither divides the page size nor is divided by it."""
    page = scenario.engine.page_size
    for request in sent:
        size = request.block_size
        if request.blocks and size % page and page % size:
            with scenario.blamed("workload: "):
                raise ValueError(
                    f"request {request.id} has blocks of {size} tokens and the engine pages of {page}; "
                    "expected one to divide the other"
                )


def scheduler(scenario: Scenario, numbered: bool = False) -> Planner:
    """An empty scheduler with the scenario's engine and policy. Raises BadInput if they do not fit.

    numbered  pages have numbers, as a real engine needs them

    Contiguous memory is a pool of pages of one position.
    """
    engine = scenario.engine
    size = 1 if engine.memory == "contiguous" else engine.page_size
    pages = engine.pages * engine.page_size // size
    first = order(scenario)
    policy = Policy(first, admission(scenario), victim(scenario), batch_wait(engine))
    with scenario.blamed("engine: "):
        if engine.batching == "static":
            return StaticScheduler(policy, PagePool(pages, size), engine_config(scenario))
        if engine.apart is not None:
            return ApartScheduler(policy, memory(engine, pages, size, numbered), apart_config(scenario, engine.apart))
        if engine.speculation is not None:
            return SpeculativeScheduler(
                policy, memory(engine, pages, size, numbered), engine_config(scenario), speculation(scenario)
            )
        return Scheduler(policy, memory(engine, pages, size, numbered), engine_config(scenario))


def speculation(scenario: Scenario) -> Speculation:
    """How the engine of a scenario speculates."""
    given = scenario.engine.speculation
    assert given is not None
    return Speculation(given.tokens, accepted(given.acceptance, scenario.seed, given.tokens))


def batch_wait(engine: Engine) -> BatchWait | None:
    """How prompts wait for more of them; None if they do not."""
    if not engine.batch_wait_steps or not engine.batch_wait_ratio:
        return None
    return BatchWait(engine.batch_wait_steps, engine.batch_wait_ratio * engine.token_budget)


def stepwise(scenario: Scenario, numbered: bool = False) -> Scheduler:
    """As `scheduler`, for a device. Raises BadInput for passes of one kind, and for an engine that speculates."""
    made = scheduler(scenario, numbered)
    if not isinstance(made, Scheduler):
        with scenario.blamed("engine.apart: "):
            raise ValueError("a replay on a device needs steps that mix prompts and decodes")
    if isinstance(made, SpeculativeScheduler):
        with scenario.blamed("engine.speculation: "):
            raise ValueError("a replay on a device computes the tokens of the model alone; expected no speculation")
    return made


def memory(engine: Engine, pages: int, size: int, numbered: bool = False) -> PagePool:
    """The memory of an engine: `pages` pages of `size` positions, with its prefix cache if it has one.

    Raises ValueError for a radix cache whose pages should have numbers, and for such a cache beside reserved pages.
    """
    if engine.share is None:
        return (NumberedPool if numbered else PagePool)(pages, size)
    if numbered and engine.admission == "reserve":
        raise ValueError("prefix_cache: a replay on a device needs an admission rule that takes pages as needed")
    identity = repr((engine.model, engine.positions))
    if engine.radix is None:
        return (NumberedPrefixPool if numbered else ExtentPool)(pages, size, engine.share, identity)
    if numbered:
        raise ValueError("radix: a replay on a device needs a prefix cache of blocks (prefix_cache: true)")
    return RadixPool(pages, size, engine.share, **dict(engine.radix))


def apart_config(scenario: Scenario, apart: Apart) -> ApartConfig:
    """The settings of an engine with passes of one kind as the kernel takes them."""
    engine = scenario.engine
    return ApartConfig(
        slots=engine.slots,
        max_prefill_tokens=apart.max_prefill_tokens,
        chunked_prefill_size=apart.chunked_prefill_size or None,
        mixed=apart.mixed,
        prefill_interval=apart.prefill_interval,
        prefill_max_requests=apart.prefill_max_requests,
        depth=2 if engine.async_scheduling else 1,
        max_model_len=engine.max_model_len,
        ratio=RatioConfig(
            apart.initial_ratio, apart.minimum_ratio, apart.decay_passes, ahead=apart.ahead, clip=apart.clip
        ),
        by_rule=apart.admission == "rule",
        preempt_by=apart.preempt_by,
        retract_by_priority=apart.retraction == "priority",
        retract_latest=apart.retraction == "latest",
        queue_limit=scenario.limits.queue,
    )


def engine_config(scenario: Scenario) -> EngineConfig:
    """The scenario's settings as the kernel takes them; of static batching only those that apply."""
    engine, queue = scenario.engine, scenario.limits.queue
    if engine.batching == "static":
        return EngineConfig(slots=engine.slots, token_budget=engine.token_budget, queue_limit=queue)
    return EngineConfig(
        slots=engine.slots,
        token_budget=engine.token_budget,
        chunked=engine.chunked,
        evict=engine.evict,
        harvest=engine.harvest,
        contiguous=engine.memory == "contiguous",
        depth=2 if engine.async_scheduling else 1,
        max_active=engine.max_active,
        admit_every=engine.admit_every,
        chunk_limit=engine.chunk_limit,
        chunk_limit_adapts=engine.chunk_limit_adapts,
        queue_limit=queue,
        swap=engine.preemption == "swap",
        preempt_for_slot=engine.preempt_for_slot,
        max_model_len=engine.max_model_len,
    )
