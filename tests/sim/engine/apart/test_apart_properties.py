"""What holds in every run of an engine with passes of one kind; scenarios are random over all its settings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, event, example, given
from hypothesis import strategies as st
from watched_pools import WatchedBlocks, WatchedExtents, WatchedRadix

from policies.registry import build
from sim.accounting.frames import requests_frame, steps_frame
from sim.accounting.metrics import summary
from sim.cost.forms import Affine, Roofline, StepCost, Unit
from sim.engine.apart import admission
from sim.engine.apart.admission import OutOfMemoryError
from sim.engine.apart.budget import PrefillBudget
from sim.engine.apart.config import ApartConfig, RatioConfig
from sim.engine.apart.scheduler import ApartScheduler
from sim.memory.eviction import RANKS
from sim.memory.pool import PagePool
from sim.policy.base import Optimistic, Policy
from sim.policy.peak import Peak
from sim.request import Patience, Request
from sim.service.cluster import simulate

POLICIES = ("fcfs", "priority", "sjf", "random", "vtc")
POLICIES += ("requeue", "lof", "lpm", "dfs_weight", "prefill_hrrn", "shortest_prefill_first", "shuffle")

CACHES = {"blocks": WatchedBlocks, "extents": WatchedExtents}


@dataclass(frozen=True)
class Scenario:
    requests: list[Request]
    config: ApartConfig
    pages: int
    page_size: int
    cache: str
    policy: str
    cost: StepCost

    def pool(self):
        if not self.cache:
            return PagePool(self.pages, self.page_size)
        if self.cache in CACHES:
            return CACHES[self.cache](self.pages, self.page_size, "tenant")
        return WatchedRadix(self.pages, self.page_size, "tenant", eviction=self.cache)

    @property
    def by_peak(self):
        return self.config.by_rule and self.config.retract_by_priority

    def run(self, macro=True, pool=None):
        pool = pool or self.pool()
        rule = Peak(self.config.retract_latest) if self.by_peak else Optimistic()
        policy = Policy(build(self.policy, {}, seed=7), rule)
        return simulate(self.requests, ApartScheduler(policy, pool, self.config), self.cost, macro)


costs = st.sampled_from(
    [
        Unit(7),
        Affine(base=5, per_sequence=0.7, per_context_token=0.13, per_prefill_token=1.1, per_chunk_work=0.01),
        Roofline(weight_pass=10, per_token=0.9, per_context_token=0.05, per_sequence=0.3, host=2),
        Roofline(weight_pass=9, per_context_token=0.4, raggedness=0.5, overlapped_host=12, graph_sizes=(1, 2, 4)),
    ]
)


@st.composite
def configs(draw, size):
    """Any settings of the engine."""
    chunk = draw(st.sampled_from([None, None, size, 16, 16, 64]))
    initial = draw(st.sampled_from([0.0, 0.1, 0.7, 1.0]))
    return ApartConfig(
        slots=draw(st.sampled_from([1, 2, 3, 8, 16])),
        max_prefill_tokens=draw(st.sampled_from([1, 8, 40, 10**6])),
        chunked_prefill_size=chunk,
        mixed=chunk is not None and draw(st.booleans()),
        prefill_interval=draw(st.sampled_from([0, 0, 1, 3])),
        prefill_max_requests=draw(st.sampled_from([None, None, 1, 3])),
        depth=draw(st.sampled_from([1, 2])),
        ratio=RatioConfig(
            initial=initial,
            minimum=initial * draw(st.sampled_from([0.14, 1.0])),
            decay_passes=draw(st.sampled_from([5, 600])),
            ahead=draw(st.sampled_from([0, 20])),
        ),
        by_rule=chunk is None and draw(st.booleans()),
        retract_latest=draw(st.booleans()),
        preempt_by=draw(st.sampled_from([None, None, 0, 2])),
        retract_by_priority=draw(st.booleans()),
    )


@st.composite
def scenarios(draw):
    """From barely enough pages for the longest request to plenty."""
    most = draw(st.sampled_from([12, 60, 200]))
    requests, now = [], 0
    shared = draw(st.sampled_from([0, 5, 33]))
    for place in range(draw(st.integers(1, 20))):
        now += draw(st.sampled_from([0, 0, 1, 7, 20, 49, 350, 3000]))
        fixed = draw(st.booleans())
        output = draw(st.one_of(st.integers(1, 4), st.integers(1, most)))
        limit = output + (0 if fixed else draw(st.sampled_from([0, 1, 5, 50])))
        prompt = draw(st.integers(1, 50))
        same = min(shared, prompt) if draw(st.booleans()) else 0
        tokens = (*range(same), *(1000 * place + 1000 + at for at in range(same, prompt)))
        priority = draw(st.integers(0, 3))
        requests.append(
            Request(
                str(place),
                now,
                prompt,
                output,
                draw(st.sampled_from("aab")),
                limit,
                priority,
                tokens,
                patience=Patience(ignore_eos=fixed),
            )
        )
    size = draw(st.sampled_from([1, 2, 4, 16]))
    longest = max(-(-(request.prompt + 7) // size) for request in requests)
    spare = draw(st.sampled_from([1, 2, longest, 5 * longest, 10**4]))
    return Scenario(
        requests,
        draw(configs(size)),
        longest + spare + 2,
        size,
        draw(st.sampled_from(["", "", *CACHES, *RANKS])),
        draw(st.sampled_from(POLICIES)),
        draw(costs),
    )


def ran(scenario, macro=True, pool=None):
    """The log, unless the engine dies as its model does."""
    try:
        return scenario.run(macro, pool)
    except OutOfMemoryError:
        assume(False)


def same(left, right):
    """Equal, numbers to the last digits: sums may be taken in another order."""
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == (pytest.approx(right, rel=1e-12) if isinstance(right, float) else right)


@given(scenarios())
def test_macro_steps_change_nothing(scenario):
    fast, slow = ran(scenario), ran(scenario, macro=False)
    event(f"{scenario.policy}, cache {scenario.cache or 'off'}")
    event(f"longer runs: {len(fast.run_table()['steps']) < fast.steps}")
    assert fast.events == slow.events
    assert fast.chunks == slow.chunks
    assert fast.stints == slow.stints
    assert fast.step_durations().tolist() == slow.step_durations().tolist()
    assert fast.sha256() == slow.sha256()
    assert same(summary(fast, {"ttft": 500}), summary(slow, {"ttft": 500}))
    assert fast.cached_by_step().tolist() == slow.cached_by_step().tolist()
    assert steps_frame(fast).equals(steps_frame(slow))


@given(scenarios())
def test_extents_and_pages_one_by_one_decide_alike(scenario):
    few, many = (pool(scenario.pages, scenario.page_size, "tenant") for pool in (WatchedExtents, WatchedBlocks))
    extents, pages = ran(scenario, pool=few), ran(scenario, pool=many)
    event(f"found: {many.claimed > 0}, evictions: {pages.cache.evictions > 0}")
    assert extents.sha256() == pages.sha256()
    assert extents.cache == pages.cache
    assert (few.cached, few.protected, few.claimed) == (many.cached, many.protected, many.claimed)
    assert few.contents() == many.contents()


@given(scenarios())
def test_every_account_adds_up(scenario):
    log = ran(scenario)
    found = summary(log)
    for account in ("slot_steps", "slot_seconds"):
        rows = dict(found[account])
        assert all(count >= 0 for count in rows.values())
        assert rows.pop("bought") == pytest.approx(sum(rows.values()), rel=1e-12)
    assert found["slot_steps"]["bought"] == scenario.config.slots * found["steps"]
    assert sum(found["pages"]["positions"].values()) == pytest.approx(scenario.pages * scenario.page_size)
    assert all(positions >= -1e-6 for positions in found["pages"]["positions"].values())
    if scenario.by_peak and scenario.config.preempt_by is None:
        assert found["preemptions"] == 0
    counts = dict(found["requests"])
    assert counts.pop("injected") == len(scenario.requests) == sum(counts.values())
    assert counts["finished"] + counts["rejected"] + counts["cancelled"] == len(scenario.requests)
    frame = requests_frame(log)
    finished = frame[frame.status == "finished"]
    assert int(finished.tokens.sum()) == sum(
        min(request.output, scenario_limit(scenario, request))
        for request in scenario.requests
        if request.id in set(finished.id)
    )
    assert found["itl_s"]["n"] == int((frame.tokens - 1).clip(lower=0).sum())


def scenario_limit(scenario, request):
    """Most outputs that the memory has room for behind a prompt."""
    size, memory = scenario.page_size, scenario.pages * scenario.page_size
    if scenario.config.by_rule:
        return memory - request.prompt
    return min(memory - 2 - request.prompt, memory - -(-request.prompt // size) * size - size - 1)


@given(scenarios())
def test_every_pass_is_of_one_kind_and_computes_something(scenario):
    log = ran(scenario)
    frame = steps_frame(log)
    assert (frame.tokens >= 1).all()
    still = set(log.still())
    prefills = {step for step, _, _, _ in log.chunk_table().tolist()}
    for step in range(log.steps):
        if step in prefills and step not in still:
            continue  # mixed, or a finished sequence rides along
        assert (step in prefills) == (step in still)


@given(scenarios())
def test_gaps_between_tokens_are_those_of_the_steps_that_bring_them(scenario):
    log = ran(scenario)
    records = requests_frame(log)
    ends = (steps_frame(log).start_ns + steps_frame(log).duration_ns).tolist()
    still = set(log.still())
    times = {index: [] for index in range(len(log.requests))}
    for time, kind, index, _ in log.event_table().tolist():
        if kind in (3, 4):
            times[index].append(time)
    for index, first, end in log.stint_table().tolist():
        times[index] += [ends[step] for step in range(first, end) if step not in still]
    for index, record in enumerate(records.itertuples()):
        given_at = sorted(times[index])
        if record.status != "finished":
            continue
        assert record.tokens == len(given_at)
        assert record.ended_ns == given_at[-1]
        if len(given_at) > 1:
            assert record.max_itl_s == pytest.approx(np.diff(given_at).max() / 1e9)


@given(scenarios())
def test_no_tenant_ever_finds_what_another_has_left(scenario):
    assume(scenario.cache)
    pool = scenario.pool()
    log = ran(scenario, pool=pool)
    found = summary(log)["tokens"]["cached"]
    event(f"found: {found > 0}")
    assert pool.claimed * scenario.page_size >= found
    pool.check()


KNOWN_TO_END = Scenario(
    requests=[
        Request(str(place), 0, 1, output, declared=output, tokens=(place,), patience=Patience(ignore_eos=place == 1))
        for place, output in enumerate([2, 1, 1, 1, 1, 1])
    ],
    config=ApartConfig(
        slots=3, max_prefill_tokens=1, chunked_prefill_size=1, depth=2,
        ratio=RatioConfig(initial=0.1, minimum=0.014, decay_passes=5, ahead=0),
    ),
    pages=11,
    page_size=1,
    cache="",
    policy="fcfs",
    cost=Unit(7),
)  # fmt: skip
"""The last token of a request that is known to produce all is in flight: it counts whole, beside others."""


@example(KNOWN_TO_END)
@given(scenarios())
def test_what_is_reserved_is_never_more_than_the_bound_that_is_tried_first(scenario):
    compared = []

    class Watched(PrefillBudget):
        def leaves_more_than(self, tokens):
            compared.append(self.reserved <= self.most)
            return super().leaves_more_than(tokens)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admission, "PrefillBudget", Watched)
        ran(scenario)
    event(f"compared: {bool(compared)}")
    assert all(compared)
