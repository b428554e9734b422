"""What holds in every mode that a production engine has: steps planned ahead, a cache, limits, priority."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from sim_stories import run
from watched_pools import WATCHED

from policies.registry import build, victim
from sim.accounting.frames import steps_frame
from sim.accounting.metrics import summary
from sim.cost.forms import Affine, Roofline, Unit
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.extents import ExtentPool
from sim.memory.pool import PagePool
from sim.memory.prefix import PrefixPool
from sim.memory.radix import RadixPool
from sim.policy.base import Optimistic, Policy
from sim.request import Request


@dataclass
class Scenario:
    requests: list
    slots: int
    budget: int
    page_size: int
    pages: int
    share: str | None
    cache: type
    policy: str
    admission: object
    modes: dict
    cost: object
    pools: list = field(default_factory=list)

    def scheduler(self, pool):
        made = PagePool(self.pages, self.page_size) if self.share is None else None
        made = made or pool(self.pages, self.page_size, self.share)
        self.pools.append(made)
        options = {"srpt": {"preemptive": True}, "longest_prefix": {"unit": 20}}.get(self.policy, {})
        policy = Policy(build(self.policy, options, seed=3), self.admission, victim(self.policy))
        return Scheduler(policy, made, EngineConfig(slots=self.slots, token_budget=self.budget, **self.modes))

    def run(self, macro=True, pool=None):
        return run(self.requests, self.scheduler(pool or self.cache), self.cost, macro)


POLICIES = ("fcfs", "priority", "sjf", "srpt", "longest_prefix")
POLICIES += ("requeue", "lof", "lpm", "dfs_weight", "prefill_hrrn", "shortest_prefill_first", "shuffle")

costs = st.sampled_from(
    [
        Unit(7),
        Affine(base=5, per_sequence=0.7, per_context_token=0.13, per_prefill_token=1.1, per_page=0.3),
        Roofline(weight_pass=10, per_token=0.9, per_context_token=0.05, per_sequence=0.3, host=2),
    ]
)
admissions = st.builds(Optimistic, whole=st.booleans(), watermark=st.sampled_from([0.0, 0.0, 0.1, 0.3]))


@st.composite
def prompts(draw, longest):
    """Token ids that often begin alike, or only a length."""
    length = draw(st.one_of(st.integers(1, 4), st.integers(1, longest)))
    if draw(st.integers(0, 3)) == 0:
        return length, None
    same = draw(st.integers(0, length))
    return length, tuple(
        [1] * same + draw(st.lists(st.integers(1, 2), min_size=length - same, max_size=length - same))
    )


@st.composite
def scenarios(draw, shares=(None, "tenant", "all", "none"), admissions=admissions):
    """From barely enough pages for the longest request to plenty."""
    longest_output = draw(st.sampled_from([20, 80, 300]))
    requests, now = [], 0
    for place in range(draw(st.integers(1, 20))):
        now += draw(st.sampled_from([0, 0, 1, 7, 20, 49, 350, 3000]))
        length, tokens = draw(prompts(60))
        output = draw(st.one_of(st.integers(1, 4), st.integers(1, longest_output)))
        asked = {"priority": draw(st.sampled_from([0, 0, 1, 2])), "tokens": tokens}
        limit = output + draw(st.sampled_from([0, 0, 5]))
        requests.append(Request(str(place), now, length, output, draw(st.sampled_from("ab")), limit, **asked))
    size = draw(st.sampled_from([1, 2, 4, 16]))
    longest = max(-(-(r.prompt + r.max_output - 1) // size) for r in requests)
    slots = draw(st.sampled_from([1, 2, 3, 8, 16]))
    policy = draw(st.sampled_from(POLICIES))
    modes = {
        "depth": draw(st.sampled_from([1, 2, 2])),
        "chunked": draw(st.sampled_from([True, True, False])),
        "chunk_limit": draw(st.sampled_from([0, 0, 3, 9])),
        "chunk_limit_adapts": draw(st.booleans()),
        "max_active": draw(st.sampled_from([None, None, 1, 3])),
        "preempt_for_slot": policy == "priority" and draw(st.booleans()),
        "max_model_len": draw(st.sampled_from([None, None, 64, 200])),
    }
    return Scenario(
        requests=requests,
        slots=slots,
        budget=draw(st.sampled_from([8, 32, 64, 10**6])) if modes["chunked"] else 64,
        page_size=size,
        pages=longest + draw(st.sampled_from([0, 0, 1, 2, longest // 2, longest, 5 * longest, 10**6])),
        share=draw(st.sampled_from(shares)),
        cache=draw(st.sampled_from([PrefixPool, ExtentPool, RadixPool])),
        policy=policy,
        admission=draw(admissions),
        modes=modes,
        cost=draw(costs),
    )


@pytest.mark.slow
@given(scenarios())
def test_macro_steps_change_nothing(scenario):
    fast, slow = scenario.run(macro=True), scenario.run(macro=False)
    event(f"depth {scenario.modes['depth']}, {scenario.policy}, share {scenario.share}, {scenario.cache.__name__}")
    event(f"longer runs: {len(fast.run_table()['steps']) < fast.steps}")
    assert fast.events == slow.events
    assert fast.chunks == slow.chunks
    assert fast.ran.durations == slow.ran.durations
    assert fast.sha256() == slow.sha256()
    assert fast.cache == slow.cache
    assert steps_frame(fast).equals(steps_frame(slow))


@pytest.mark.slow
@given(scenarios(shares=("tenant", "all", "none")))
def test_extents_and_pages_one_by_one_decide_alike(scenario):
    """Digest, use of the cache and what is left in it are those of the pool that has an object for every page."""
    extents, pages = scenario.run(pool=ExtentPool), scenario.run(pool=PrefixPool)
    few, many = scenario.pools
    event(f"hits: {summary(pages)['tokens']['cached'] > 0}, evictions: {pages.cache.evictions > 0}")
    assert extents.sha256() == pages.sha256()
    assert extents.cache == pages.cache
    assert (few.cached, few.changes, few.contents()) == (many.cached, many.changes, many.contents())


@pytest.mark.slow
@given(scenarios())
def test_every_account_adds_up(scenario):
    log = scenario.run()
    found = summary(log)
    for account in ("slot_steps", "slot_seconds"):
        rows = dict(found[account])
        assert all(count >= 0 for count in rows.values())
        assert rows.pop("bought") == pytest.approx(sum(rows.values()), rel=1e-12)
    assert sum(found["pages"]["positions"].values()) == pytest.approx(scenario.pages * scenario.page_size)
    assert all(positions >= -1e-6 for positions in found["pages"]["positions"].values())
    longest = scenario.modes["max_model_len"] or 10**9
    done = [r for r in scenario.requests if r.prompt < longest]
    delivered = sum(min(r.output, longest - r.prompt) for r in done)
    assert found["requests"]["finished"] == len(done)
    assert found["tokens"]["output"] == delivered
    needed = sum(r.prompt - 1 for r in done) + delivered
    assert found["tokens"]["computed"] == needed + found["tokens"]["recomputed"] - found["tokens"]["cached"]
    if scenario.share is not None:
        cache = found["cache"]
        assert 0 <= cache["hit_tokens"] < cache["queried_tokens"] or not done
        assert cache["evictions"] <= found["tokens"]["computed"]


@given(scenarios(shares=("tenant",)))
def test_no_tenant_ever_hits_anothers_pages(scenario):
    log = scenario.run(pool=WATCHED[scenario.cache])
    (pool,) = scenario.pools
    hits = summary(log)["tokens"]["cached"]
    event(f"hits: {hits > 0}, {scenario.cache.__name__}")
    assert pool.claimed * scenario.page_size == hits


def test_nor_in_a_cache_that_is_warm():
    """The same prompts from the other tenant, on a cache the first one left."""
    tokens = tuple(range(64))
    left = PrefixPool(100, 16)
    mine = [Request("1", 0, 64, 2, tenant="a", tokens=tokens)]
    run(mine, Scheduler(Policy(build("fcfs", {}, 0)), left, EngineConfig(slots=1, token_budget=64)))
    for tenant, hits in (("a", 48), ("b", 0)):
        pool = PrefixPool(100, 16)
        pool.warm(left.contents())
        again = [Request("1", 0, 64, 2, tenant=tenant, tokens=tokens)]
        log = run(again, Scheduler(Policy(build("fcfs", {}, 0)), pool, EngineConfig(slots=1, token_budget=64)))
        assert summary(log)["tokens"]["cached"] == hits


@pytest.mark.parametrize("pair", [(("a\n", "b"), ("a", "\nb")), (("a", "', 'b"), ("a', '", "b"))])
def test_no_name_of_a_tenant_opens_the_pages_of_another(pair):
    (tenant, adapter), (other, another) = pair
    pool = PrefixPool(100, 16)
    tokens = tuple(range(32))
    requests = [
        Request("1", 0, 32, 1, tenant=tenant, adapter=adapter, tokens=tokens),
        Request("2", 9, 32, 1, tenant=other, adapter=another, tokens=tokens),
    ]
    log = run(requests, Scheduler(Policy(build("fcfs", {}, 0)), pool, EngineConfig(slots=1, token_budget=64)))
    assert summary(log)["cache"]["hit_tokens"] == 0
