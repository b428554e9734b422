"""The workloads that are timed, and the engine that serves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from policies.registry import build
from sim.cost.forms import Affine
from sim.engine.apart.config import ApartConfig
from sim.engine.apart.scheduler import ApartScheduler
from sim.engine.config import EngineConfig
from sim.engine.planner import Planner
from sim.engine.scheduler import Scheduler
from sim.memory.extents import ExtentPool
from sim.memory.pool import PagePool
from sim.memory.radix import RadixPool
from sim.policy.base import Policy
from sim.request import Request
from traces.synthetic import Fixed, Lognormal, Poisson, Synthetic, generate
from traces.synthetic.token_counts import Length

PROMPT = 512
SLOTS = 256
TOKEN_BUDGET = 2048
APART = ApartConfig(slots=SLOTS, max_prefill_tokens=16384, chunked_prefill_size=8192, depth=2)
PAGE_SIZE = 16
ENOUGH_PAGES = 100_000
COST = Affine(base=5e6, per_sequence=40e3, per_context_token=25.0, per_prefill_token=40e3)
SEED = 0

Outputs = Literal["fixed 128", "lognormal 200", "lognormal 800"]
LAWS: dict[Outputs, Length] = {
    "fixed 128": Fixed(128),
    "lognormal 200": Lognormal(200, cv=1),
    "lognormal 800": Lognormal(800, cv=1),
}
"""Laws of output lengths; a lognormal one by its mean, its standard deviation being the same."""


EngineName = Literal["plain", "vllm, cache off", "vllm, cache on", "sglang, cache off", "sglang, cache on"]
"""Plain: synchronous. The others: the axes of the preset, with asynchronous scheduling. Prompts have lengths only."""


@dataclass(frozen=True)
class Case:
    """`requests` requests at `rate` per second, with outputs by one of LAWS, on one of the engines."""

    requests: int
    rate: float
    outputs: Outputs
    engine: EngineName = "plain"

    def drawn(self) -> list[Request]:
        """The requests, the same each time."""
        spec = Synthetic(
            requests=self.requests,
            arrivals=Poisson(self.rate),
            prompt=Fixed(PROMPT),
            output=LAWS[self.outputs],
        )
        return generate(spec, SEED)


def scheduler(engine: EngineName = "plain") -> Planner:
    """A new engine, first come first served, whose memory suffices for every case."""
    if engine.startswith("sglang"):
        tokens = ENOUGH_PAGES * PAGE_SIZE
        cached = engine == "sglang, cache on"
        memory = RadixPool(tokens, 1) if cached else PagePool(tokens, 1)
        return ApartScheduler(Policy(build("requeue", {}, SEED)), memory, APART)
    policy = Policy(build("fcfs", {}, SEED))
    pool = (ExtentPool if engine == "vllm, cache on" else PagePool)(ENOUGH_PAGES, PAGE_SIZE)
    depth = 1 if engine == "plain" else 2
    return Scheduler(policy, pool, EngineConfig(slots=SLOTS, token_budget=TOKEN_BUDGET, depth=depth))
