"""Runs of a scenario in simulated time: one, or one for each of several policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING

from sim.cost.forms import StepCost
from sim.engine.planner import Planner
from sim.memory.prefix import PrefixPool
from sim.service.pools import Pool
from sim.service.service import Run, Transfer, serve
from sim.service.sessions import counts
from slotstep.runs import cache_file, costs, failures, size_limits
from slotstep.runs.build import check_blocks, replicas, scheduler
from slotstep.runs.clients import clients, limited
from slotstep.runs.policy import router
from slotstep.runs.resolution import with_policy
from slotstep.runs.result import Result
from slotstep.runs.workload import LoadedWorkload
from slotstep.runs.workload import load as load_workload

if TYPE_CHECKING:
    from sim.log.events import EventLog
    from sim.service.clients import Clients
    from slotstep.scenario.engine import Engine
    from slotstep.scenario.schema import Scenario


def run(
    scenario: Scenario,
    policy: str | None = None,
    *,
    allow_large: bool = False,
    workload: LoadedWorkload | None = None,
    progress: Callable[[int], None] | None = None,
    price: StepCost | None = None,
    watch: Callable[[Sequence[EventLog]], None] | None = None,
) -> Result:
    """Simulate a scenario.

    policy       name of the policy to run under; the scenario's own if not given
    allow_large  lift the limits of size (`slotstep.runs.size_limits`)
    workload     requests made before, in place of the scenario's workload
    progress     called now and then with the number of requests that have ended
    price        step cost in place of the scenario's; groups of replicas with a cost of their own keep it
    watch        called now and then with the logs so far; what it raises ends the run

    Raises BadInput for an unknown policy, for requests that cannot be read, for a run that makes no progress and,
    unless `allow_large`, for a run above the limits of size.
    """
    if policy is not None:
        scenario = with_policy(scenario, policy)
    if allow_large:
        scenario = scenario.model_copy(update={"allow_large": True})
    made = load_workload(scenario) if workload is None else workload
    sent = limited(made.requests, scenario.limits)
    cluster = scenario.cluster
    pools = [[(each, scheduler(each)) for each in replicas(scenario, pool)] for pool in cluster.pools]
    for each, _ in chain(*pools):
        if each.engine.prefix_cache and each.engine.radix is None:
            check_blocks(each, sent)
    caches = [made.pool for _, made in chain(*pools) if isinstance(made.pool, PrefixPool)]
    engines = cluster.engines(scenario.engine)
    alike = len({str(cache_file.identity(each)) for each in engines}) == 1
    warm_up([(each.engine, made) for each, made in chain(*pools)])
    block_size = gcd(scenario.engine.page_size, *(each.page_size for each in engines))
    with scenario.blamed("clients."):
        senders = clients(sent, scenario.clients, block_size)
    so_far = [made.log for _, made in chain(*pools)]

    def report(ended: int) -> None:
        if progress is not None:
            progress(ended)
        if watch is not None:
            watch(so_far)

    with size_limits.stopping(scenario):
        served = simulate(scenario, pools, senders, report if progress or watch else None, price)
    return Result(
        scenario,
        served.logs,
        [pool.contents() for pool in caches] if alike else [],
        made.remarks,
        [None if price and each.cost is scenario.cost else costs.profile(each) for each, _ in chain(*pools)],
        counts(senders),
        served.service_log,
        price is not None,
        served.core,
    )


def compare(scenario: Scenario, names: Sequence[str]) -> list[Result]:
    """Simulate the same requests under each of the named policies, in their order.

    Raises BadInput for an unknown policy, and as `run`.
    """
    scenarios = [with_policy(scenario, name) for name in names]
    workload = load_workload(scenario)
    return [run(each, workload=workload) for each in scenarios]


def warm_up(replicas: Sequence[tuple[Engine, Planner]]) -> None:
    """Fill the prefix caches from the files that engines name: replicas that share a file take its parts in order.

    Raises BadInput for a file that is not a cache file, and for one that does not fit the replicas.
    """
    for file in dict.fromkeys(engine.warm for engine, _ in replicas if engine.warm is not None):
        named = [(engine, made.pool) for engine, made in replicas if engine.warm == file]
        held = cache_file.read(Path(file), [engine for engine, _ in named])
        for (_, pool), contents in zip(named, held, strict=True):
            assert isinstance(pool, PrefixPool)
            pool.warm(contents)


def simulate(
    scenario: Scenario,
    pools: Sequence[Sequence[tuple[Scenario, Planner]]],
    senders: Clients,
    progress: Callable[[int], None] | None,
    price: StepCost | None = None,
) -> Run:
    """What the service did; without a service log where requests go straight to replicas that never fail.

    pools  for each pool, the scenario and the scheduler of its replicas
    """
    cluster = scenario.cluster
    again = None if scenario.clients is None else scenario.clients.retry
    usual = price or costs.cost(scenario)
    own = scenario.cost
    priced = [
        [(made, costs.with_drafts(each, usual if each.cost is own else costs.cost(each))) for each, made in members]
        for members in pools
    ]
    before_each = [router(scenario, pool) for pool in cluster.pools]
    macro = all(each.macro for each in cluster.engines(scenario.engine))
    return serve(
        senders,
        [Pool(members, before) for members, before in zip(priced, before_each, strict=True)],
        retry=failures.retry(again, scenario.seed),
        outages=failures.outages(cluster, scenario.seed),
        transfer=None if cluster.transfer is None else Transfer(**dict(cluster.transfer)),
        direct=cluster.uniform and again is None,
        macro=macro,
        progress=progress,
        bounds=size_limits.bounds(scenario),
    )
