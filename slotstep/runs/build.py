"""From a scenario to the kernel's objects, and a run of them.

Knows no file format, policy or distribution by name; defaults are the scenario's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrate.hardware.memory_plan import capacity
from calibrate.models.architecture import from_mapping
from calibrate.profiles.profile import Profile
from policies import registry as policies
from policies import routers, victims
from policies.entry import Option
from sim.cost import forms as costs
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.engine.static import StaticScheduler
from sim.memory.numbered import NumberedPool, NumberedPrefixPool
from sim.memory.pool import PagePool
from sim.memory.prefix import PrefixPool
from sim.policy.base import Admission, Optimistic, Order, Policy, Reserve, Victim
from sim.policy.peak import Peak
from sim.policy.quantile import Quantile
from sim.policy.ratio import FewestOutputs, Ratio
from sim.request import Request
from sim.service.cluster import First, Router, simulate_cluster
from sim.service.pools import Pool
from sim.service.service import Transfer, serve
from sim.service.sessions import counts
from slotstep.runs import cache_file, failures, profiles
from slotstep.runs.result import Result
from slotstep.runs.workload import Made
from slotstep.runs.workload import check as check_workload
from slotstep.runs.workload import load as load_workload
from slotstep.runs.workload import requests as requests
from slotstep.scenario import size_limits, units
from slotstep.scenario.clients import clients, limited
from slotstep.scenario.cluster import POOLS
from slotstep.scenario.durations import plain, written
from slotstep.scenario.fields import parts
from slotstep.scenario.sections import TERMS
from traces.synthetic.parser import length

DRAWN = (np.arange(1000) + 0.5) / 1000
"""The quantiles of a law of lengths that stand for it."""

if TYPE_CHECKING:
    from sim.log.events import EventLog
    from sim.log.service_log import ServiceLog
    from sim.service.clients import Clients
    from slotstep.scenario.cluster import Station
    from slotstep.scenario.engine import Engine
    from slotstep.scenario.schema import Scenario


def run(
    scenario: Scenario,
    workload: Made | None = None,
    progress: Callable[[int], None] | None = None,
    price: costs.StepCost | None = None,
) -> Result:
    """Simulate a scenario, on the requests of `workload` if they have been made already.

    `progress` hears now and then how many requests have ended. `price` takes the place of the scenario's cost, but
    not of one that a group of replicas has of its own. Raises as `requests` does.
    """
    made = load_workload(scenario) if workload is None else workload
    sent = limited(made.requests, scenario.limits)
    cluster = scenario.cluster
    stations = [[(each, scheduler(each)) for each in replicas(scenario, station)] for station in cluster.stations]
    for each, _ in chain(*stations):
        if each.engine.prefix_cache:
            check_blocks(each, sent)
    caches = [made.pool for _, made in chain(*stations) if isinstance(made.pool, PrefixPool)]
    engines = cluster.engines(scenario.engine)
    alike = len({str(cache_file.identity(each)) for each in engines}) == 1
    warm_up([(each.engine, made) for each, made in chain(*stations)])
    block_size = gcd(scenario.engine.page_size, *(each.page_size for each in engines))
    with scenario.blamed("clients."):
        senders = clients(sent, scenario.clients, block_size)
    with size_limits.stopping(scenario):
        logs, service_log = operate(scenario, stations, senders, progress, price)
    return Result(
        scenario,
        logs,
        [pool.contents() for pool in caches] if alike else [],
        made.remarks,
        [None if price and each.cost is scenario.cost else profile(each) for each, _ in chain(*stations)],
        counts(senders),
        service_log,
    )


def warm_up(replicas: Sequence[tuple[Engine, Scheduler]]) -> None:
    """Fill the caches with what another run left: of the replicas that name one file, each with its part, in order.

    Raises BadInput for a file that is none, and for one that does not fit the replicas that name it.
    """
    for file in dict.fromkeys(engine.warm for engine, _ in replicas if engine.warm is not None):
        named = [(engine, made.pool) for engine, made in replicas if engine.warm == file]
        held = cache_file.read(Path(file), [engine for engine, _ in named])
        for (_, pool), contents in zip(named, held, strict=True):
            assert isinstance(pool, PrefixPool)
            pool.warm(contents)


def operate(
    scenario: Scenario,
    stations: Sequence[Sequence[tuple[Scenario, Scheduler]]],
    senders: Clients,
    progress: Callable[[int], None] | None,
    price: costs.StepCost | None = None,
) -> tuple[list[EventLog], ServiceLog | None]:
    """The logs of a run, and what happened between them where that is more than one way to one replica.

    `stations`: for each pool, the scenario and the scheduler of its replicas.
    """
    cluster = scenario.cluster
    again = None if scenario.clients is None else scenario.clients.retry
    usual = price or cost(scenario)
    own = scenario.cost
    priced = [[(made, usual if each.cost is own else cost(each)) for each, made in members] for members in stations]
    before_each = [router(scenario, station) for station in cluster.stations]
    macro = all(each.macro for each in cluster.engines(scenario.engine))
    if cluster.plain and again is None:
        return simulate_cluster(
            senders, priced[0], before_each[0], macro, progress, size_limits.bounds(scenario)
        ), None
    served = serve(
        senders,
        [Pool(members, before) for members, before in zip(priced, before_each, strict=True)],
        retry=failures.retry(again, scenario.seed),
        outages=failures.outages(cluster, scenario.seed),
        transfer=None if cluster.transfer is None else Transfer(**dict(cluster.transfer)),
        macro=macro,
        progress=progress,
        bounds=size_limits.bounds(scenario),
    )
    return served.logs, served.service_log


def replicas(scenario: Scenario, station: Station) -> list[Scenario]:
    """The scenario that each replica of a pool follows: with its own engine and cost, where it has them."""
    if isinstance(station.replicas, int):
        return [scenario] * station.replicas
    return [
        scenario.model_copy(update={"engine": group.engine, "cost": group.cost or scenario.cost})
        for group in station.replicas
        for _ in range(group.count)
    ]


def check_blocks(scenario: Scenario, sent: Sequence[Request]) -> None:
    """Raise BadInput for a request whose blocks do not line up with the engine's pages."""
    page = scenario.engine.page_size
    for request in sent:
        size = request.block_size
        if request.blocks and size % page and page % size:
            with scenario.blamed("workload: "):
                raise ValueError(
                    f"request {request.id} has blocks of {size} tokens and the engine pages of {page}; "
                    "expected one to divide the other"
                )


