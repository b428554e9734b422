"""Headroom: the bound of an engine by hand, what binds, and advice that knows what is set."""

from __future__ import annotations

from typing import Any

import pytest

import slotstep
from reports import ledger_rows
from reports.text.headroom import sentence

LINES = [{"id": str(n), "arrival": f"{n * 100}ms", "prompt": 1, "output": 50} for n in range(20)]


def summary(**changes: Any) -> dict[str, Any]:
    """The summary of twenty requests of 50 tokens, ten a second."""
    mapping = {
        "workload": {"requests": LINES},
        "engine": {"slots": 16},
        "cost": {"affine": {"base": "4ms", "per_sequence": "1ms", "host": "1ms"}},
    }
    return slotstep.run(slotstep.parse(mapping | changes)).summary


def test_the_bound_is_a_full_batch_of_the_slots() -> None:
    # 16 requests a step of 5 + 16 ms, 50 steps each; a prompt of one token costs nothing in this form, and the
    # sixteen fiftieths of the steps that compute one have the same decodes.
    found = summary()["headroom"]
    assert found["bound_per_s"] == pytest.approx(16 / (0.021 * 50))
    assert (found["batch"], found["slots"], found["batch_bound_by"]) == (16, 16, "slots")
    assert found["parts"]["host"] == pytest.approx(1 / 21)
    assert found["parts"]["weights"] == pytest.approx(5 / 21)
    assert found["parts"]["arithmetic"] == pytest.approx(15 / 21)
    assert found["parts"]["cache reads"] == 0


def test_more_slots_than_memory_serves_bear_nothing_more() -> None:
    # A request holds 26 positions on average, two pages of 16: eight pages are four requests.
    narrow, wide = (summary(engine={"slots": slots, "pages": 8})["headroom"] for slots in (16, 1024))
    assert narrow["batch_bound_by"] == wide["batch_bound_by"] == "KV pages"
    assert narrow["bound_per_s"] == wide["bound_per_s"] == pytest.approx(4 / (0.009 * 50))


def test_what_the_context_adds_is_cache_reads() -> None:
    cost = {"affine": {"base": "10ms", "per_context_token": "1us"}}
    # 16 requests that hold 26 positions on average: 416 us.
    assert summary(cost=cost)["headroom"]["parts"]["cache reads"] == pytest.approx(0.416 / 10.416)


def test_replicas_bear_the_sum_and_time_in_steps_is_of_all() -> None:
    one, two = summary(), summary(cluster={"replicas": 2})
    assert two["headroom"]["bound_per_s"] == pytest.approx(2 * one["headroom"]["bound_per_s"])
    assert two["headroom"]["in_steps"] < 1
    seconds = two["slot_seconds"]
    assert two["headroom"]["in_steps"] == pytest.approx(1 - seconds["idle"] / seconds["bought"])


def test_an_engine_that_speculates_finishes_as_many_more_as_a_verification_brings() -> None:
    # Two drafts that are always right: three tokens a step. 16 slots, steps of 10 ms, outputs of 50.
    speculation = {"tokens": 2, "acceptance": 1.0, "draft": {"lookup": "2ms"}}
    found = summary(engine={"slots": 16, "speculation": speculation}, cost={"unit": "8ms"})["headroom"]
    assert found["bound_per_s"] == pytest.approx(16 * 3 / (0.010 * 50))
    # A budget of 25 positions is 25 / (3 + 3 / 50) verifications, with what is left for the prompts of one token.
    engine = {"slots": 16, "token_budget": 25, "speculation": {**speculation, "draft": {}}}
    found = summary(engine=engine, cost={"unit": "10ms"})["headroom"]
    assert found["batch_bound_by"] == "the token budget"
    assert found["batch"] == pytest.approx(25 / (3 + 3 / 50))


POOLS = {"prefill": {"replicas": 1}, "decode": {"replicas": 1}, "transfer": {"latency": "1ms", "per_token": "1us"}}
COMPUTED = {"affine": {"base": "1ms", "per_prefill_token": "10us"}}
LONG = [{"id": str(n), "arrival": f"{n}ms", "prompt": 100, "output": 11} for n in range(20)]


