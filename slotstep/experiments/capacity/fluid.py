"""The rate that a service bears in the fluid limit: where a search for its capacity begins. It decides nothing.

Every replica is taken to run full batches of average requests without end: b sequences decode at the mean context,
and the step computes the prompts of those that follow them. A request of P prompt and D output tokens occupies its
slot for D steps, so the replica answers b / (D x step(b)) requests a second; b is at most the slots, the sequences
that the pages hold, and the token budget over 1 + P / D. The largest of these over b is the replica's rate. Where
one pool computes prompts and another the rest, D is 1 in the first, and P is computed already in the second. Of an
engine that speculates, D is the verifications that bring the output, each of which computes its drafts, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sim.cost.forms import StepCost
from sim.cost.shape import Shape
from sim.request import SECOND, Request
from slotstep.runs import build, costs

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario


def rate(scenario: Scenario, requests: Sequence[Request], price: StepCost | None = None) -> float:
    """Requests a second that the smallest pool of a scenario bears; `price` replaces its step cost."""
    prompt = sum(request.prompt for request in requests) / len(requests)
    output = sum(request.output for request in requests) / len(requests)
    pools = scenario.cluster.pools
    loads = [Load(prompt, prompt, output)]
    if len(pools) > 1:
        loads = [Load(prompt, prompt, 1.0), Load(prompt, 0.0, output)]
    return min(
        sum(
            of_replica(each, price_of(each, price if each.cost is scenario.cost else None), load)
            for each in build.replicas(scenario, pool)
        )
        for pool, load in zip(pools, loads, strict=True)
    )


def price_of(replica: Scenario, price: StepCost | None) -> StepCost:
    """The step cost of a replica, or `price` in its place, with what drafting costs."""
    return costs.with_drafts(replica, price or costs.cost(replica))


class Load(NamedTuple):
    """Mean tokens of a request at one pool: of its prompt, those that are computed there, and generated ones."""

    prompt: float
    computed: float
    output: float


def of_replica(scenario: Scenario, cost: StepCost, load: Load) -> float:
    """Requests a second of one replica under a load."""
    engine = scenario.engine
    machine = build.machine(engine)
    steps = load.output / machine.brings
    held = load.prompt + load.output / 2
    budget = engine.token_budget / (1 + machine.drafts + load.computed / steps)
    sizes = [min(engine.slots, engine.pages * engine.page_size / held, budget)]
    while sizes[-1] > 1:
        sizes.append(sizes[-1] / 2)
    return max(size / (steps * cost.step(full(size, load, steps, machine.drafts))) * SECOND for size in sizes)


def full(size: float, load: Load, steps: float, drafts: int) -> Shape:
    """The shape of a step in which `size` sequences decode, and as many prompts are computed as end meanwhile."""
    shape = Shape()
    sequences = max(round(size), 1)
    shape.decodes = sequences
    shape.drafts = sequences * drafts
    shape.longest = round(load.prompt + load.output / 2)
    shape.context = sequences * shape.longest
    tokens = round(size * load.computed / steps)
    if tokens:
        shape.add_chunk(max(round((load.computed - tokens) / 2), 0), tokens)
    return shape