def compare(scenario: Scenario, names: Sequence[str]) -> list[Result]:
    """Simulate the same requests under each of the policies named, in their order.

    Raises BadInput for a policy that does not exist, and as `requests` does.
    """
    scenarios = [scenario.with_policy(name) for name in names]
    workload = load_workload(scenario)
    return [run(each, workload) for each in scenarios]


def check(scenario: Scenario) -> None:
    """Make what can be made without reading a trace or drawing requests; raises BadInput for what cannot."""
    check_replicas(scenario)
    for station in scenario.cluster.stations:
        for each in replicas(scenario, station):
            cost(each)
        router(scenario, station)
    check_workload(scenario, scenario.workload)


def check_replicas(scenario: Scenario) -> None:
    """Raise BadInput for a policy that does not fit a replica's engine, or an engine that does not fit its pool."""
    for station in scenario.cluster.stations:
        for each in replicas(scenario, station):
            scheduler(each)
            if len(scenario.cluster.stations) > 1:
                two_phases(each)


def scheduler(scenario: Scenario, numbered: bool = False) -> Scheduler:
    """A scheduler of the scenario's engine and policy, with nothing in it; raises BadInput if they do not fit.

    Contiguous memory is a pool of single positions. `numbered`: pages have numbers, as a real engine needs them.
    """
    engine = scenario.engine
    size = 1 if engine.memory == "contiguous" else engine.page_size
    pages = engine.pages * engine.page_size // size
    first = order(scenario)
    with scenario.blamed(f"engine.{engine.admission}: "):
        rule = admission(engine)
    policy = Policy(first, rule, victim(scenario))
    with scenario.blamed("engine: "):
        if engine.batching == "static":
            return StaticScheduler(policy, PagePool(pages, size), engine_config(scenario))
        pool = (NumberedPool if numbered else PagePool)(pages, size)
        if engine.share is not None:
            kind = NumberedPrefixPool if numbered else PrefixPool
            pool = kind(pages, size, engine.share, repr((engine.model, engine.positions)))
        return Scheduler(policy, pool, engine_config(scenario))


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


def victim(scenario: Scenario) -> Victim:
    """Who gives the pages back: as the engine says, or else as its admission rule or the policy has it."""
    chosen = scenario.engine.victim
    if chosen is not None:
        with scenario.blamed("engine.victim: "):
            return victims.build(*parts(chosen), scenario.seed)
    return FewestOutputs() if scenario.engine.ratio is not None else policies.victim(*policy(scenario))


def admission(engine: Engine) -> Admission:
    """The engine's rule of admission."""
    if engine.admission == "reserve":
        return Reserve()
    if engine.admission == "peak":
        return Peak()
    if engine.ratio is not None:
        return Ratio(**dict(engine.ratio))
    if engine.quantile is not None:
        options = dict(engine.quantile)
        law = options.pop("outputs")
        given = None if law is None else length(law, "outputs").quantile(DRAWN).tolist()
        return Quantile(**options, given=given)
    return Optimistic(engine.reserve_full_prompt, engine.watermark)


