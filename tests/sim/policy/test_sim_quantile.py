"""Admission by quantile: while the running ones hardly ever outgrow the memory, by the lengths of outputs seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from sim_stories import PLENTY, engine, job, run, times

from sim.accounting.metrics import summary
from sim.cost.forms import Affine, Unit
from sim.memory.pool import PagePool
from sim.policy.output_lengths import OutputLengths
from sim.policy.quantile import AHEAD, Quantile
from sim.request import Patience, Request
from sim.sequence import Sequence

TENS = [10] * 10**6
"""Outputs so many that the one that stands for a request's own maximum weighs nothing."""


def waiting(index, prompt, generated=0, maximum=1000):
    """A sequence that has generated so many tokens."""
    seq = Sequence(Request(str(index), 0, prompt, 1, declared=maximum), index)
    seq.known += generated
    return seq


def test_how_many_outputs_were_longer():
    seen = OutputLengths(3, [5])
    assert seen.longer.tolist() == [1, 1, 1, 1, 1, 0]
    seen.add(2)
    seen.add(2)
    assert seen.longer.tolist() == [3, 3, 1, 1, 1, 0]
    seen.add(1)  # the first is forgotten
    assert seen.longer.tolist() == [3, 2, 0]
    assert OutputLengths(3).longer.tolist() == [0]


def test_known_lengths_admit_as_soon_as_the_peak_fits():
    # Pages of 1. Outputs are 10 (declared: 1000), so each holds at most 10. In the last step of a, b, which comes in
    # j steps later, holds 10 - j: with 15 pages it enters at step 5, with 20 at once, with 11 at step 9.
    both = [job("a", 10, max_output=1000), job("b", 10, max_output=1000)]
    for pages, entered in ((20, 0), (19, 10), (15, 50), (11, 90), (10, 100)):
        rule = Quantile(0.05, given=TENS, every=1)
        log = run(both, engine(2, pages=1000, page_size=1, admission=Bounded(rule, pages)), Unit(10))
        assert times(log, "admitted") == {"a": 0, "b": entered}, pages


class Bounded(Quantile):
    """The same rule in a smaller memory, so that requests may declare more than there is."""

    def __init__(self, rule, pages):
        self.__dict__.update(rule.__dict__)
        self.small = PagePool(pages, 1)

    def allows(self, seq, running, pool, step):
        return super().allows(seq, running, self.small, step)


def test_before_anybody_has_ended_everyone_is_taken_to_reach_the_maximum():
    # Pages of 1, 22 of them; both may come to hold 20. Nobody seen: a in its last step holds 20 and b, j steps
    # behind, 20 - j: b enters at step 18, but a ends with 6 tokens, so at step 6.
    # By then one output of 6 has been seen: c and d go beyond 6 with 1 chance in 2, both in one step 20. Mean 20,
    # deviation sqrt(2 x 400 / 4) = 14.1: more than 22 at epsilon 0.05, less at 0.5.
    pair = [job("a", 6, max_output=20), job("b", 1, max_output=20)]
    later = [job("c", 2, max_output=20, arrival=100), job("d", 2, max_output=20, arrival=100)]
    for epsilon, together in ((0.05, False), (0.5, True)):
        log = run(pair + later, engine(2, pages=22, page_size=1, admission=Quantile(epsilon, every=1)), Unit(10))
        admitted = times(log, "admitted")
        assert (admitted["a"], admitted["b"]) == (0, 60)
        assert (admitted["c"] == admitted["d"]) == together


def test_the_one_that_stands_for_the_own_maximum():
    # Nobody seen, page size 1, c of prompt 5 that may generate 6: positions 5 + 6 - 1 = 10 at most, beside the same:
    # 20 at the peak.
    for pages, fits in ((20, True), (19, False)):
        assert Quantile().allows(waiting(1, 5, maximum=6), [waiting(0, 5, maximum=6)], PagePool(pages, 1), 0) == fits


