"""Whoever is driven out of a slot makes room for an admission in the same plan, or stays."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from sim_stories import PLENTY, chunks, engine, happenings, job, run, times

from policies import victims
from policies.priority import PriorityOrder
from policies.registry import build
from policies.srpt import ShortestRemaining
from sim.cost.forms import Affine, Unit
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.log.events import ADMITTED, PREEMPTED
from sim.memory.pool import PagePool
from sim.memory.prefix import PrefixPool
from sim.policy.base import LeastUrgent, Optimistic, Policy, Reserve
from sim.policy.peak import Peak
from sim.policy.quantile import Quantile
from sim.policy.ratio import Ratio
from sim.request import Patience, Request


def urgent(name, output, prompt, priority, arrival=0):
    """A request with a priority."""
    return Request(name, arrival, prompt, output, priority=priority)


def by_priority(requests, **settings):
    """Two slots and pages of 1; the more urgent take the slots of the less urgent."""
    settings = {"slots": 2, "page_size": 1, "preempt_for_slot": True} | settings
    return run(requests, engine(order=PriorityOrder(), **settings))


def entry_of_c(log):
    """When c was admitted, and who had been driven out when."""
    return times(log, "admitted")["c"], [(event.time, event.who) for event in happenings(log, "preempted")]


def test_who_would_not_get_in_for_the_watermark_drives_nobody_out():
    # Of 20 pages a watermark keeps int(0.5 x 21) = 10 while anybody runs. c asks for 8 at step 1: beside a, which
    # holds 5 to 7, there are 15 or fewer for 18 even without b. At step 4 a has left, and at step 8 b.
    three = [urgent("a", 4, 4, 1), urgent("b", 8, 1, 2), urgent("c", 1, 8, 0, arrival=1)]
    assert entry_of_c(by_priority(three, pages=20, admission=Optimistic(watermark=0.5))) == (8, [])


def test_who_would_not_get_in_for_its_whole_prompt_drives_nobody_out():
    # 10 tokens a step: beside a, 9 are left with or without b. With both gone there are 10.
    three = [urgent("a", 4, 4, 1), urgent("b", 8, 1, 2), urgent("c", 1, 10, 0, arrival=1)]
    assert entry_of_c(by_priority(three, budget=10, chunked=False)) == (8, [])


@pytest.mark.parametrize(
    ("rule", "pages", "entry"),
    [
        (Reserve(), 24, (10, [])),  # a keeps 13, and c asks for 12: one too many until a has left, at step 10
        (Ratio(1.0, 1.0), 25, (10, [])),  # 12, and for a's 13 one more than it holds, as a step is on its way
        (
            Peak(),
            20,
            (5, [(5, "b")]),
        ),  # when a has its 13, c must have 7 or fewer: 4 steps after the one that admits it
        (Quantile(given=[40]), 20, (8, [])),  # the same, but asked at step 1 it is not asked again until b has left
    ],
)
def test_who_would_not_get_in_for_the_admission_rule_drives_nobody_out(rule, pages, entry):
    three = [urgent("a", 10, 4, 1), urgent("b", 8, 1, 2), urgent("c", 10, 3, 0, arrival=1)]
    assert entry_of_c(by_priority(three, pages=pages, admission=rule)) == entry


def test_who_would_not_get_in_for_want_of_pages_drives_nobody_out():
    # Of 13 pages c needs 10; a holds 5 and more. At step 4 both have left.
    three = [urgent("a", 4, 4, 1), urgent("b", 4, 1, 2), urgent("c", 1, 10, 0, arrival=1)]
    assert entry_of_c(by_priority(three, pages=13)) == (4, [])


def test_the_pages_and_the_tokens_of_who_leaves_are_counted():
    # 12 pages and 6 tokens a step. At step 2 a and b take their sixth page, which leaves no page and 4 tokens. c
    # needs 5 of each: with what b gives back it enters.
    three = [urgent("a", 9, 4, 1), urgent("b", 5, 5, 2), urgent("c", 1, 5, 0, arrival=2)]
    assert entry_of_c(by_priority(three, pages=12, budget=6, chunked=False)) == (2, [(2, "b")])


@pytest.mark.parametrize(("prompt", "entry"), [(6, (1, [(1, "b")])), (8, (4, []))])
def test_pages_that_somebody_else_holds_too_do_not_become_free(prompt, entry):
    # 8 pages of 2. a and b share the pages of their first 8 tokens, and each has another one: 2 are free. With b's
    # own there are 3 for c, though b gives back five.
    shared = tuple(range(8))
    two = [Request(name, 0, 9, 4, priority=rank, tokens=(*shared, 90 + rank)) for name, rank in (("a", 1), ("b", 2))]
    policy = Policy(PriorityOrder(), Optimistic())
    scheduler = Scheduler(policy, PrefixPool(8, 2), EngineConfig(slots=2, token_budget=PLENTY, preempt_for_slot=True))
    assert entry_of_c(run([*two, urgent("c", 1, prompt, 0, arrival=1)], scheduler)) == entry


@pytest.mark.parametrize("macro", [True, False])
def test_a_head_that_gives_up_lets_the_next_one_ask(macro):
    # b's slot is of no use to d, whose 60 tokens do not fit beside a. When d has given up, within step 4, c takes it.
    requests = [
        job("a", 20, prompt=4),
        job("b", 58, prompt=2),
        Request("d", 1, 60, 1, patience=Patience(cancel_after=44)),
        job("c", 2, arrival=2),
    ]
    order = ShortestRemaining(preemptive=True)
    log = run(requests, engine(2, pages=62, page_size=1, order=order), Unit(10), macro=macro)
    assert entry_of_c(log) == (50, [(50, "b")])


def test_who_was_driven_out_with_a_token_in_flight_waits_for_it_before_it_drives_out_another():
    # c takes the slot of a, which has the most to come. a is more urgent than b, and takes b's slot one plan later.
    requests = [urgent("a", 50, 1, 1), urgent("b", 20, 1, 2), urgent("c", 5, 1, 0, arrival=5)]
    order, victim = PriorityOrder(), victims.build("largest_remaining", {}, 0)
    log = run(requests, engine(2, order=order, victim=victim, preempt_for_slot=True, depth=2))
    assert [(event.time, event.who) for event in happenings(log, "preempted")] == [(5, "a"), (6, "b")]


@pytest.mark.parametrize("macro", [True, False])
def test_who_runs_and_becomes_overdue_may_leave_its_place_as_the_victim_to_another(macro):
    # a has the most to come, and its pages do not make room for c. From 141 on a is overdue and stays; b's pages do.
    requests = [job("a", 250, arrival=40), job("b", 120, 150, arrival=50), job("c", 5, 200, arrival=60)]
    order = build("max_wait", {"order": {"srpt": {"preemptive": True}}, "max_wait": 100}, 0)
    log = run(requests, engine(2, pages=350, page_size=1, order=order), macro=macro)
    entered, driven_out = entry_of_c(log)
    assert (entered, driven_out[0]) == (141, (141, "b"))


def test_two_may_take_two_slots_in_one_plan():
    four = [
        urgent("a", 9, 1, 1),
        urgent("b", 9, 1, 2),
        urgent("c", 1, 1, 0, arrival=1),
        urgent("d", 1, 1, 0, arrival=1),
    ]
    log = by_priority(four, victim=LeastUrgent())
    assert [(event.time, event.who) for event in happenings(log, "preempted")] == [(1, "b"), (1, "a")]
    assert [times(log, "admitted")[name] for name in "cd"] == [1, 1]


def test_pages_that_only_the_step_of_who_leaves_would_fill_are_not_found():
    # Pages of 2, 4 tokens a step. In step 1 v would compute its positions 4 to 7, which h has too. h takes its slot,
    # and finds the two pages that v computed in step 0.
    tokens = tuple(range(12))
    requests = [Request("v", 0, 10, 1, tokens=tokens[:10], priority=1), Request("h", 1, 12, 1, tokens=tokens)]
    policy = Policy(PriorityOrder(), Optimistic())
    scheduler = Scheduler(policy, PrefixPool(99, 2), EngineConfig(slots=1, token_budget=4, preempt_for_slot=True))
    log = run(requests, scheduler)
    assert entry_of(log, "h") == [(1, 4)]
    assert chunks(log)[:2] == [(0, "v", 0, 4), (1, "h", 4, 4)]


def test_pages_that_who_leaves_had_filled_before_stay_in_the_cache():
    # Pages of 4. v computes 4 positions alone, and would compute 2 more in step 1, which fill no page.
    tokens = tuple(range(12))
    requests = [Request("v", 0, 10, 1, tokens=tokens[:10], priority=1), Request("h", 1, 12, 1, tokens=tokens)]
    policy = Policy(PriorityOrder(), Optimistic())
    settings = {"slots": 1, "token_budget": 4, "chunk_limit": 2, "preempt_for_slot": True}
    log = run(requests, Scheduler(policy, PrefixPool(99, 4), EngineConfig(**settings)))
    assert entry_of(log, "h") == [(1, 4)]


def test_who_computes_what_a_newcomer_counts_on_stays_for_that_step():
    # Pages of 2, and 4 tokens a sequence while there are several. In step 1 v computes positions 12 to 15, and n, who
    # gets the free slot, finds them. h could have v's slot, but not in this step: it gets it in step 2.
    tokens = tuple(range(40))
    requests = [
        Request("v", 0, 40, 1, tokens=tokens, priority=2),
        Request("n", 1, 20, 9, tokens=tokens[:20]),
        urgent("h", 1, 1, 1, arrival=1),
    ]
    policy = Policy(PriorityOrder(), Optimistic(), LeastUrgent())
    settings = {"slots": 2, "token_budget": 12, "chunk_limit": 4, "preempt_for_slot": True}
    log = run(requests, Scheduler(policy, PrefixPool(99, 2), EngineConfig(**settings)))
    assert (entry_of(log, "n"), entry_of(log, "h")) == ([(1, 16)], [(2, 0)])
    assert [(event.time, event.who) for event in happenings(log, "preempted")] == [(2, "v")]


def test_pages_that_only_the_victim_holds_are_free_once_and_not_in_use_besides():
    # Of 9 pages of 2 a holds 2 in step 1, and v 5, of which h would find 4. If v left 7 were free, and h needs 8. v
    # ends with step 3, a with step 8.
    tokens = tuple(range(16))
    requests = [
        urgent("a", 9, 2, 0),
        Request("v", 0, 8, 4, tokens=tokens[:8], priority=2),
        Request("h", 1, 16, 1, tokens=tokens, priority=1),
    ]
    policy = Policy(PriorityOrder(), Optimistic())
    scheduler = Scheduler(policy, PrefixPool(9, 2), EngineConfig(slots=2, token_budget=99, preempt_for_slot=True))
    log = run(requests, scheduler)
    assert entry_of(log, "h") == [(9, 8)]
    assert happenings(log, "preempted") == []


def test_the_pages_that_who_leaves_had_reserved_are_counted():
    # Of 16 pages a has reserved 9 and b 6, of which it uses 3. c needs 5.
    three = [urgent("a", 6, 4, 1), urgent("b", 5, 2, 2), urgent("c", 1, 5, 0, arrival=1)]
    log = run(
        three,
        engine(2, pages=16, page_size=1, order=PriorityOrder(), admission=Reserve(), preempt_for_slot=True),
    )
    assert entry_of_c(log) == (1, [(1, "b")])


def entry_of(log, who):
    """(time, tokens found) of each admission of a request."""
    return [
        (time, found)
        for time, kind, index, found in log.event_table().tolist()
        if kind == ADMITTED and log.requests[index].id == who
    ]


class Checked(Scheduler):
    """A scheduler that looks at its own plans: each that is driven out makes room for who is admitted next."""

    seen: Counter[str]

    def plan(self, now):
        before, waiting = len(self.log.events) // 32, self.state.waiting.count
        batch = super().plan(now)
        events = [(kind, who) for _, kind, who, _ in self.log.event_table()[before:] if kind in (PREEMPTED, ADMITTED)]
        if batch.preempted:
            assert all(kind == PREEMPTED for kind, _ in events)
            return batch
        for place, (kind, who) in enumerate(events):
            if kind == PREEMPTED:
                assert events[place + 1][0] == ADMITTED, "somebody left for nobody"
                assert events[place + 1][1] != who
                self.seen["driven out"] += 1
        self.seen["kept"] += bool(batch.refused and waiting and len(self.state.running) == self.config.most_active)
        return batch


orders = st.sampled_from(
    [
        ("priority", {}),
        ("srpt", {"preemptive": True}),
        ("mlfq", {"preemptive": True, "quantum": 3, "ratio": 2, "prompt_tokens": 4}),
        ("max_wait", {"order": {"srpt": {"preemptive": True}}, "max_wait": 100}),
        ("max_wait", {"order": {"mlfq": {"preemptive": True, "quantum": 5}}, "max_wait": 300}),
        ("tenant_quota", {"order": {"srpt": {"preemptive": True}}, "requests": 3, "window": 200}),
    ]
)
"""All that preempt for a slot; `priority` by the engine's setting."""
rules = st.one_of(
    st.builds(Optimistic, whole=st.booleans(), watermark=st.sampled_from([0.0, 0.1, 0.4])),
    st.just(Reserve()),
    st.builds(Peak),
    st.builds(Ratio, initial=st.sampled_from([0.3, 0.7])),
    st.builds(Quantile, epsilon=st.sampled_from([0.05, 0.5])),
)


