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
