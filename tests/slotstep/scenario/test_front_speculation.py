"""Scenarios of engines that speculate: what they give, and what is refused in one line."""

from __future__ import annotations

from typing import Any

import pytest

from slotstep import BadInput, parse, resolved, run

BASE: dict[str, Any] = {
    "cost": {"unit": "1s"},
    "workload": {"requests": [{"prompt": 5, "output": 8}]},
}


def speculating(engine: dict[str, Any] | None = None, **speculation: Any) -> dict[str, Any]:
    """The scenario with these settings."""
    given = {"tokens": 3, "acceptance": {"length": 3}} | speculation
    return BASE | {"engine": {"slots": 1, **(engine or {}), "speculation": given}}


def test_the_example_by_hand() -> None:
    found = run(parse(speculating())).summary
    assert found["makespan_s"] == 4
    assert found["tpot_s"]["mean"] == pytest.approx(3 / 7)
    assert found["tokens"]["rejected"] == 5
    assert found["speculation"]["tokens_per_verification"] == pytest.approx(7 / 3)


def test_drafting_is_paid_for() -> None:
    assert run(parse(speculating(draft={"lookup": "500ms"}))).summary["makespan_s"] == 5.5
    assert run(parse(speculating(draft={"share": 0.1}))).summary["makespan_s"] == pytest.approx(4.9)
    # The model's passes: one over the prompt, three after each of three verifications.
    model = {"cost": {"unit": "100ms"}}
    assert run(parse(speculating(draft=model))).summary["makespan_s"] == pytest.approx(4 + 0.1 + 0.9)


def test_the_resolved_scenario_gives_the_same_run() -> None:
    for acceptance in (0.5, [0.9, 0.5], {"mean": 0.7, "spread": 0.1}, {"length": 2.5}):
        scenario = parse(speculating(acceptance=acceptance))
        again = parse(resolved(scenario))
        assert run(again).summary["log_sha256"] == run(scenario).summary["log_sha256"]


def test_vllms_preset_plans_after_each_step() -> None:
    assert parse(speculating({"preset": "vllm", "pages": 100})).engine.async_scheduling is False


def test_pages_beside_a_draft_model() -> None:
    shape = {"shape": {"model": "llama-3.1-8b", "device": "h100-sxm"}}
    small = {"cost": {"shape": {"model": "llama-3.2-1b", "device": "h100-sxm"}}}
    alone = parse(BASE | {"engine": {"fit": 0.9}, "cost": shape}).engine.pages
    beside = parse(speculating({"fit": 0.9}, draft=small) | {"cost": shape}).engine.pages
    # 16 bit: 131,072 bytes a position of the large model (32 layers x 2 x 8 heads x 128), 32,768 of the small one
    # (16 x 2 x 8 x 64), and its 1.236 billion weights less in memory.
    memory = alone * 16 * 131072
    assert beside == pytest.approx((memory - 2 * 1.236e9) / (16 * (131072 + 32768)), rel=0.001)
    heads = parse(speculating({"fit": 0.9}, draft={"share": 0.02, "layers": 1}) | {"cost": shape}).engine.pages
    assert heads < alone * 32 / 33


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (speculating(acceptance=1.5), "from 0 to 1"),
        (speculating(acceptance={"mean": 0.8}), "{mean, spread}"),
        (speculating(acceptance="often"), "a chance"),
        (speculating(draft={"share": 0.1, "lookup": "1ms"}), "one of lookup, share and cost"),
        (speculating(draft={"layers": 1}), "layers needs share"),
        (speculating(draft={"cost": {"profile": "nothing"}}), "engine.speculation.draft.cost.profile"),
        (speculating(draft={"shar": 0.1}), "share"),
        (speculating(tokens=0), "at least 1"),
        (speculating(tokens=256), "at most 255"),
        (speculating({"async_scheduling": True}), "async_scheduling: false"),
        (speculating({"evict": "after"}), "evict: before"),
        (speculating({"preset": "sglang"}), "passes of one kind"),
    ],
)
def test_what_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput, match=told.replace("{", r"\{")):
        parse(given)