def test_a_sequence_that_has_come_far_is_expected_to_go_farther():
    # Outputs 10 or 100, half each. Of one that has 20 it is known to be 100 (but for the one in a million and one).
    law = [10, 100] * 10**6
    pool = PagePool(150, 1)
    rule = Quantile(0.3, given=law, every=1)
    # Both new: at k = 10 20 for certain, at k = 100 mean 100, deviation sqrt(2 x 100^2 / 4) = 70.7, x 0.524: 137.
    assert rule.allows(waiting(1, 1), [waiting(0, 1)], pool, 0)
    # One has 20, so it holds 100 in 80 steps for certain; the other 80 then, with probability 1/2: mean 140,
    # deviation 40, x 0.524: 161.
    assert not rule.allows(waiting(1, 1), [waiting(0, 1, 20)], pool, 0)


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.3])
def test_the_chance_of_too_little_memory_is_about_epsilon(epsilon):
    """Lengths drawn from the law, given what has been generated: at the worst step they overflow as often as said."""
    rng = np.random.default_rng(0)
    law = np.clip(rng.lognormal(5, 1, 2000), 1, 3000).astype(int)
    for size in (30, 100):
        prompts, done = rng.integers(10, 400, size), rng.integers(0, 200, size)
        present = [
            waiting(place, int(prompt), int(tokens), 3000)
            for place, (prompt, tokens) in enumerate(zip(prompts, done, strict=True))
        ]
        outputs = np.stack([rng.choice(law[law > tokens], 8_000) for tokens in done])
        ahead = AHEAD[AHEAD < 3000]
        needed = [
            np.sort((np.where(outputs >= done[:, None] + k, -(-(prompts + done + k - 1) // 16)[:, None], 0)).sum(0))
            for k in ahead.tolist()
        ]
        enough = max(pages[int((1 - epsilon) * len(pages))] for pages in needed)

        def allowed(pages, present=present):
            rule = Quantile(epsilon, given=law.tolist())
            return rule.allows(present[0], present[1:], PagePool(pages, 16), 0)

        assert allowed(int(1.04 * enough)), size
        assert not allowed(int(0.96 * enough)), size


def test_after_a_no_it_is_asked_again_when_somebody_leaves_or_after_so_many_steps():
    rule = Quantile(every=8)
    pool, head, beside = PagePool(19, 1), waiting(1, 5, maximum=6), [waiting(0, 5, maximum=6)]
    assert not rule.allows(head, beside, pool, 100)
    assert rule.next_change(101) == 7
    assert not rule.allows(head, beside, PagePool(PLENTY, 1), 107)
    assert rule.allows(head, beside, PagePool(PLENTY, 1), 108)
    assert rule.next_change(108) is None
    assert not rule.allows(head, beside, pool, 110)
    rule.left(waiting(2, 1))
    assert rule.allows(head, beside, PagePool(PLENTY, 1), 111)


@pytest.mark.parametrize("known", [False, True])
def test_a_smaller_epsilon_preempts_less(known):
    rng = np.random.default_rng(1)
    law = np.clip(rng.lognormal(4, 1, 3000), 1, 2000).astype(int).tolist()
    requests = [
        Request(str(place), place * 400, 50, output, declared=2000) for place, output in enumerate(law[:2000])
    ]
    given = law[2000:] if known else None
    found = []
    for epsilon in (0.5, 0.05, 0.001):
        result = summary(run(requests, engine(64, pages=320, admission=Quantile(epsilon, given=given)), Unit(100)))
        assert result["requests"]["finished"] == 2000
        found.append((result["preemptions"], result["pages"]["mean_used"]))
    (most, much), (fewer, _), (fewest, little) = found
    assert most > 3 * fewer > 0
    assert fewest < fewer / 3
    assert little <= much


@pytest.mark.parametrize("options", [{"epsilon": 0.0}, {"epsilon": 1.0}, {"window": 0}, {"every": 0}])
def test_settings_that_make_no_sense_are_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} is 0|epsilon is"):
        Quantile(**options)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 60), st.integers(0, 90)), min_size=1, max_size=25),
    spare=st.integers(0, 60),
    page_size=st.sampled_from([1, 4, 16]),
    slots=st.sampled_from([2, 4, 16]),
    every=st.sampled_from([1, 3, 8]),
    epsilon=st.sampled_from([0.01, 0.2, 0.7]),
    patience=st.sampled_from([{}, {}, {"cancel_after": 90}, {"queue_timeout": 40}, {"cancel_tokens": 3}]),
    modes=st.sampled_from([{}, {"depth": 2}, {"evict": "after"}, {"swap": True}]),
)
def test_macro_steps_stay_exact(sizes, spare, page_size, slots, every, epsilon, patience, modes):
    arrival, requests = 0, []
    for number, (prompt, output, gap) in enumerate(sizes):
        arrival += gap
        limits = patience if number % 3 == 0 else {}
        requests.append(Request(str(number), arrival, prompt, output, declared=60, patience=Patience(**limits)))
    pages = max(-(-(r.prompt + r.max_output) // page_size) for r in requests) + spare
    cost = Affine(base=5, per_sequence=0.7, per_context_token=0.13, per_prefill_token=1.1)

    def log(macro):
        admission = Quantile(epsilon, window=10, every=every)
        return run(requests, engine(slots, 64, pages, page_size, admission=admission, **modes), cost, macro=macro)

    found = log(True)
    assert found.sha256() == log(False).sha256()
    counts = summary(found)["requests"]
    assert counts["injected"] == len(requests) == sum(counts.values()) - counts["injected"]
    event(f"longer runs: {len(found.run_table()['steps']) < found.steps}")
    event(f"preempts: {summary(found)['preemptions'] > 0}")
