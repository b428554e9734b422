"""What holds in every run, whatever the mode, the policy and the cost; scenarios are random."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from sim_replay import replay
from sim_stories import engine, run, static_engine

from policies.registry import build
from sim.accounting.frames import requests_frame, slots_frame, steps_frame
from sim.accounting.metrics import summary
from sim.cost.forms import Affine, Roofline, StepCost, Unit
from sim.cost.table import Knots, Lines, Table
from sim.log.events import Kind
from sim.policy.base import Optimistic, Reserve
from sim.request import Request

TENANTS = "abc"


@dataclass(frozen=True)
class Scenario:
    requests: list[Request]
    slots: int
    budget: int
    page_size: int
    pages: int
    batching: str
    chunked: bool
    evict: str
    harvest: str
    policy: str
    options: dict
    cost: StepCost

    def scheduler(self):
        order = build(self.policy, self.options, seed=7)
        if self.batching == "static":
            return static_engine(self.slots, self.pages, self.page_size, order)
        return engine(
            self.slots,
            self.budget,
            self.pages,
            self.page_size,
            order,
            Optimistic() if self.batching == "optimistic" else Reserve(),
            chunked=self.chunked,
            evict=self.evict,
            harvest=self.harvest,
            contiguous=self.batching == "contiguous",
        )

    def run(self, macro=True):
        return run(self.requests, self.scheduler(), self.cost, macro)

    @property
    def late(self):
        """Whether a finished sequence rides along for a step."""
        return self.evict == "after"

    @property
    def loses(self):
        """Whether a finished sequence loses its last token."""
        return self.harvest == "next"


costs = st.sampled_from(
    [
        Unit(7),
        Affine(base=5, per_sequence=0.7, per_context_token=0.13, per_prefill_token=1.1, per_chunk_work=0.01),
        Affine(base=20, per_sequence=1.5, per_page=0.3, per_copied_token=0.2, host=3),
        Roofline(weight_pass=10, per_token=0.9, per_context_token=0.05, per_sequence=0.3, host=2),
        Roofline(weight_pass=30, per_token=2.9, per_context_token=0.5, per_chunk_work=0.02, per_page=0.2),
        Roofline(weight_pass=9, per_context_token=0.4, raggedness=0.5, overlapped_host=12, graph_sizes=(1, 2, 4)),
        Table(
            dense=Knots((1, 4, 16), (20.0, 21.0, 70.0)),
            decode=Lines(Knots((1, 4), (3.0, 5.0)), Knots((1, 4), (0.2, 0.7))),
            beside=Lines(Knots((1, 4), (4.0, 9.0)), Knots((1, 4), (0.5, 1.9))),
            chunk=Lines(Knots((1, 8), (2.0, 9.0)), Knots((1, 8), (0.1, 0.6))),
            raggedness=0.3,
        ),
    ]
)
policies = st.one_of(
    st.just(("fcfs", {})),
    st.sampled_from([("sjf", {}), ("sjf", {"error": 0.5}), ("sjf", {"predict": "prompt"})]),
    st.builds(
        lambda order, max_wait: ("fair", {"order": order, "max_wait": max_wait}),
        st.sampled_from(["fcfs", "sjf"]),
        st.sampled_from([0, 30, 300, 3000, 10**9]),
    ),
)


def lengths(most):
    """Short, middling and long ones."""
    return st.one_of(st.integers(1, 4), st.integers(1, most // 3), st.integers(most // 2, most))


@st.composite
def scenarios(draw, batchings=("optimistic", "optimistic", "optimistic", "reserve", "static", "contiguous")):
    """Any mode; from barely enough pages for the longest request, now and then one too few, to plenty."""
    longest_output = draw(st.sampled_from([20, 80, 80, 400]))
    gaps = st.sampled_from([0, 0, 1, 7, 20, 49, 350, 3000])
    requests, now = [], 0
    for place in range(draw(st.integers(1, 25))):
        now += draw(gaps)
        output = draw(lengths(longest_output))
        limit = output + draw(st.sampled_from([0, 0, 5]))
        requests.append(Request(str(place), now, draw(lengths(50)), output, draw(st.sampled_from(TENANTS)), limit))
    batching = draw(st.sampled_from(batchings))
    evict, harvest = draw(
        st.sampled_from([("before", "step"), ("before", "step"), ("after", "step"), ("after", "next")])
    )
    if batching == "static":
        evict, harvest = "before", "step"
    size = 1 if batching == "contiguous" else draw(st.sampled_from([1, 2, 4, 16]))
    longest = max(-(-(r.prompt + r.max_output - 1 + (evict == "after")) // size) for r in requests)
    spare = draw(st.sampled_from([0, 0, 0, 1, 1, 2, longest // 2, longest, 5 * longest, 10**6, -1]))
    policy, options = draw(policies)
    chunked = draw(st.sampled_from([True, True, False]))
    budgets = [8, 32, 64, 10**6, max(request.prompt for request in requests)]
    return Scenario(
        requests=requests,
        slots=draw(st.sampled_from([1, 2, 3, 8, 16])),
        budget=draw(st.sampled_from([1, 2, *budgets] if chunked else budgets)),
        page_size=size,
        pages=max(1, longest + spare),
        batching=batching,
        chunked=chunked,
        evict=evict,
        harvest=harvest,
        policy=policy,
        options=options,
        cost=draw(costs),
    )


def told_again(log, scenario):
    frame = steps_frame(log)
    return frame, replay(
        log,
        frame.start_ns.tolist(),
        frame.duration_ns.tolist(),
        overrun=int(scenario.late),
        closed=scenario.batching == "static",
    )


def same(left, right):
    """Equal, numbers to the last digits: sums may be taken in another order."""
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return left == (pytest.approx(right, rel=1e-12) if isinstance(right, float) else right)


@given(scenarios())
def test_macro_steps_change_nothing(scenario):
    fast, slow = scenario.run(macro=True), scenario.run(macro=False)
    event(f"{scenario.batching}, {scenario.policy}")
    event(f"longer runs: {len(fast.run_table()['steps']) < fast.steps}")
    assert fast.events == slow.events
    assert fast.chunks == slow.chunks
    assert fast.ran.durations == slow.ran.durations
    assert fast.sha256() == slow.sha256()
    assert same(summary(fast, {"ttft": 500}), summary(slow, {"ttft": 500}))
    assert steps_frame(fast).equals(steps_frame(slow))


@given(scenarios())
def test_every_account_adds_up(scenario):
    log = scenario.run()
    found = summary(log)
    for account in ("slot_steps", "slot_seconds"):
        rows = dict(found[account])
        assert all(count >= 0 for count in rows.values())
        assert rows.pop("bought") == pytest.approx(sum(rows.values()), rel=1e-12)
    assert found["slot_steps"]["bought"] == scenario.slots * found["steps"]
    assert found["slot_seconds"]["bought"] == pytest.approx(scenario.slots * found["makespan_s"], rel=1e-12)
    assert sum(found["pages"]["positions"].values()) == pytest.approx(scenario.pages * scenario.page_size)
    assert all(positions >= -1e-6 for positions in found["pages"]["positions"].values())
    assert found["pages"]["peak_used"] <= scenario.pages

    counts = dict(found["requests"])
    assert counts.pop("injected") == len(scenario.requests) == sum(counts.values())
    assert counts["finished"] + counts["rejected"] == len(scenario.requests)
    assert sum(found["rejections"].values()) == counts["rejected"]
    assert sum(tenant["requests"]["finished"] for tenant in found["tenants"].values()) == counts["finished"]

    frame = requests_frame(log)
    finished = frame[frame.status == "finished"]
    tokens = found["tokens"]
    assert tokens["output"] == int((finished.output - scenario.loses).sum()) == int(frame.tokens.sum())
    assert tokens["lost"] == (len(finished) if scenario.loses else 0)
    needed = int((finished.prompt + finished.output - 1).sum()) + tokens["recomputed"]
    # One position more for each under late eviction, unless a preemption takes the ride away.
    rides = found["slot_steps"]["held"] if scenario.late else 0
    assert rides <= len(finished)
    assert tokens["computed"] == needed + rides
    if scenario.late and scenario.batching != "optimistic":
        assert rides == len(finished)
    assert found["itl_s"]["n"] == int((finished.tokens - 1).clip(lower=0).sum())
    if not scenario.requests or scenario.batching != "optimistic":
        assert found["preemptions"] == tokens["recomputed"] == 0


@given(scenarios())
def test_the_log_told_again_gives_the_same_steps(scenario):
    log = scenario.run()
    frame, told = told_again(log, scenario)
    for row in ("decode", "prefill", "recomputed", "held", "no_budget"):
        assert frame[row].tolist() == [rows[row] for rows in told.rows]
    assert frame.waiting.tolist() == told.waiting
    assert frame.live.tolist() == told.live
    assert frame.tokens.tolist() == told.tokens
    assert frame.pages_used.tolist() == told.pages
    assert log.filled_by_step().tolist() == told.filled if log.steps else not told.filled
    found = summary(log)
    assert found["tokens"]["recomputed"] == told.redone
    assert found["preemptions"] == told.preemptions
    # The integral of the pages held is the sum of what each sequence held, for as long as it held it.
    assert int((frame.pages_used * frame.duration_ns).sum()) == sum(told.page_time.values())
    span = found["makespan_s"] * 1e9
    assert found["pages"]["mean_used"] * span == pytest.approx(sum(told.page_time.values()))
    positions = found["pages"]["positions"]
    lasts = frame.duration_ns.tolist()
    for name, expected in (
        ("live", told.live),
        ("tail", [f * log.page_size - live for f, live in zip(told.filled, told.live, strict=True)]),
        ("reserved", [(p - f) * log.page_size for p, f in zip(told.pages, told.filled, strict=True)]),
    ):
        integral = sum(value * last for value, last in zip(expected, lasts, strict=True))
        assert positions[name] * span == pytest.approx(integral, abs=1e-6)


@given(scenarios())
def test_the_tokens_told_again_give_the_same_latencies(scenario):
    log = scenario.run()
    _, told = told_again(log, scenario)
    pooled = []
    for index, request in enumerate(requests_frame(log).itertuples()):
        given = told.token_times.get(index, [])
        given = given[:-1] if scenario.loses else given
        assert request.tokens == len(given)
        gaps = np.diff(given)
        pooled.extend(gaps.tolist())
        if given:
            assert request.first_token_ns == given[0]
            assert request.ttft_s == pytest.approx((given[0] - request.queued_ns) / 1e9)
        else:
            assert np.isnan(request.ttft_s)
        if len(given) > 1:
            assert request.max_itl_s == pytest.approx(gaps.max() / 1e9)
            if not scenario.loses:
                assert request.ended_ns == given[-1]
                assert request.tpot_s == pytest.approx((given[-1] - given[0]) / (len(given) - 1) / 1e9)
        else:
            assert np.isnan(request.max_itl_s)
            assert np.isnan(request.tpot_s)
    found = summary(log)["itl_s"]
    assert found["n"] == len(pooled)
    if pooled:
        expected = [np.mean(pooled), *np.percentile(pooled, [50, 90, 95, 99]), max(pooled)]
        assert [1e9 * found[name] for name in ("mean", "p50", "p90", "p95", "p99", "max")] == pytest.approx(expected)


@given(scenarios())
def test_little(scenario):
    """The integral of the number in the system is the sum of the times in it.

    During a step those who wait and those in a slot are there, from the arrivals on those who come meanwhile.
    Who is held has left at its last token, except that with a late harvest it leaves with its slot.
    """
    log = scenario.run()
    frame = steps_frame(log)
    present = frame.waiting + frame.decode + frame.prefill + frame.recomputed + frame.no_budget
    if scenario.loses:
        present = present + frame.held
    integral = int((present * frame.duration_ns).sum())
    ends = (frame.start_ns + frame.duration_ns).tolist()
    served = requests_frame(log)
    served = served[served.status == "finished"]
    for arrival in served.queued_ns.tolist():
        step = np.searchsorted(ends, arrival, side="right")
        if frame.start_ns[step] < arrival:
            integral += ends[step] - arrival
    assert integral == int((served.ended_ns - served.queued_ns).sum())


@given(scenarios(batchings=["optimistic"]))
def test_progress(scenario):
    """A step that preempts admits nobody and computes a token of a sequence that it did not preempt."""
    log = scenario.run()
    frame = steps_frame(log)
    events = log.event_table().tolist()
    preempted, admitted = {}, set()
    for time, kind, index, _ in events:
        if kind == Kind.PREEMPTED:
            preempted.setdefault(time, []).append(index)
        elif kind == Kind.ADMITTED:
            admitted.add(time)
    event(f"preempts: {bool(preempted)}")
    by_start = frame.set_index("start_ns")
    for time, victims in preempted.items():
        assert time not in admitted
        assert by_start.tokens[time] >= 1
        assert len(victims) == len(set(victims))
        step = int(np.searchsorted(frame.start_ns, time))
        there = {index for at, index, _, tokens in log.chunk_table().tolist() if at == step and tokens}
        assert not there & set(victims)
        assert len(victims) + 1 <= scenario.slots
    assert sum(map(len, preempted.values())) <= scenario.slots * log.steps
    assert (frame.tokens >= 1).all()
    assert (frame.tokens <= scenario.budget).all()


@pytest.mark.slow
@given(scenarios())
def test_slots_hold_one_sequence_at_a_time(scenario):
    log = scenario.run()
    stays = slots_frame(log).sort_values(["slot", "admitted_ns"], kind="stable")
    assert stays.slot.between(0, scenario.slots - 1).all()
    for _, inside in stays.groupby("slot"):
        assert (inside.released_ns.to_numpy()[:-1] <= inside.admitted_ns.to_numpy()[1:]).all()
    occupied = int((stays.released_ns - stays.admitted_ns).sum())
    rows = summary(log)["slot_seconds"]
    used = rows["decode"] + rows["prefill"] + rows["recomputed"]
    frame = steps_frame(log)
    inside = frame.decode + frame.prefill + frame.recomputed + frame.no_budget + frame.held
    if scenario.batching != "static":
        # A finished rider that a preemption drives out, and everyone else, leaves at a step's boundary.
        assert occupied == int((inside * frame.duration_ns).sum())
    assert occupied >= round(used * 1e9)
