"""A wrapper that does not bind is not there: every order in every wrapper decides as it does alone."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from sim_stories import booked, engine, happenings, job, run

from policies.fcfs import FirstComeFirstServed
from policies.registry import POLICIES, build, names, victim
from policies.tenant_slots import TenantSlots
from sim.accounting.metrics import summary
from sim.cost.forms import Affine
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.prefix import PrefixPool
from sim.policy.base import Optimistic, Order, Policy
from sim.policy.listener import Listener
from sim.policy.wrapper import Forwarding, Wrapper
from sim.request import Patience, Request

NEVER = 10**14
LOOSE = {
    "fair": {"max_wait": NEVER},
    "vtc": {},
    "drr": {"quantum": 7},
    "max_wait": {"max_wait": NEVER},
    "aging": {"unit": 10**8},
    "tenant_slots": {"slots": 10**6},
    "tenant_rate": {"rate": 10**8, "burst": 10**8},
    "tenant_quota": {"requests": 10**6},
    "reserved": {"of": 10**6, "tenants": {"nobody": 1}},
}
"""Options under which a wrapper changes nothing, with a single tenant."""
PREEMPTIVE = [("srpt", {"preemptive": True}), ("mlfq", {"preemptive": True, "quantum": 4})]
ORDERS = [*((name, LOOSE.get(name, {})) for name in names()), *PREEMPTIVE, ("mlfq", {"quantum": 4})]
BY_RANK = ("sjf", "srpt", "longest", "shortest_prompt", "priority", "mlfq", "random", "edf", "least_slack")


def requests(seed):
    """Bursts of one tenant, of whom some give up; half of the prompts begin alike."""
    draws = np.random.default_rng(seed)
    found, now = [], 0
    for place in range(60):
        now += int(draws.choice([0, 0, 30, 200]))
        prompt, output = int(draws.integers(1, 40)), int(draws.integers(1, 60))
        tokens = (*range(prompt - 1), place) if place % 2 else tuple(range(100 * place, 100 * place + prompt))
        patience = {0: {"cancel_after": 900}, 1: {"queue_timeout": 300}}.get(place % 9, {})
        urgency = int(draws.integers(0, 3))
        found.append(
            Request(str(place), now, prompt, output, priority=urgency, tokens=tokens, patience=Patience(**patience))
        )
    return found


def log_of(name, options, seed=0, **modes):
    """The digest of an engine with three slots and too few pages for them, and its log."""
    policy = Policy(build(name, options, 3), Optimistic(), victim(name, options))
    scheduler = Scheduler(policy, PrefixPool(30, 4, "all"), EngineConfig(slots=3, token_budget=40, **modes))
    return run(requests(seed), scheduler, Affine(base=5, per_sequence=0.7, per_prefill_token=1.1))


@cache
def alone(name, options, seed, depth):
    """The digest of the plain order."""
    log = log_of(name, json.loads(options), seed, depth=depth)
    assert summary(log)["preemptions"] > 0
    return log.sha256()


def fits(wrapper, name, options):
    """Whether a wrapper takes an order at all."""
    if options.get("preemptive") and not POLICIES[wrapper].wraps_preemptive:
        return False
    return wrapper != "aging" or name in BY_RANK


def pairs():
    return [
        pytest.param(wrapper, name, options, id=f"{wrapper}-{name}{'-preemptive' * bool(options.get('preemptive'))}")
        for wrapper in LOOSE
        for name, options in ORDERS
        if fits(wrapper, name, options)
    ]


def test_every_wrapper_is_among_those_compared():
    assert set(LOOSE) == {name for name, entry in POLICIES.items() if "order" in entry.options}


@pytest.mark.parametrize(("wrapper", "name", "options"), pairs())
def test_a_wrapper_that_does_not_bind_changes_no_decision(wrapper, name, options):
    wrapped = LOOSE[wrapper] | {"order": {name: options}}
    for seed, depth in ((0, 1), (1, 2)):
        plain = alone(name, json.dumps(options), seed, depth)
        assert log_of(wrapper, wrapped, seed, depth=depth).sha256() == plain


def test_what_is_forwarded_leaves_out_nothing_of_an_order():
    own = {name for name in vars(Order) if callable(getattr(Order, name)) and not name.startswith("_")}
    heard = {name for name in vars(Listener) if not name.startswith("_")}
    for hook in (own | heard) - {"head", "next_change", "displaced"}:
        assert hook in vars(Forwarding), hook
    for hook in own:
        assert getattr(Wrapper, hook) is not getattr(Order, hook), hook
    traits = {name for name, value in vars(Order).items() if isinstance(value, bool)}
    assert traits == {"appends", "by_urgency", "preempts", "cuts_one", "looks_up"}
    for trait in traits:
        inner = build("fcfs", {}, 0)
        setattr(inner, trait, True)
        assert getattr(Keeps(inner), trait)
    watching = build("vtc", {}, 0)
    assert Keeps(watching).listeners == (watching,)


class Keeps(Wrapper):
    """It changes nothing."""

    reorders = False


@pytest.mark.parametrize("wrapper", LOOSE)
def test_the_urgent_keep_their_pages_when_priority_is_wrapped(wrapper):
    # Six pages of one token: at 3 both want a fourth, and the one of class 1 must go, though it came first.
    sent = [Request("idle", 0, 1, 5, priority=1), Request("urgent", 0, 1, 5, priority=0)]
    options = LOOSE[wrapper] | {"order": "priority"}
    order = build(wrapper, options, 0)
    log = run(sent, engine(slots=2, pages=6, page_size=1, order=order, victim=victim(wrapper, options)))
    assert [event.who for event in happenings(log, "preempted")] == ["idle"]


@pytest.mark.parametrize("quota", [{}, {"requests": 99}])
def test_a_quota_keeps_the_slot_of_the_urgent_open(quota):
    # The urgent one comes at 2 and takes the slot of the idle one.
    sent = [Request("idle", 0, 1, 5, priority=1), Request("urgent", 2, 1, 5, priority=0)]
    order = build("tenant_quota", quota | {"order": "priority"}, 0)
    log = run(sent, engine(slots=1, order=order, preempt_for_slot=True, victim=victim("priority")))
    assert [(event.who, event.time) for event in happenings(log, "admitted")][:2] == [("idle", 0), ("urgent", 2)]


def held_back_by_its_tenant(first, second, others):
    """Two slots and turns worth 2, which each of b and c costs; a may run one at a time, and its second costs 20."""
    order = build("tenant_slots", {"slots": 1, "order": {"drr": {"quantum": 2}}}, 0)
    sent = [job("a1", first, tenant="a"), job("a2", 19, tenant="a", arrival=second)]
    sent += [job(f"{tenant}{n}", 1, tenant=tenant, arrival=others) for n in range(40) for tenant in "bc"]
    return [(event.who, event.time) for event in happenings(run(sent, engine(slots=2, order=order)), "admitted")]


def test_who_was_held_back_owes_for_its_turn_what_it_costs():
    # a2 comes to its turn at 0, when nobody else is there, and is held to 12. b and c, who come at 1, go 11 times
    # until then. At 12 a has a deficit of 1 and needs ten visits: the other of b and c and nine times both go before.
    admitted = held_back_by_its_tenant(first=12, second=0, others=1)
    assert [who for who, _ in admitted].index("a2") == 1 + 11 + 19


def test_who_was_held_back_has_what_it_saved_for_its_turn():
    # a2 comes at 1, with the others, who go 29 times beside a1: ten visits are over at 20, and it is held to 30.
    assert ("a2", 30) in held_back_by_its_tenant(first=30, second=1, others=1)


class Strict(FirstComeFirstServed):
    """It takes nobody back who has not been admitted, and nobody in twice."""

    def __init__(self):
        super().__init__()
        self.seen = {}

    def push(self, seq, now, step):
        assert seq.index not in self.seen
        self.seen[seq.index] = seq
        super().push(seq, now, step)

    def push_back(self, seq, now, step):
        assert seq.index in self.seen
        assert seq.serial >= 0
        super().push_back(seq, now, step)


def test_who_was_held_back_is_neither_a_newcomer_nor_preempted():
    # Four of one tenant, two at once, for which there are too few pages: the second is preempted, and held.
    order = TenantSlots(Strict, 2, {})
    log = run([job(str(n), 6) for n in range(4)], engine(slots=4, pages=7, page_size=1, order=order))
    assert summary(log)["preemptions"] > 0
    assert summary(log)["requests"]["finished"] == 4
    assert order.inner.seen.keys() == {0, 1, 2, 3}
    assert order.queues["default"].seen.keys() == {1, 2, 3}


def test_the_limit_alone_is_booked_while_somebody_is_held():
    order = build("tenant_slots", {"slots": 1, "order": "drr"}, 0)
    log = run([job("a1", 4, tenant="a"), job("a2", 4, tenant="a")], engine(slots=2, order=order))
    assert booked(summary(log))["limited"] == 4
