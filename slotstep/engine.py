"""From a scenario to the kernel's objects, and a run of them.

Knows no file format, policy or distribution by name; defaults are the scenario's business.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policies import registry as policies
from sim import cost as costs
from sim.cluster import simulate
from sim.memory import PagePool
from sim.policy import Admission, Optimistic, Order, Policy, Reserve
from sim.prefix import PrefixPool
from sim.request import Request
from sim.scheduler import Scheduler
from sim.static import StaticScheduler
from slotstep import units
from slotstep.result import Result
from traces import registry as traces
from traces import requests as listed
from traces import synthetic, transforms
from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.machine import Engine
    from slotstep.scenario import Scenario

WORKLOAD_TIMES = frozenset(["duration"])
"""What a synthetic workload is told in nanoseconds."""


def run(
    scenario: Scenario,
    workload: Sequence[Request] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Simulate a scenario, on the requests of `workload` if they have been made already.

    `progress` hears now and then how many requests have ended. Raises as `requests` does.
    """
    log = simulate(
        requests(scenario) if workload is None else workload,
        scheduler(scenario),
        cost(scenario),
        macro=scenario.engine.macro,
        progress=progress,
    )
    return Result(scenario, log)


def compare(scenario: Scenario, names: Sequence[str]) -> list[Result]:
    """Simulate the same requests under each of the policies named, in their order.

    Raises BadInput for a policy that does not exist, and as `requests` does.
    """
    scenarios = [scenario.with_policy(name) for name in names]
    workload = requests(scenario)
    return [run(each, workload) for each in scenarios]


def check(scenario: Scenario) -> None:
    """Make what can be made without reading a trace or drawing requests; raises BadInput for what cannot."""
    order(scenario)
    cost(scenario)
    given = scenario.workload
    if given.requests is not None:
        requests(scenario)
    if given.synthetic is not None:
        with scenario.blamed("workload."):
            synthetic.parse(plain(given.synthetic, WORKLOAD_TIMES, "synthetic"))


def requests(scenario: Scenario) -> list[Request]:
    """The requests of a scenario's workload, sorted by arrival.

    Raises BadInput for a trace that cannot be read, an empty slice, or an output above the workload's limit.
    """
    given = scenario.workload
    if given.trace is not None:
        ((kind, file),) = given.trace.items()
        found = read(kind, Path(file))
    with scenario.blamed("workload."):
        if given.synthetic is not None:
            spec = synthetic.parse(plain(given.synthetic, WORKLOAD_TIMES, "synthetic"))
            found = synthetic.generate(spec, scenario.seed)
        if given.requests is not None:
            found = listed.parse([line.model_dump(exclude_none=True) for line in given.requests])
        if given.between is not None:
            found = transforms.between(found, *given.between)
        if given.first is not None:
            found = transforms.first(found, given.first)
        if given.scale_rate != 1:
            found = transforms.scale_rate(found, given.scale_rate)
    if given.max_output is not None:
        lines = given.requests or ()
        declared = {line.id or str(n) for n, line in enumerate(lines, start=1) if line.max_output is not None}
        with scenario.blamed("workload.max_output: "):
            found = [
                request if request.id in declared else replace(request, max_output=given.max_output)
                for request in found
            ]
    return found


def read(kind: str, file: Path) -> list[Request]:
    """The requests of a trace; if there is no such file but `fetch` knows where it is, says so."""
    from traces.fetch import SOURCES

    try:
        return traces.read(kind, file)
    except BadInput as error:
        public = [name for name, source in SOURCES.items() if source.file_name == file.name]
        if public and not file.exists():
            raise BadInput(f"{error}; `slotstep trace fetch {public[0]}` downloads it") from None
        raise


def scheduler(scenario: Scenario) -> Scheduler:
    """A scheduler of the scenario's engine and policy, with nothing in it.

    Contiguous memory is a pool of single positions.
    """
    engine = scenario.engine
    contiguous = engine.memory == "contiguous"
    size = 1 if contiguous else engine.page_size
    pages = engine.pages * engine.page_size // size
    policy = Policy(order(scenario), admission(engine), policies.victim(scenario.policy.name))
    if engine.batching == "static":
        return StaticScheduler(policy, PagePool(pages, size), slots=engine.slots)
    pool = PagePool(pages, size)
    if engine.share is not None:
        pool = PrefixPool(pages, size, engine.share, repr((engine.model, engine.positions)))
    return Scheduler(
        policy,
        pool,
        slots=engine.slots,
        token_budget=engine.token_budget,
        chunked=engine.chunked,
        evict=engine.evict,
        harvest=engine.harvest,
        contiguous=contiguous,
        depth=2 if engine.async_scheduling else 1,
        max_active=engine.max_active,
        chunk_limit=engine.chunk_limit,
        chunk_limit_adapts=engine.chunk_limit_adapts,
        preempt_for_slot=engine.preempt_for_slot,
        max_model_len=engine.max_model_len,
    )


def admission(engine: Engine) -> Admission:
    """The engine's rule of admission."""
    if engine.admission == "reserve":
        return Reserve()
    return Optimistic(engine.reserve_full_prompt, engine.watermark)


def order(scenario: Scenario) -> Order:
    """The order of the scenario's policy; raises BadInput for an unknown policy or option."""
    with scenario.blamed("policy: "):
        return policies.build(*policy(scenario), scenario.seed)


def policy(scenario: Scenario) -> tuple[str, dict[str, Any]]:
    """The name of the scenario's policy and its options, durations in nanoseconds."""
    return scenario.policy.name, plain(scenario.policy.options, policies.DURATIONS)


def resolved_policy(scenario: Scenario) -> str | dict[str, Any]:
    """The scenario's policy with every option explicit, in the form of a scenario file."""
    name, options = policy(scenario)
    full = written(policies.resolve(name, options), policies.DURATIONS)
    return {name: full} if full else name


def predictor(scenario: Scenario) -> str | None:
    """The name of the predictor of output lengths that the scenario's policy uses, if it uses one."""
    return policies.predictor(*policy(scenario))


def cost(scenario: Scenario) -> costs.StepCost:
    """What a step costs; raises BadInput for a cost that is not one."""
    given = scenario.cost
    with scenario.blamed("cost."):
        if given.unit is not None:
            return costs.Unit(given.unit)
        if given.affine is not None:
            return costs.Affine(**dict(given.affine))
        return costs.Roofline(**dict(given.roofline or {}))


def plain(value: Any, times: Collection[str], path: str = "") -> Any:
    """`value` with what stands under a key of `times`, at any depth, in ns, and every whole number an int.

    Raises ValueError, with the key's path, for a time that is no duration.
    """
    if isinstance(value, Mapping):
        return {key: plain(inner, times, f"{path}.{key}".strip(".")) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner, times, f"{path}.{place}") for place, inner in enumerate(value)]
    if path.rpartition(".")[2] in times:
        try:
            return units.nanoseconds(value)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def written(value: Any, times: Collection[str]) -> Any:
    """`value` with the nanoseconds that stand under a key of `times`, at any depth, as text with a unit."""
    if not isinstance(value, Mapping):
        return value
    return {key: units.text(inner) if key in times else written(inner, times) for key, inner in value.items()}