@st.composite
def workloads(draw):
    """Requests of three urgencies and two tenants, some of them impatient; prompts often begin alike."""
    arrival, requests = 0, []
    for place in range(draw(st.integers(4, 14))):
        arrival += draw(st.sampled_from([0, 0, 7, 30, 90]))
        prompt = draw(st.one_of(st.integers(1, 6), st.integers(10, 40)))
        output = draw(st.one_of(st.integers(1, 5), st.integers(10, 60)))
        patience = draw(st.sampled_from([{}, {}, {"queue_timeout": 90}, {"cancel_after": 200}]))
        same = draw(st.integers(0, prompt))
        tokens = (0,) * same + (place + 1,) * (prompt - same)
        limit = output + draw(st.sampled_from([0, 0, 9]))
        rank = draw(st.integers(0, 2))
        requests.append(
            Request(
                str(place),
                arrival,
                prompt,
                output,
                "ab"[place % 2],
                limit,
                priority=rank,
                tokens=tokens,
                patience=Patience(**patience),
            )
        )
    return requests


@pytest.mark.slow
@given(
    requests=workloads(),
    slots=st.sampled_from([2, 2, 3, 4]),
    size=st.sampled_from([1, 4]),
    spare=st.sampled_from([0, 1, 3, 10]),
    order=orders,
    rule=rules,
    victim=st.sampled_from(list(victims.VICTIMS)),
    chunked=st.booleans(),
    remembers=st.booleans(),
    mode=st.sampled_from([{}, {"depth": 2}, {"evict": "after"}, {"swap": True}, {"chunk_limit": 5}]),
    limits=st.sampled_from([{}, {}, {"max_active": 2}, {"admit_every": 3}]),
)
def test_whoever_is_driven_out_makes_room_or_stays(
    requests, slots, size, spare, order, rule, victim, chunked, remembers, mode, limits
):
    longest = max(-(-(r.prompt + r.max_output) // size) for r in requests)
    pages = longest + spare
    remembers = remembers and not rule.reserves and "swap" not in mode
    seen: Counter[str] = Counter()

    def log(macro):
        pool = (PrefixPool if remembers else PagePool)(pages, size)
        policy = Policy(build(*order, 3), deepcopy(rule), victims.build(victim, {}, 3))
        by_slot = {"preempt_for_slot": True} if order[0] == "priority" else {}
        settings = {"slots": slots, "token_budget": 45, "chunked": chunked} | mode | limits | by_slot
        scheduler = Checked(policy, pool, EngineConfig(**settings))
        scheduler.seen = seen
        cost = Affine(base=5, per_sequence=0.7, per_context_token=0.13, per_prefill_token=1.1)
        return run(requests, scheduler, cost, macro=macro)

    fast = log(macro=True)
    assert fast.sha256() == log(macro=False).sha256()
    for what in seen:
        event(f"{order[0]}, {type(rule).__name__}: {what}" if seen[what] else f"not {what}")
