"""The rate that a service bears in the fluid limit: where a search for its capacity begins. It decides nothing.

Every replica is taken to run full batches of average requests without end: b sequences decode at the mean context,
and the step computes the prompts of those that follow them. A request of P prompt and D output tokens occupies its
slot for D steps, so the replica answers b / (D x step(b)) requests a second; b is at most the slots, the sequences
that the pages hold, and the token budget over 1 + P / D. The largest of these over b is the replica's rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
    return min(
        sum(
            of_replica(each, price if price and each.cost is scenario.cost else costs.cost(each), prompt, output)
            for each in build.replicas(scenario, pool)
        )
        for pool in scenario.cluster.pools
    )


def of_replica(scenario: Scenario, cost: StepCost, prompt: float, output: float) -> float:
    """Requests a second of one replica, for these mean numbers of tokens."""
    engine = scenario.engine
    held = prompt + output / 2
    most = min(engine.slots, engine.pages * engine.page_size / held, engine.token_budget / (1 + prompt / output))
    sizes = [most]
    while sizes[-1] > 1:
        sizes.append(sizes[-1] / 2)
    return max(size / (output * cost.step(full(size, prompt, output))) * SECOND for size in sizes)


def full(size: float, prompt: float, output: float) -> Shape:
    """The shape of a step in which `size` sequences decode, and as many prompts are computed as end meanwhile."""
    shape = Shape()
    sequences = max(round(size), 1)
    shape.decodes = sequences
    shape.longest = round(prompt + output / 2)
    shape.context = sequences * shape.longest
    tokens = max(round(size * prompt / output), 1)
    shape.add_chunk(max(round((prompt - tokens) / 2), 0), tokens)
    return shape