def order(scenario: Scenario) -> Order:
    """The order of the scenario's policy; raises BadInput for an unknown policy or option, or a cache it lacks."""
    with scenario.blamed("policy: "):
        name, options = policy(scenario)
        machine = scenario.engine
        made = policies.build(name, options, scenario.seed, machine.max_active or machine.slots)
        needy = policies.looks_up(name, options)
        if needy and not scenario.engine.prefix_cache:
            raise ValueError(f"{needy} needs engine.prefix_cache: true")
        return made


def two_phases(scenario: Scenario) -> None:
    """Raise BadInput for an engine that cannot hand a request over, or take one over, in the middle."""
    given = scenario.engine
    for key, found, expected in (("batching", given.batching, "continuous"), ("evict", given.evict, "before")):
        with scenario.blamed(f"engine.{key}: "):
            if found != expected:
                raise ValueError(f"found {found}; pools of prefill and decode need {expected}")


def router(scenario: Scenario, station: Station) -> Router:
    """What sends each request to a replica of a pool; raises BadInput for an unknown router or option."""
    if station.size == 1:
        return First()
    pool = next((name for name in POOLS if getattr(scenario.cluster, name) is station), "")
    with scenario.blamed("cluster.router: "):
        return routers.build(*parts(station.router), scenario.seed, station.size, pool)


def policy(scenario: Scenario) -> tuple[str, dict[str, Any]]:
    """The name of the scenario's policy and its options, durations in nanoseconds."""
    name = scenario.policy.name
    return name, policies.changed(name, scenario.policy.options, option_read)


def option_read(option: Option, path: str, value: Any) -> Any:
    """An option of a policy as that takes it. Raises ValueError, with the option's path, for what is no duration."""
    return plain(value, {path.rpartition(".")[2]} if option.kind == "duration" else option.times, path)


def option_written(option: Option, path: str, value: Any) -> Any:
    """An option of a policy as a scenario has it."""
    return units.text(value) if option.kind == "duration" else written(value, option.times)


def resolved_policy(scenario: Scenario) -> str | dict[str, Any]:
    """The scenario's policy with every option explicit, in the form of a scenario file."""
    name, options = policy(scenario)
    full = policies.changed(name, policies.resolve(name, options), option_written)
    return {name: full} if full else name


def predictor(scenario: Scenario) -> str | None:
    """The name of the predictor of output lengths that the scenario's policy uses, if it uses one."""
    return policies.predictor(*policy(scenario))


def cost(scenario: Scenario) -> costs.StepCost:
    """What a step costs; raises BadInput for one that takes no time, and as `curve`."""
    made = curve(scenario)
    if isinstance(made, costs.Curve) and not made.takes_time:
        with scenario.blamed("cost: "):
            raise ValueError("every step takes 0 ns; expected a coefficient above 0")
    return made


def curve(scenario: Scenario) -> costs.StepCost:
    """The scenario's cost; raises BadInput for what is not one, and for a profile that cannot be used."""
    given = scenario.cost
    with scenario.blamed("cost."):
        if given.unit is not None:
            return costs.Unit(given.unit)
        if given.affine is not None:
            return costs.Affine(**dict(given.affine))
        if given.roofline is not None:
            return costs.Roofline(**dict(given.roofline))
    chosen = profile(scenario)
    assert chosen is not None
    with scenario.blamed("cost."):
        return chosen.cost(**{key: value for key in TERMS if (value := getattr(given, key)) is not None})


def profile(scenario: Scenario) -> Profile | None:
    """The profile that the scenario names, or that follows from the shapes it names, if it does either.

    Raises BadInput if there is none, if it is not one, if the model does not fit the device, or if the content is
    another than the scenario says.
    """
    given = scenario.cost
    if given.profile is not None:
        with scenario.blamed("cost.profile: "):
            found = profiles.find(given.profile)
    elif given.shape is not None:
        with scenario.blamed("cost.shape: "):
            found = profiles.of_shape(**given.shape.model_dump(exclude_none=True))
    else:
        return None
    if given.sha256 not in (None, found.sha256):
        with scenario.blamed("cost.sha256: "):
            of = given.profile or found.name
            raise ValueError(f"found {given.sha256}; the content of {of} has {found.sha256}")
    return found


def pages_that_fit(scenario: Scenario, profile: Profile | None) -> int:
    """The pages that `engine.fit` of the device's memory leave beside the model of the cost.

    Raises BadInput where the cost does not say model and memory, and for a model that does not fit.
    """
    machine = scenario.engine
    assert machine.fit is not None
    with scenario.blamed("engine.fit: "):
        if profile is None or profile.content["memory"] is None:
            raise ValueError(
                "the memory of the device is not known; expected a cost with a shape, or a profile with it"
            )
        content = profile.content
        return capacity(
            from_mapping(content["model"]),
            content["memory"],
            dtype=content["dtype"],
            kv_dtype=(content.get("details") or {}).get("kv_dtype"),
            utilization=machine.fit,
            tensor_parallel=content["tensor_parallel"],
            page_size=machine.page_size,
            token_budget=machine.token_budget,
            slots=machine.slots,
        ).pages
