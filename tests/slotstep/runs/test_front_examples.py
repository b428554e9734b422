"""The worked examples, each with its answer known from pencil and paper."""

from __future__ import annotations

import heapq

import pytest
from repository import ROOT

import slotstep
from slotstep.runs.result import Result

EXAMPLES = ROOT / "examples"
EIGHT = (5, 8, 6, 120, 7, 9, 6, 11)


def run(name: str, *settings: str) -> Result:
    """The result of an example."""
    return slotstep.run(slotstep.load(EXAMPLES / f"{name}.yaml", settings))


def completion_steps(result: Result) -> dict[str, int]:
    """The step at whose end each request got its last token, at one millisecond a step."""
    frame = result.requests
    return dict(zip(frame["id"], (frame["ended_ns"] // 1_000_000).tolist(), strict=True))


def steps_of_a_line(outputs: tuple[int, ...], slots: int) -> int:
    """Steps until all have ended when each takes the slot that is free first."""
    free = [0] * slots
    for output in outputs:
        heapq.heapreplace(free, free[0] + output)
    return max(free)


def test_eight_answers_in_a_static_batch_use_less_than_a_fifth_of_what_was_bought() -> None:
    summary = run("eight-static").summary
    useful = summary["slot_steps"]["decode"] + summary["slot_steps"]["prefill"]
    assert summary["steps"] == 120
    assert summary["slot_steps"]["bought"] == 960
    assert useful == sum(EIGHT) == 172
    assert summary["slot_steps"]["held"] == 960 - 172
    assert round(summary["occupancy"], 3) == 0.179
    assert summary["makespan_s"] == pytest.approx(0.120)


def test_the_same_answers_fed_from_a_backlog_keep_the_slots_busy_until_the_line_is_empty() -> None:
    result = run("eight-continuous")
    summary = result.summary
    outputs = tuple(request.output for request in result.log.requests)
    assert outputs == EIGHT * 20
    steps = steps_of_a_line(outputs, slots=8)
    assert summary["steps"] == steps
    assert summary["occupancy"] == pytest.approx(20 * 172 / (8 * steps))
    assert summary["slot_steps"]["held"] == 0
    assert summary["slot_steps"]["no_demand"] == 8 * steps - 20 * 172


def test_c_gets_the_slot_of_a_at_once_or_waits_for_the_batch() -> None:
    assert completion_steps(run("jobs-continuous")) == {"a": 2, "b": 4, "c": 3}
    assert completion_steps(run("jobs-static")) == {"a": 2, "b": 4, "c": 5}


def test_three_prompts_fill_seven_pages_but_for_31_positions() -> None:
    pages = run("pages").summary["pages"]
    assert pages["total"] == 8
    assert pages["peak_used"] == pages["mean_used"] == 7
    assert pages["positions"] == {"live": 81, "tail": 31, "reserved": 0, "cached": 0, "free": 16}
    assert pages["mean_live_fraction"] == pytest.approx(81 / 112)


def test_an_answer_evicted_late_buys_a_slot_step_more_and_harvested_late_loses_its_last_token() -> None:
    on_time, late = run("jobs-continuous"), run("jobs-continuous", "engine.evict=after")
    assert on_time.summary["slot_steps"]["held"] == 0
    assert late.summary["slot_steps"]["held"] == 3
    assert completion_steps(late) == {"a": 2, "b": 4, "c": 4}
    lossy = run("jobs-continuous", "engine.evict=after", "engine.harvest=next").summary
    assert late.summary["tokens"]["lost"] == 0
    assert lossy["tokens"]["lost"] == 3


@pytest.mark.slow
def test_in_the_chat_example_each_policy_does_the_same_work_and_does_what_it_is_for() -> None:
    scenario = slotstep.load(EXAMPLES / "chat.yaml")
    fcfs, sjf, fair = (result.summary for result in slotstep.compare(scenario, ["fcfs", "sjf", "fair"]))
    for summary in (fcfs, sjf, fair):
        assert summary["requests"]["finished"] == 4000
        assert summary["tokens"]["output"] == fcfs["tokens"]["output"]
        assert summary["wait_s"]["mean"] >= sjf["wait_s"]["mean"]
        assert summary["wait_s"]["max"] >= fcfs["wait_s"]["max"]
        assert summary["tenants"]["chat"]["ttft_s"]["p99"] >= fair["tenants"]["chat"]["ttft_s"]["p99"]
    assert sjf["wait_s"]["max"] > 30 + 5
    assert fair["wait_s"]["max"] < 30 + 5
