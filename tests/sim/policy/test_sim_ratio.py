"""Admission by ratio: room for a newcomer's life beside a share of what the running ones may still need."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim_stories import engine, job, run, times, values

from sim.accounting.metrics import summary
from sim.cost.forms import Affine, Unit
from sim.memory.pool import PagePool
from sim.policy.ratio import FewestOutputs, Ratio
from sim.request import Request
from sim.sequence import Sequence


def rule(**options):
    """The rule and its victim."""
    return {"admission": Ratio(**options), "victim": FewestOutputs()}


def test_a_newcomer_needs_its_life_and_a_share_of_the_others():
    # Pages of 1, 20 of them. a may come to hold 1 + 10 - 1 = 10, b 1 + 9 - 1 = 9. With a at c computed positions,
    # 20 - c are free, 10 - c to come: at half of that b fits while 9 + (10 - c) // 2 <= 20 - c, at once: 9 + 5 <= 20.
    # At all of it b fits while 9 + 10 - c <= 20 - c, at once too; in 18 pages only when a has left.
    start = [job("a", 10), job("b", 9, arrival=15)]
    for share, pages, admitted in ((0.5, 20, 20), (1.0, 20, 20), (1.0, 18, 100), (0.5, 18, 20), (0.5, 13, 100)):
        log = run(start, engine(slots=2, pages=pages, page_size=1, **rule(initial=share, minimum=share)), Unit(10))
        assert times(log, "admitted") == {"a": 0, "b": admitted}, (share, pages)


def test_the_ratio_falls_with_every_step_until_somebody_fits():
    # 24 pages of 1. a may come to hold 21, b 8. From 1 the ratio falls by a tenth a step. When a has c positions and
    # the page of the next, 23 - c are free, and b enters if 8 + int((1 - c / 10) x (21 - c)) fits: at 2 computed that
    # is 8 + 15 > 21, at 3 it is 8 + 12 = 20.
    log = run(
        [job("a", 21), job("b", 8)],
        engine(slots=2, pages=24, page_size=1, **rule(initial=1.0, minimum=0.0, decay_steps=10)),
        Unit(10),
    )
    assert times(log, "admitted") == {"a": 0, "b": 30}


def test_a_retraction_raises_the_ratio_and_idling_sets_it_back():
    admission = Ratio(initial=0.5, minimum=0.1, decay_steps=100, ahead=20)
    assert admission.ratio(25) == pytest.approx(0.4)
    assert admission.ratio(1000) == 0.1
    admission.retracted([(10, 100), (30, 100)], step=1000)  # (10 + 20 + 30 + 20) / 200
    assert admission.ratio(1000) == pytest.approx(0.4)
    assert admission.ratio(1025) == pytest.approx(0.3)
    admission.retracted([(90, 100)], step=1100)
    assert admission.ratio(1100) == 1.0
    admission.idle(2000)
    assert admission.ratio(2000) == 0.5
    assert admission.spare(PagePool(100, 16), 100, 2000) == 4  # 50 positions in pages of 16


def test_who_has_generated_least_leaves_and_of_these_the_longest_prompt():
    def running(serial, prompt, known):
        seq = Sequence(Request(str(serial), 0, prompt, 50), serial)
        seq.serial, seq.known = serial, known
        return seq

    one, two, three = running(1, 5, 8), running(2, 3, 5), running(3, 9, 11)
    assert FewestOutputs().choose({1: one, 2: two, 3: three}, 0) is three
    assert FewestOutputs().choose({1: one, 2: two}, 0) is two


def test_at_ratio_zero_it_preempts_and_at_one_it_does_not():
    requests = [job(str(n), 12, prompt=4) for n in range(8)]
    for share, preempts in ((0.0, True), (1.0, False)):
        log = run(requests, engine(slots=8, pages=40, page_size=1, **rule(initial=share, minimum=share)))
        assert (summary(log)["preemptions"] > 0) == preempts
        assert bool(values(log, "preempted")) == preempts


@pytest.mark.parametrize(
    "options", [{"initial": 0.1, "minimum": 0.2}, {"initial": 1.5}, {"decay_steps": 0}, {"ahead": -1}]
)
def test_settings_that_make_no_sense_are_refused(options):
    with pytest.raises(ValueError, match=r"ratio is initially|decay_steps must be"):
        Ratio(**options)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 60), st.integers(0, 90)), min_size=1, max_size=25),
    spare=st.integers(0, 60),
    page_size=st.sampled_from([1, 4, 16]),
    slots=st.sampled_from([2, 4, 16]),
    decay_steps=st.sampled_from([1, 7, 100]),
    depth=st.integers(1, 2),
)
def test_macro_steps_stay_exact_although_the_rule_drifts(sizes, spare, page_size, slots, decay_steps, depth):
    arrival, requests = 0, []
    for number, (prompt, output, gap) in enumerate(sizes):
        arrival += gap
        requests.append(Request(str(number), arrival, prompt, output))
    pages = max(-(-(r.prompt + r.output) // page_size) for r in requests) + spare
    cost = Affine(base=5, per_sequence=0.7, per_context_token=0.13, per_prefill_token=1.1)

    def log(macro):
        return run(
            requests,
            engine(slots, 64, pages, page_size, depth=depth, **rule(decay_steps=decay_steps)),
            cost,
            macro=macro,
        )

    found = log(True)
    assert found.sha256() == log(False).sha256()
    assert summary(found)["requests"]["finished"] == len(requests)
