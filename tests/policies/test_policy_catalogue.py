"""The whole registry: what holds under every policy, and what must not depend on it."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from repository import ROOT
from sim_stories import engine, happenings, job, run

from policies import victims
from policies.registry import POLICIES, build, names, resolve
from sim.accounting.metrics import summary
from sim.cost.forms import Affine, Unit
from sim.log.events import Kind
from sim.request import Patience, Request

predictors = st.sampled_from(
    [
        "exact",
        "prompt",
        "class_mean",
        {"quantile": {"quantile": 0.5, "prior": 20}},
        {"classifier": {"edges": [5, 20], "confusion": [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0, 0.3, 0.7]]}},
        {"correlated": {"tau": 0.4, "median": 10, "sigma": 1.0}},
    ]
)
caps = st.sampled_from([0, 30, 300, 3000, 10**9])
promises = {"within": st.sampled_from([0, 100, 5000]), "tenants": st.just({"a": {"within": 50}})}
own = {
    "fcfs": {},
    "priority": {},
    "shortest_prompt": {},
    "random": {},
    "requeue": {"by_priority": st.booleans()},
    "lof": {"by_priority": st.booleans()},
    "lpm": {},
    "dfs_weight": {},
    "prefill_hrrn": {},
    "shortest_prefill_first": {},
    "shuffle": {},
    "sjf": {"predict": predictors},
    "srpt": {"predict": predictors, "preemptive": st.booleans()},
    "longest": {"predict": predictors},
    "hrrn": {"predict": predictors},
    "edf": promises,
    "least_slack": promises | {"token_time": st.sampled_from([0, 7, 30]), "predict": predictors},
    "mlfq": {
        "quantum": st.sampled_from([1, 4]),
        "ratio": st.sampled_from([2, 4]),
        "levels": st.sampled_from([1, 3]),
        "prompt_tokens": st.sampled_from([1, 8]),
        "preemptive": st.booleans(),
    },
    "vtc": {
        "weights": st.sampled_from([{}, {"a": 2, "b": 1.5}]),
        "output_weight": st.sampled_from([0.5, 2]),
        "lift": st.booleans(),
        "prepay": st.just(True),
        "predict": predictors,
    },
    "drr": {"quantum": st.sampled_from([1, 10, 100]), "predict": predictors},
    "fair": {"max_wait": caps},
    "max_wait": {"max_wait": caps},
    "tenant_slots": {"slots": st.sampled_from([1, 2]), "tenants": st.sampled_from([{}, {"a": 3}])},
    "tenant_rate": {"rate": st.sampled_from([10**7, 10**8]), "burst": st.sampled_from([1, 30, 200])},
    "reserved": {"of": st.just(4), "tenants": st.sampled_from([{}, {"a": 1}, {"a": 2, "b": 1}])},
    "tenant_quota": {"requests": st.sampled_from([2, 5]), "window": st.sampled_from([100, 2000])},
    "longest_prefix": {"unit": st.sampled_from([0, 5, 10**6]), "most": st.sampled_from([1, 4, 128])},
    "aging": {"unit": st.sampled_from([0, 10, 1000])},
}
ranked = ("sjf", "srpt", "longest", "shortest_prompt", "priority", "mlfq", "random", "edf", "least_slack")


@st.composite
def policies(draw, among=tuple(own), depth=0, may_preempt=True):
    """Any policy, with its options, over any other that it may wrap; a preemptive one under max_wait alone."""
    name = draw(st.sampled_from(among))
    options = {key: draw(values) for key, values in own[name].items() if draw(st.booleans())}
    if not may_preempt:
        options.pop("preemptive", None)
    if options.get("predict", "exact") != "exact" and name == "vtc":
        options["prepay"] = True
    inner = [other for other in own if depth < 2 or "order" not in POLICIES[other].options]
    if name == "aging":
        inner = ranked
    if "order" in POLICIES[name].options:
        options["order"] = dict(
            [draw(policies(tuple(inner), depth + 1, may_preempt and name in ("max_wait", "tenant_quota")))]
        )
    return name, options


@dataclass(frozen=True)
class Scenario:
    requests: list[Request]
    policy: str
    options: dict
    victim: object
    modes: dict
    cost: object

    def run(self, macro=True):
        order = build(self.policy, self.options, seed=3, slots=8)
        return run(self.requests, engine(order=order, victim=self.victim, **self.modes), self.cost, macro)


@st.composite
def scenarios(draw):
    """Three tenants, bursts and gaps, small pages: from barely enough for the longest request to plenty."""
    requests, now = [], 0
    for place in range(draw(st.integers(1, 20))):
        now += draw(st.sampled_from([0, 0, 0, 3, 20, 150, 1000]))
        prompt, output = draw(st.integers(1, 40)), draw(st.one_of(st.integers(1, 4), st.integers(1, 60)))
        tenant, urgency = draw(st.sampled_from("abc")), draw(st.sampled_from([0, 0, 1]))
        limits = draw(st.sampled_from([{}, {}, {"cancel_after": 90}, {"queue_timeout": 40}, {"cancel_tokens": 3}]))
        requests.append(
            Request(str(place), now, prompt, output, tenant, priority=urgency, patience=Patience(**limits))
        )
    size = draw(st.sampled_from([1, 4]))
    longest = max(-(-(request.prompt + request.output) // size) for request in requests)
    name, options = draw(policies())
    modes = {
        "slots": draw(st.sampled_from([1, 2, 3, 8])),
        "budget": draw(st.sampled_from([2, 8, 64, 1000])),
        "page_size": size,
        "pages": longest + draw(st.sampled_from([0, 0, 1, longest // 2, 3 * longest, 10**6])),
        **draw(st.sampled_from([{"depth": 1}, {"depth": 2}, {"evict": "after"}, {"swap": True}])),
    }
    cost = draw(st.sampled_from([Unit(7), Affine(base=5, per_sequence=0.7, per_prefill_token=1.1)]))
    return Scenario(
        requests, name, options, victims.build(draw(st.sampled_from(list(victims.VICTIMS))), {}, 0), modes, cost
    )


def test_every_policy_is_among_those_drawn():
    assert set(own) == set(names())
    for name, options in own.items():
        assert set(options) <= set(POLICIES[name].options)


@given(scenarios())
def test_under_every_policy_macro_steps_change_nothing_and_all_are_served(scenario):
    fast, slow = scenario.run(), scenario.run(macro=False)
    event(scenario.policy)
    event(f"preempts: {summary(fast)['preemptions'] > 0}")
    event(f"longer runs: {len(fast.run_table()['steps']) < fast.steps}")
    assert fast.sha256() == slow.sha256()
    found = summary(fast)
    rows = dict(found["slot_steps"])
    assert rows.pop("bought") == sum(rows.values()) == scenario.modes["slots"] * found["steps"]
    pages = scenario.modes["pages"] * scenario.modes["page_size"]
    assert sum(found["pages"]["positions"].values()) == pytest.approx(pages)
    ends = dict(found["requests"])
    assert ends.pop("injected") == len(scenario.requests) == sum(ends.values())
    assert ends["waiting"] == ends["running"] == 0
    assert not ends["rejected"] or "tenant_quota" in str({scenario.policy: scenario.options})
    waits = [request.patience for request in scenario.requests]
    patient = [each for each in waits if each.cancel_after is each.queue_timeout is each.timeout is None]
    assert ends["finished"] >= sum(each.cancel_tokens is None for each in patient) - ends["rejected"]
    if not any(
        limit in str({scenario.policy: scenario.options}) for limit in ("tenant_slots", "tenant_rate", "reserved")
    ):
        assert not rows["limited"]


def one_at_a_time(seed, count=40):
    """Each comes while the one before it is served, so that nobody else waits; tenants and lengths vary."""
    rng = np.random.default_rng(seed)
    requests, start, free = [], -1, 0
    for place in range(count):
        arrival = int(rng.integers(start + 1, free + 4))
        output, prompt = int(rng.integers(3, 12)), int(rng.integers(1, 30))
        requests.append(Request(str(place), arrival, prompt, output, "abc"[place % 3], priority=place % 2))
        start = max(arrival, free)
        free = start + output
    return requests


@pytest.mark.parametrize("name", names())
def test_with_at_most_one_waiting_the_order_does_not_matter(name):
    for seed in range(3):
        requests = one_at_a_time(seed)
        expected = run(requests, engine(slots=1))
        waiting = most = 0
        for _, kind, _, _ in expected.event_table().tolist():
            waiting += {Kind.QUEUED: 1, Kind.ADMITTED: -1}.get(kind, 0)
            most = max(most, waiting)
        assert most == 1
        assert run(requests, engine(slots=1, order=build(name, {}, seed=3))).sha256() == expected.sha256()


def beside_a_flood(name, options):
    """Who ends, in order: one slot, a hundred equal requests of tenant A and ten of B, all at 0."""
    requests = [
        job(f"{tenant}{place}", 1, tenant=tenant) for tenant, n in (("A", 100), ("B", 10)) for place in range(n)
    ]
    log = run(requests, engine(slots=1, order=build(name, options, seed=3)))
    return "".join(event.who[0] for event in happenings(log, "finished"))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vtc", {}),
        ("vtc", {"prepay": True, "order": "sjf"}),
        ("fair", {}),
        ("drr", {"quantum": 2}),
        ("max_wait", {"order": "vtc"}),
        ("tenant_slots", {"order": "vtc"}),
    ],
)
def test_a_fair_order_ends_ten_within_the_first_twenty_one(name, options):
    assert beside_a_flood(name, options)[:21].count("B") == 10


@pytest.mark.parametrize("name", ["fcfs", "sjf", "srpt", "edf", "hrrn", "mlfq", "priority"])
def test_an_order_that_knows_no_tenants_ends_the_ten_last(name):
    assert beside_a_flood(name, {}) == "A" * 100 + "B" * 10


@pytest.mark.parametrize("name", names())
def test_what_is_made_explicit_builds_the_same(name):
    full = resolve(name, {})
    assert resolve(name, full) == full
    assert len(build(name, full, seed=0)) == 0


def test_every_policy_is_in_the_table_of_the_catalogue():
    page = (ROOT / "docs" / "catalogue.md").read_text()
    table = page.partition("<!-- $ python examples/catalogue.py -->")[2].partition("<!-- end -->")[0]
    assert [name for name in names() if f"| `{name}`" not in table] == []
