"""Random engines, costs and requests that the compiled core covers, from barely enough pages to plenty."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat

from hypothesis import strategies as st

from policies.registry import build
from sim.cost.forms import Affine, Roofline, StepCost, Unit
from sim.cost.knots import Knots
from sim.cost.scaled import Scaled
from sim.cost.surface import Surface
from sim.cost.table import Lines, Table
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.extents import ExtentPool
from sim.memory.pool import PagePool
from sim.policy.base import LastAdmitted, LeastUrgent, Optimistic, Policy, Reserve
from sim.request import ENDLESS, Patience, Request
from sim.service.clients import ClosedLoop, Distant, OpenLoop, Window


@dataclass
class CoreScenario:
    """An engine, with or without a prefix cache, and its requests, which may be `delay` ns on their way.

    window  as many requests in flight at most; think: each client of a closed loop waits so long between two
    """

    requests: list[Request]
    pages: int
    page_size: int
    policy: str
    options: dict
    admission: object
    victim: object
    config: EngineConfig
    cost: StepCost
    delay: int = 0
    cached: bool = False
    window: int | None = None
    think: int | None = None

    def scheduler(self):
        policy = Policy(build(self.policy, self.options, seed=3), self.admission, self.victim)
        pool = (ExtentPool if self.cached else PagePool)(self.pages, self.page_size)
        return Scheduler(policy, pool, self.config)

    def clients(self):
        if self.think is not None:
            near = ClosedLoop(self.requests, self.window or 1, repeat(self.think))
        elif self.window:
            near = Window(self.requests, self.window)
        else:
            near = OpenLoop(self.requests)
        return Distant(near, self.delay) if self.delay else near


SURFACE = Surface((1, 4), (0.0, 30.0, 90.0), ((2.0, 3.0, 9.0), (4.0, 12.0, 20.0)))
LINES = Lines(Knots((1, 4), (3.0, 5.0)), Knots((1, 4), (0.2, 0.7)))
STEEPER = Lines(Knots((1, 4), (4.0, 9.0)), Knots((1, 4), (0.5, 1.9)))
CHUNKS = Lines(Knots((1, 8), (2.0, 9.0)), Knots((1, 8), (0.1, 0.6)))
DENSE = Knots((1, 4, 16), (20.0, 21.0, 70.0))

COSTS = (
    Unit(7),
    Affine(base=5, per_sequence=0.7, per_context_token=0.13, per_prefill_token=1.1, per_chunk_work=0.01),
    Affine(base=20, per_sequence=1.5, per_page=0.3, host=3, per_mixed_context_token=0.2),
    Affine(base=2, per_context_token=0.4, per_tail_token=0.7, unsplit=3),
    Roofline(weight_pass=10, per_token=0.9, per_context_token=0.05, per_sequence=0.3, host=2, per_chunk=1.7),
    Roofline(weight_pass=30, per_token=2.9, per_context_token=0.5, per_chunk_work=0.02, per_page=0.2),
    Roofline(weight_pass=9, per_context_token=0.4, raggedness=0.5, overlapped_host=12, graph_sizes=(1, 2, 4)),
    Roofline(weight_pass=9, per_tail_token=0.8, prompt_launches=40, unsplit=4, graph_sizes=(1, 2, 8)),
    Table(dense=DENSE, decode=LINES, beside=STEEPER, chunk=CHUNKS, raggedness=0.3, per_tail_token=0.9),
    Table(dense=DENSE, decode=SURFACE, chunk=SURFACE, crossing=0.02, launch=1.5, per_page=0.1),
    Table(
        dense=DENSE,
        decode_dense=Knots((1, 8), (15.0, 33.0)),
        sequences=Knots((1, 8), (1.0, 4.0)),
        decode=SURFACE,
        beside=LINES,
        chunk=CHUNKS,
        raggedness=0.2,
        per_tail_token=0.4,
        graph_sizes=(1, 2, 4),
    ),
    Scaled(Affine(base=11, per_context_token=0.31, per_prefill_token=0.9), decode=1.3, prompts=0.7),
    Scaled(Unit(10), decode=0.05, prompts=2.5),
)
ORDERS = (
    ("fcfs", {}),
    ("fcfs", {}),
    ("priority", {}),
    ("sjf", {}),
    ("sjf", {"error": 0.5}),
    ("sjf", {"predict": "prompt"}),
    ("srpt", {}),
    ("srpt", {"error": 0.5}),
    ("longest", {}),
    ("shortest_prompt", {}),
)
ADMISSIONS = (Optimistic(), Optimistic(), Optimistic(whole=False), Optimistic(watermark=0.3), Reserve())


def lengths(most):
    """Short, middling and long ones."""
    return st.one_of(st.integers(1, 4), st.integers(1, most // 3), st.integers(most // 2, most))


@st.composite
def requests(draw):
    """Requests in bursts and apart; ids are not in order."""
    longest_output = draw(st.sampled_from([20, 80, 400]))
    made, now = [], 0
    for place in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from([0, 0, 1, 7, 20, 49, 350, 3000]))
        output = draw(lengths(longest_output))
        patience = draw(st.sampled_from([ENDLESS, ENDLESS, ENDLESS, Patience(cancel_tokens=3)]))
        made.append(
            Request(
                str(draw(st.integers(0, 9)) * 100 + place),
                now,
                draw(lengths(60)),
                output,
                draw(st.sampled_from("ab")),
                output + draw(st.sampled_from([0, 0, 5])),
                priority=draw(st.sampled_from([0, 0, 1, -2])),
                patience=patience,
            )
        )
    return made


@st.composite
def core_scenarios(draw):
    """Any covered mode."""
    asked = draw(requests())
    size = draw(st.sampled_from([1, 2, 4, 16]))
    longest = max(-(-(request.prompt + request.max_output - 1) // size) for request in asked)
    chunked = draw(st.sampled_from([True, True, True, False]))
    config = EngineConfig(
        slots=draw(st.sampled_from([1, 2, 3, 8, 16])),
        token_budget=draw(st.sampled_from([1, 2, 8, 32, 64, 10**6] if chunked else [32, 64, 10**6])),
        chunked=chunked,
        depth=draw(st.sampled_from([1, 2])),
        max_active=draw(st.sampled_from([None, None, None, 1, 3])),
        admit_every=draw(st.sampled_from([1, 1, 1, 3])),
        chunk_limit=draw(st.sampled_from([0, 0, 0, 3, 9])),
        chunk_limit_adapts=draw(st.booleans()),
        queue_limit=draw(st.sampled_from([None, None, None, 2])),
        max_model_len=draw(st.sampled_from([None, None, None, 40, 200])),
    )
    policy, options = draw(st.sampled_from(ORDERS))
    admission = draw(st.sampled_from(ADMISSIONS))
    return CoreScenario(
        requests=asked,
        pages=max(1, longest + draw(st.sampled_from([-1, 0, 0, 0, 1, 2, longest // 2, longest, 5 * longest, 10**6]))),
        page_size=size,
        policy=policy,
        options=options,
        admission=admission,
        victim=draw(st.sampled_from([LastAdmitted(), LastAdmitted(), LeastUrgent()])),
        config=config,
        cost=draw(st.sampled_from(COSTS)),
        delay=draw(st.sampled_from([0, 0, 0, 11])),
        window=draw(st.sampled_from([None, None, None, 1, 2, 5])),
        think=draw(st.sampled_from([None, None, None, 0, 9, 400])),
        cached=not admission.reserves and draw(st.booleans()),
    )
