"""The scheduler against a naive simulator written from the description: the same decisions in every step."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from sim_reference import Engine, Prices, reference
from sim_stories import engine as build
from sim_stories import happenings, run, times

from sim.accounting.frames import requests_frame, steps_frame
from sim.accounting.metrics import summary
from sim.cost.forms import Affine
from sim.log.events import Kind
from sim.policy.base import Optimistic, Reserve
from sim.request import Request


def lengths(most):
    """Short, middling and long ones."""
    return st.one_of(st.integers(1, 4), st.integers(1, most // 3), st.integers(most // 2, most))


@st.composite
def workloads(draw):
    """Up to 25 requests: bursts, trickles and pauses."""
    gaps = st.one_of(st.just(0), st.just(0), st.integers(0, 60), st.integers(0, 3000))
    requests, now = [], 0
    for place in range(draw(st.integers(1, 25))):
        now += draw(gaps)
        output = draw(lengths(70))
        limit = output + draw(st.sampled_from([0, 0, 0, 1, 9]))
        requests.append(Request(str(place), now, draw(lengths(50)), output, declared=limit))
    return requests


@st.composite
def engines(draw, requests):
    """From barely enough pages for the longest request, now and then one too few, to plenty."""
    size = draw(st.sampled_from([1, 1, 2, 4, 16]))
    longest = max(-(-(request.prompt + request.max_output - 1) // size) for request in requests)
    spare = draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3, longest // 2, longest, 3 * longest, 10**6, -1]))
    chunked = draw(st.sampled_from([True, True, False]))
    budgets = [8, 16, 64, 10**6, max(request.prompt for request in requests)]
    return Engine(
        slots=draw(st.sampled_from([1, 2, 3, 4, 8, 25])),
        budget=draw(st.sampled_from([1, 2, 5, *budgets] if chunked else budgets)),
        pages=max(1, longest + spare),
        page_size=size,
        reserve=draw(st.sampled_from([False, False, False, True])),
        chunked=chunked,
    )


prices = st.builds(
    Prices,
    base=st.sampled_from([1, 7, 100]),
    per_sequence=st.sampled_from([0, 1, 3]),
    per_context_token=st.sampled_from([0, 1, 2]),
    per_prefill_token=st.sampled_from([0, 1, 5]),
    two_pairs=st.sampled_from([0, 0, 1]),
    per_page=st.sampled_from([0, 0, 3]),
)


@st.composite
def scenarios(draw):
    requests = draw(workloads())
    return requests, draw(engines(requests)), draw(prices)


def affine(chosen):
    """The same prices as a cost of the kernel: per_chunk_work counts pairs."""
    return Affine(
        base=chosen.base,
        per_sequence=chosen.per_sequence,
        per_context_token=chosen.per_context_token,
        per_prefill_token=chosen.per_prefill_token,
        per_chunk_work=2 * chosen.two_pairs,
        per_page=chosen.per_page,
    )


@pytest.mark.slow
@given(scenarios(), st.booleans())
def test_every_decision_is_that_of_the_naive_simulator(scenario, macro):
    requests, chosen, costs = scenario
    records, steps = reference(requests, chosen, costs)
    scheduler = build(
        chosen.slots,
        chosen.budget,
        chosen.pages,
        chosen.page_size,
        admission=Reserve() if chosen.reserve else Optimistic(),
        chunked=chosen.chunked,
    )
    log = run(requests, scheduler, affine(costs), macro)
    event(f"preempts: {any(life.preemptions for life in records)}")
    event(f"rejects: {any(life.rejected for life in records)}")

    frame = steps_frame(log)
    assert list(zip(frame.start_ns, frame.duration_ns, frame.tokens, strict=True)) == steps
    for kind, expected in (
        ("admitted", {(life.request.id, at) for life in records for at in life.admissions}),
        ("preempted", {(life.request.id, at) for life in records for at, _ in life.preemptions}),
        ("first_token", {(life.request.id, life.tokens[0]) for life in records if life.tokens}),
        ("finished", {(life.request.id, life.tokens[-1]) for life in records if life.tokens}),
        ("rejected", {(life.request.id, life.request.arrival) for life in records if life.rejected}),
    ):
        found = [(happening.who, happening.time) for happening in happenings(log, kind)]
        assert len(found) == len(set(found))
        assert set(found) == expected
    thrown_away = [value for _, kind, _, value in log.event_table().tolist() if kind == Kind.PREEMPTED]
    assert sorted(thrown_away) == sorted(positions for life in records for _, positions in life.preemptions)

    gaps = {
        life.request.id: max((b - a for a, b in zip(life.tokens, life.tokens[1:], strict=False)), default=None)
        for life in records
    }
    largest = requests_frame(log).set_index("id").max_itl_s.dropna()
    assert {who: round(gap * 1e9) for who, gap in largest.items()} == {
        who: gap for who, gap in gaps.items() if gap is not None
    }
    assert summary(log)["itl_s"]["n"] == sum(len(life.tokens) - 1 for life in records if life.tokens)


def test_the_naive_simulator_tells_the_story_of_a_preemption():
    # The story of test_sim_memory, so that the reference itself is held to a right answer.
    requests = [Request("a", 0, 2, 4), Request("b", 0, 2, 3)]
    chosen = Engine(slots=2, budget=100, pages=3, page_size=2, reserve=False, chunked=True)
    records, steps = reference(requests, chosen, Prices(1, 0, 0, 0, 0, 0))
    assert [life.tokens for life in records] == [[1, 2, 3, 4], [1, 5, 6]]
    assert records[1].preemptions == [(1, 2)]
    assert [tokens for _, _, tokens in steps] == [4, 1, 1, 1, 3, 1]
    log = run(requests, build(2, 100, 3, 2))
    assert times(log, "finished") == {"a": 4, "b": 6}
