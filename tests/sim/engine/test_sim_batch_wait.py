"""Prompts that wait for more of them (TensorRT-LLM's batch waiting): steps of 10 ns, answers by hand."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from sim_stories import run, times

from policies.registry import build
from sim.accounting.metrics import summary
from sim.cost.forms import Affine, Unit
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.pool import PagePool
from sim.policy.base import BatchWait, Policy, Reserve
from sim.request import Request

STEP = Unit(10)


def engine(wait=None, order="fcfs", pages=10_000, slots=16, depth=1):
    config = EngineConfig(slots=slots, token_budget=100, chunked=False, depth=depth)
    return Scheduler(Policy(build(order, {}, seed=0), Reserve(), batch_wait=wait), PagePool(pages, 1), config)


def firsts(requests, *engine_of):
    """When first tokens come, by id."""
    return times(run(requests, engine(*engine_of), STEP), "first_token")


FIVE_STEPS = BatchWait(steps=5, tokens=50)
LONG = Request("a", 0, 10, 30)


def test_a_prompt_waits_for_so_many_steps_while_another_decodes():
    """b comes at 25. The plans at 30, 40, 50, 60 and 70 hold it back, that of 80 does not."""
    assert firsts([LONG, Request("b", 25, 10, 1)], FIVE_STEPS) == {"a": 10, "b": 90}


def test_it_waits_no_longer_once_there_are_enough_tokens():
    """With c, which comes at 45, a step has 10 + 39 + 1 = 50 tokens."""
    requests = [LONG, Request("b", 25, 10, 1), Request("c", 45, 39, 1)]
    assert firsts(requests, FIVE_STEPS) == {"a": 10, "b": 60, "c": 60}


def test_the_wait_counts_anew_after_an_admission():
    """b has its token at 90 and c comes at 95: held back in the five plans from 100 on."""
    requests = [LONG, Request("b", 25, 10, 1), Request("c", 95, 10, 1)]
    assert firsts(requests, FIVE_STEPS)["c"] == 160


def test_no_prompt_waits_where_nothing_decodes():
    assert firsts([Request("a", 0, 10, 1), Request("b", 5, 10, 1)], FIVE_STEPS) == {"a": 10, "b": 20}


def test_what_does_not_fit_does_not_count():
    """60 positions: a takes 39 to its end at 300, and b needs 31. Only then is there anything that could wait."""
    requests = [LONG, Request("b", 25, 30, 2)]
    assert firsts(requests, FIVE_STEPS, "fcfs", 60) == {"a": 10, "b": 310}


def test_prompts_without_a_slot_do_not_count():
    """Two slots, one of them of a: b alone is 20 + 1 tokens, with c it were 51."""
    requests = [LONG, Request("b", 25, 20, 1), Request("c", 25, 30, 1)]
    assert firsts(requests, FIVE_STEPS, "fcfs", 10_000, 2)["b"] == 90


def test_what_fits_exactly_counts():
    """Of 60 positions a has 39 and b needs 21; of a budget of 100 tokens a takes one and c, alone with it, 99."""
    assert firsts([LONG, Request("b", 25, 20, 2)], FIVE_STEPS, "fcfs", 60)["b"] == 90
    assert firsts([LONG, Request("c", 25, 99, 1)], BatchWait(steps=5, tokens=101))["c"] == 90


@pytest.mark.parametrize(("steps", "tokens"), [(0, 50), (5, 0)])
def test_each_limit_has_to_be_there(steps, tokens):
    with pytest.raises(ValueError, match="expected"):
        BatchWait(steps, tokens)


def test_it_needs_reserved_pages_and_whole_prompts():
    order, pool = build("fcfs", {}, seed=0), PagePool(10, 1)
    with pytest.raises(ValueError, match="not chunked"):
        Scheduler(Policy(order, Reserve(), batch_wait=FIVE_STEPS), pool, EngineConfig(4, 100))
    with pytest.raises(ValueError, match="reserves"):
        Scheduler(Policy(order, batch_wait=FIVE_STEPS), pool, EngineConfig(4, 100, chunked=False))


@st.composite
def loads(draw):
    now, requests = 0, []
    for place in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from([0, 1, 10, 35, 120, 700]))
        requests.append(Request(str(place), now, draw(st.integers(1, 40)), draw(st.integers(1, 60))))
    return requests


@given(
    loads(),
    st.builds(BatchWait, steps=st.sampled_from([1, 3, 20]), tokens=st.sampled_from([10, 50, 90])),
    st.sampled_from(["fcfs", "sjf", "requeue"]),
    st.sampled_from([99, 150, 10_000]),
    st.sampled_from([1, 3, 16]),
    st.sampled_from([1, 2]),
    st.sampled_from([STEP, Affine(base=5, per_sequence=0.7, per_context_token=0.13, per_prefill_token=1.1)]),
)
def test_macro_steps_change_nothing_and_all_end(load, wait, order, pages, slots, depth, cost):
    fast, slow = (run(load, engine(wait, order, pages, slots, depth), cost, macro) for macro in (True, False))
    assert fast.sha256() == slow.sha256()
    event(f"longer runs: {len(fast.run_table()['steps']) < fast.steps}")
    event(f"held: {summary(fast)['slot_steps']['limited'] > 0}")
    assert len(times(fast, "finished")) == len(load)