@pytest.mark.parametrize(
    ("prefill", "pool", "batch", "rate"),
    [
        (1, "prefill", 4, 4 / 0.005),  # 400 tokens a step are 4 prompts in 1 + 4 ms
        (3, "decode", 16, 16 / (0.001 * 10)),  # ten steps of 1 ms; three of the others bear 2,400
    ],
)
def test_of_two_pools_the_smaller_one_bounds(prefill: int, pool: str, batch: int, rate: float) -> None:
    cluster = {**POOLS, "prefill": {"replicas": prefill}}
    found = summary(
        workload={"requests": LONG}, engine={"slots": 16, "token_budget": 400}, cost=COMPUTED, cluster=cluster
    )
    headroom = found["headroom"]
    assert (headroom["pool"], headroom["batch"]) == (pool, batch)
    assert headroom["bound_per_s"] == pytest.approx(rate)
    assert f"the {pool} pool could bear about" in sentence(found)


def test_a_prompt_longer_than_the_budget_takes_several_steps() -> None:
    # 100 tokens by 40, 40 and 20: 1.4 + 1.4 + 1.2 ms, one prompt at a time.
    found = summary(
        workload={"requests": LONG}, engine={"slots": 16, "token_budget": 40}, cost=COMPUTED, cluster=POOLS
    )
    assert found["headroom"]["bound_per_s"] == pytest.approx(1 / 0.004)
    assert found["headroom"]["batch_bound_by"] == "the token budget"


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": {"slots": 16, "speculation": {"tokens": 3, "acceptance": [0.8, 0.5]}}},
        {"engine": {"slots": 16, "token_budget": 400}, "cluster": {**POOLS, "decode": {"replicas": 3}}},
        {"engine": {"slots": 16, "token_budget": 400}, "cluster": {**POOLS, "prefill": {"replicas": 3}}},
    ],
    ids=["speculation", "prefill", "decode"],
)
def test_a_backlog_is_served_at_the_bound(changes: dict[str, Any]) -> None:
    backlog = [{"id": str(n), "arrival": 0, "prompt": 100, "output": 100} for n in range(800)]
    cost = {"affine": {"base": "1ms", "per_prefill_token": "10us", "per_sequence": "50us"}}
    found = summary(workload={"requests": backlog}, cost=cost, **changes)
    assert found["rates"]["finished_per_s"] == pytest.approx(found["headroom"]["bound_per_s"], rel=0.05)


def test_a_static_batch_has_no_bound_and_no_sentence() -> None:
    found = summary(engine={"slots": 16, "batching": "static", "admission": "reserve"})
    assert found["headroom"] is None
    assert sentence(found) == ""


def test_a_mostly_empty_engine_is_not_told_to_have_fewer_slots() -> None:
    found = summary(engine={"slots": 1024})
    assert found["occupancy"] < 0.02
    assert "times the" in sentence(found)
    (row,) = (row for row in ledger_rows.ROWS if row.key == "no_demand")
    assert "fewer slots save nothing" in ledger_rows.advice(row, found)


def test_advice_does_not_name_what_is_set() -> None:
    rows = {row.key: row for row in ledger_rows.ROWS}
    continuous = {
        "engine": {"batching": "continuous", "evict": "before", "admission": "reserve", "prefix_cache": True}
    }
    assert ledger_rows.advice(rows["held"], continuous) == ""
    assert ledger_rows.advice(rows["recomputed"], continuous) == ""
    assert ledger_rows.advice(rows["prefill"], continuous) == ""
    assert (
        ledger_rows.advice(rows["held"], {"engine": {"batching": "continuous", "evict": "after"}}) == "evict: before"
    )
    assert ledger_rows.advice(rows["held"], {"engine": {"batching": "static"}}) == rows["held"].advice
    assert ledger_rows.advice(rows["held"], {}) == rows["held"].advice
