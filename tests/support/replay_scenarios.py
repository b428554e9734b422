"""Random engines and requests for the replay: every policy, every mode, everything that can happen to a request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import repeat

from hypothesis import strategies as st

from policies import victims
from policies.registry import build, names
from sim.cost.forms import Affine, Roofline, Unit
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.engine.static import StaticScheduler
from sim.memory.extents import ExtentPool
from sim.memory.numbered import NumberedPool, NumberedPrefixPool
from sim.memory.pool import PagePool
from sim.policy.base import Optimistic, Policy, Reserve
from sim.policy.ratio import Ratio
from sim.request import Patience, Request
from sim.service.clients import ClosedLoop, Distant, OpenLoop, Window
from sim.service.sessions import Sessions

OPTIONS = {
    "tenant_rate": {"rate": 10**8, "burst": 60},
    "reserved": {"of": 4, "tenants": {"a": 1}},
    "vtc": {"prepay": True},
    "aging": {"unit": 10},
    "max_wait": {"max_wait": 300},
    "fair": {"max_wait": 300},
}
"""Where the defaults would make a small story dull."""

POLICIES = tuple(names())
DISCIPLINES = (
    {"depth": 1}, {"depth": 2}, {"depth": 2}, {"depth": 2}, {"evict": "after"}, {"evict": "after", "harvest": "next"},
)  # fmt: skip


@dataclass
class Scenario:
    """An engine, its requests and how they are sent; the two runs of it share nothing but this."""

    requests: list
    policy: str
    admission: str
    victim: str
    share: str | None
    pages: int
    page_size: int
    modes: dict
    cost: object
    send: str = "open"

    def clients(self):
        """Who sends the requests, ready to start."""
        if self.send == "window":
            return Window(self.requests, 3)
        if self.send == "closed":
            return ClosedLoop(self.requests, 3, repeat(40))
        if self.send == "sessions":
            turns = [replace(r, session=str(n // 3), think=30) for n, r in enumerate(self.requests)]
            return Sessions([turns[first : first + 3] for first in range(0, len(turns), 3)])
        if self.send == "distant":
            return Distant(Window(self.requests, 3), 5)
        return OpenLoop(self.requests)

    def scheduler(self, numbered=False):
        """A fresh engine, its pages numbered or only counted."""
        order = build(self.policy, OPTIONS.get(self.policy, {}), seed=3)
        rules = {"optimistic": Optimistic, "reserve": Reserve, "static": Reserve, "ratio": Ratio}
        policy = Policy(order, rules[self.admission](), victims.build(self.victim, {}, 0))
        if self.share is None:
            pool = (NumberedPool if numbered else PagePool)(self.pages, self.page_size)
        else:
            pool = (NumberedPrefixPool if numbered else ExtentPool)(self.pages, self.page_size, self.share)
        if self.admission == "static":
            modes = {key: self.modes[key] for key in ("slots", "queue_limit")}
            return StaticScheduler(policy, pool, EngineConfig(token_budget=1, **modes))
        return Scheduler(policy, pool, EngineConfig(**self.modes))


@st.composite
def prompts(draw):
    """Token ids that often begin alike, or only a length."""
    length = draw(st.integers(1, 40))
    if draw(st.integers(0, 2)) == 0:
        return length, None
    same = draw(st.integers(0, length))
    return length, tuple([1] * same + [draw(st.integers(1, 2)) for _ in range(length - same)])


@st.composite
def requests(draw):
    """Bursts and gaps, three tenants, shared prompts, clients that give up in every way."""
    made, now = [], 0
    for place in range(draw(st.integers(1, 16))):
        now += draw(st.sampled_from([0, 0, 0, 3, 20, 49, 150, 1000]))
        prompt, tokens = draw(prompts())
        output = draw(st.one_of(st.integers(1, 4), st.integers(1, 60), st.integers(20, 60)))
        patience = draw(
            st.sampled_from(
                [
                    {}, {}, {}, {}, {}, {}, {"cancel_after": 90}, {"queue_timeout": 40}, {"timeout": 200},
                    {"cancel_tokens": 3}, {"cancel_after": 49, "timeout": 49},
                ]
            )
        )  # fmt: skip
        made.append(
            Request(
                str(place), now, prompt, output, draw(st.sampled_from("abc")),
                output + draw(st.sampled_from([0, 0, 5])), draw(st.sampled_from([0, 0, 1, 2])), tokens,
                patience=Patience(**patience),
            )
        )  # fmt: skip
    return made


@st.composite
def scenarios(
    draw,
    policies=POLICIES,
    admissions=("optimistic",) * 4 + ("ratio", "reserve", "static"),
    spares=(0, 0, 0.1, 0.5, 3, 100),
):
    """From barely enough pages for the longest request to plenty: `spares` times as many beside them."""
    asked = draw(requests())
    policy = draw(st.sampled_from(policies))
    admission = draw(st.sampled_from(admissions))
    on_demand = admission in ("optimistic", "ratio")
    share = draw(st.sampled_from([None, "tenant", "all", "none"])) if on_demand else None
    size = draw(st.sampled_from([1, 4, 16]))
    longest = max(-(-(request.prompt + request.max_output) // size) for request in asked)
    chunked = draw(st.sampled_from([True, True, True, False]))
    modes = {
        "slots": draw(st.sampled_from([1, 2, 3, 8, 8])),
        "token_budget": draw(st.sampled_from([2, 8, 64, 1000])) if chunked else 64,
        "chunked": chunked,
        "chunk_limit": draw(st.sampled_from([0, 0, 3])),
        "queue_limit": draw(st.sampled_from([None, None, 2])),
        "swap": share is None and on_demand and draw(st.booleans()),
        "preempt_for_slot": policy == "priority" and draw(st.booleans()),
        "max_model_len": draw(st.sampled_from([None, None, 64])),
        **draw(st.sampled_from(DISCIPLINES)),
    }
    return Scenario(
        requests=asked,
        policy=policy,
        admission=admission,
        victim=draw(st.sampled_from(list(victims.VICTIMS))),
        share=share,
        pages=longest + int(longest * draw(st.sampled_from(spares))),
        page_size=size,
        modes=modes,
        cost=draw(
            st.sampled_from(
                [
                    Unit(7),
                    Affine(base=5, per_sequence=0.7, per_prefill_token=1.1, per_page=0.3, per_swapped_token=0.5),
                    Roofline(weight_pass=10, per_token=0.9, per_context_token=0.05, per_sequence=0.3, host=2),
                ]
            )
        ),
        send=draw(st.sampled_from(["open", "open", "open", "window", "closed", "distant", "sessions"])),
    )
