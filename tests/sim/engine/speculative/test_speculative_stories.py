"""Speculative decoding in tiny stories: what each step computes, which tokens it brings, and which pages it takes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sim_stories import engine, happenings, job, run
from speculative_stories import always, speculating

from sim.accounting.metrics import summary
from sim.accounting.requests import RequestRecords
from sim.cost.forms import Affine, Unit
from sim.memory.prefix import PrefixPool
from sim.policy.base import Reserve
from sim.request import Patience


def verified(log):
    """(step, request, start, tokens, given) of all verifications."""
    return [(step, log.requests[who].id, *rest) for step, who, *rest in log.ran.verification_table().tolist()]


def test_a_step_brings_the_accepted_drafts_and_one_token_more():
    # Prompt 5: step 0 computes it and brings token 1. Each step behind it computes the last token and 3 drafts, of
    # which 2 are right: 3 tokens. Tokens 1, 4, 7; of the last step only the eighth is wanted.
    log = run([job("a", 8, prompt=5)], speculating(engine(1, page_size=4), 3, always(2)))
    assert log.chunk_table().tolist() == [[0, 0, 0, 5]]
    assert verified(log) == [(1, "a", 5, 4, 3), (2, "a", 8, 4, 3), (3, "a", 11, 4, 1)]
    assert [(each.time, each.what) for each in happenings(log, "first_token", "finished")] == [
        (1, "first_token"),
        (4, "finished"),
    ]
    found = summary(log)
    assert found["tokens"] | {"prompt": 5, "output": 8, "computed": 17, "rejected": 5} == found["tokens"]
    assert found["speculation"] == {
        "verifications": 3,
        "drafts": 9,
        "accepted": 4,
        "rejected": 5,
        "acceptance": 4 / 9,
        "tokens_per_verification": 7 / 3,
    }
    assert found["slot_steps"] | {"prefill": 1, "decode": 3} == found["slot_steps"]


def test_tpot_counts_tokens_and_gaps_count_deliveries():
    log = run([job("a", 8, prompt=5)], speculating(engine(1), 3, always(2)), Unit(10**9))
    found = summary(log)
    assert found["tpot_s"]["mean"] == pytest.approx(3 / 7)
    assert (found["itl_s"]["n"], found["itl_s"]["max"]) == (3, 1.0)
    assert RequestRecords(log).delivered_by_step.tolist() == [1, 3, 3, 1]


def test_pages_of_rejected_drafts_are_kept_for_the_next_ones():
    # Pages of 4, prompt 3, 4 drafts, none right. Positions covered: 3, then 3 + 5 = 8, 9, 10: 1, 2, 3, 3 pages.
    log = run([job("a", 4, prompt=3)], speculating(engine(1, page_size=4), 4, always(0)))
    assert verified(log) == [(1, "a", 3, 5, 1), (2, "a", 4, 5, 1), (3, "a", 5, 5, 1)]
    assert log.held_by_step().tolist() == [1, 2, 3, 3]
    assert summary(log)["pages"]["peak_used"] == 3


def test_the_budget_cuts_drafts():
    # 6 positions a step: the first verifies its 3 drafts, the second has 2 positions left: one draft.
    log = run([job("a", 5), job("b", 5)], speculating(engine(2, budget=6), 3, always(3)))
    assert verified(log)[:2] == [(1, "a", 1, 4, 4), (1, "b", 1, 2, 2)]


def test_the_longest_sequence_bounds_drafts():
    # max_model_len 8, prompt 3: an output of at most 5; no position beyond 7 is computed.
    log = run([job("a", 20, prompt=3)], speculating(engine(1, max_model_len=8), 4, always(1)))
    assert verified(log) == [(1, "a", 3, 4, 2), (2, "a", 5, 2, 2)]
    assert summary(log)["tokens"]["output"] == 5


def test_a_preempted_sequence_drops_its_drafts_and_gets_the_same_text():
    # 4 pages of 4, two prompts of 4, 3 drafts with 1 right. Step 0 fills 2 pages, step 1 (positions 4..8) takes the
    # other two, step 2 (6..10) needs one page more for each: b, admitted last, gives up its two. Its 6 positions are
    # computed again once a is done, and then bring its fourth token.
    log = run(
        [job("a", 6, prompt=4), job("b", 6, prompt=4)], speculating(engine(2, pages=4, page_size=4), 3, always(1))
    )
    assert verified(log) == [
        (1, "a", 4, 4, 2), (1, "b", 4, 4, 2), (2, "a", 6, 4, 2), (3, "a", 8, 4, 1), (5, "b", 7, 4, 2),
    ]  # fmt: skip
    assert log.chunk_table().tolist() == [[0, 0, 0, 4], [0, 1, 0, 4], [4, 1, 0, 7]]
    found = summary(log)
    assert found["tokens"] | {"output": 12, "recomputed": 6} == found["tokens"]
    assert (found["preemptions"], found["requests"]["finished"]) == (1, 2)


def test_a_client_that_gives_up_during_a_verification_does_not_get_its_tokens():
    patience = Patience(cancel_after=25)
    log = run([replace(job("a", 9), patience=patience)], speculating(engine(1), 2, always(2)), Unit(10))
    assert verified(log) == [(1, "a", 1, 3, 3), (2, "a", 4, 3, 3)]
    assert summary(log)["tokens"]["output"] == 4
    assert summary(log)["slot_steps"] | {"wasted": 3} == summary(log)["slot_steps"]


def test_reserved_pages_have_room_for_the_last_drafts():
    # Prompt 3 and output 4 come to hold 6 positions, and those of 2 drafts: 2 pages of 4.
    log = run([job("a", 4, prompt=3)], speculating(engine(1, page_size=4, admission=Reserve()), 2, always(0)))
    assert log.held_by_step().tolist() == [2, 2, 2, 2]
    pool = speculating(engine(1, pages=1, page_size=4), 2, always(0))
    assert pool.misfit(job("a", 2, prompt=3)) == "needs more pages than exist"


def test_tokens_that_were_accepted_are_found_in_the_cache_and_rejected_ones_are_not():
    plain = engine(1, page_size=4)
    plain.pool = PrefixPool(100, 4, "all")
    first = replace(job("a", 6, prompt=4), tokens=(1,) * 4 + (2,) * 5, spoken=5)
    second = replace(job("b", 1, prompt=12, arrival=50), tokens=(1,) * 4 + (2,) * 5 + (3,) * 3)
    log = run([first, second], speculating(plain, 3, always(1)))
    assert summary(log)["cache"]["hit_tokens"] == 8


def test_a_draft_costs_what_a_prefill_token_costs():
    # base 100, 10 a sequence, 1 a token: the prompt of 5 takes 105, a verification of 3 drafts 100 + 10 + 3.
    cost = Affine(base=100, per_sequence=10, per_prefill_token=1)
    log = run([job("a", 8, prompt=5)], speculating(engine(1), 3, always(2)), cost)
    assert log.step_durations().tolist() == [105, 113, 113, 113]


@pytest.mark.parametrize(
    ("modes", "wrong"),
    [({"depth": 2}, "depth 1"), ({"evict": "after"}, "evict 'before'"), ({"contiguous": True}, "pages")],
)
def test_what_it_excludes(modes, wrong):
    with pytest.raises(ValueError, match=wrong):
        speculating(engine(1, **modes), 2, always(0))
