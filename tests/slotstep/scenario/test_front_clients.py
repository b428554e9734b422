"""Clients and limits in a scenario file: how requests are sent, and when they end early."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

import slotstep
from slotstep.runs.result import Result
from slotstep.scenario import document
from traces.errors import BadInput

THREE: dict[str, Any] = {
    "workload": {"requests": [{"id": name, "output": 3} for name in "abc"]},
    "engine": {"slots": 4},
    "cost": {"unit": "10ms"},
}


def run(*settings: str) -> Result:
    """Three requests of three tokens at 0, four slots, steps of 10 ms, with overrides."""
    mapping = deepcopy(THREE)
    document.override(mapping, settings)
    return slotstep.run(slotstep.parse(mapping, source="chat.yaml"))


def ends(result: Result) -> dict[str, float]:
    """When each request ended, in ms."""
    return {name: ended / 1e6 for name, ended in zip(result.requests.id, result.requests.ended_ns, strict=True)}


def test_a_window_holds_requests_back() -> None:
    result = run("clients.window=2")
    assert ends(result) == {"a": 30, "b": 30, "c": 60}
    assert result.summary["client_wait_s"]["max"] == pytest.approx(0.03)
    assert result.summary["wait_s"]["max"] == 0


def test_a_delay_goes_with_a_window_or_alone_and_counts_as_the_clients_wait() -> None:
    result = run("clients={window: 2, delay: 4ms}")
    assert ends(result) == {"a": 34, "b": 34, "c": 68}
    assert result.summary["client_wait_s"]["max"] == pytest.approx(0.038)
    result = run("clients.delay=4ms")
    assert ends(result) == {"a": 34, "b": 34, "c": 34}
    assert result.summary["e2e_s"]["max"] == pytest.approx(0.03)


def test_a_closed_loop_sends_the_next_after_the_answer_and_a_thought() -> None:
    result = run("clients.closed={clients: 1, think: 5ms}")
    assert ends(result) == {"a": 30, "b": 65, "c": 100}
    assert result.summary["client_wait_s"]["max"] == 0


def test_limits_hold_for_requests_that_state_none() -> None:
    result = run("limits.timeout=25ms", "workload.requests.1.timeout=1s", "workload.requests.2.cancel_after=11ms")
    assert dict(zip(result.requests.id, result.requests.status, strict=True)) == {
        "a": "timed_out",
        "b": "finished",
        "c": "cancelled",
    }
    assert result.requests.tokens.tolist() == [2, 3, 1]


def test_a_client_may_leave_with_its_tokens() -> None:
    assert run("workload.requests.0.cancel_tokens=2").requests.tokens.tolist() == [2, 3, 3]


def test_a_full_queue_rejects() -> None:
    result = run(
        "limits.queue=1", "engine.slots=1", "workload.requests.1.arrival=5ms", "workload.requests.2.arrival=6ms"
    )
    assert result.summary["rejections"] == {"queue is full": 1}
    assert result.summary["requests"]["rejected"] == 1


def test_the_queue_of_a_static_engine_has_a_limit_too() -> None:
    result = run(
        "limits.queue=1",
        "engine.batching=static",
        "workload.requests.1.arrival=5ms",
        "workload.requests.2.arrival=6ms",
    )
    assert result.summary["rejections"] == {"queue is full": 1}


def test_time_in_the_queue_has_a_limit_of_its_own() -> None:
    result = run("limits.queue_timeout=20ms", "engine.slots=2")
    assert result.summary["requests"]["timed_out"] == 1
    assert ends(result)["c"] == 20


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("clients={}", "clients: found none; expected one of closed, window and sessions, a delay or a retry"),
        (
            "clients={window: 2, closed: {clients: 1}}",
            "clients: found closed and window; expected one of closed, window and sessions",
        ),
        ("clients.windw=2", "clients.windw: unknown key; did you mean clients.window?"),
        ("clients.window=0", "clients.window: found 0; expected a whole number of at least 1"),
        ("limits.timeout=0s", "limits.timeout: found 0; expected a duration above 0"),
        ("workload.requests.0.cancel_tokens=0", "requests.0.cancel_tokens: found 0; expected a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused(setting: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=r"chat\.yaml: ") as error:
        run(setting)
    assert complaint in str(error.value)


def test_the_resolved_scenario_keeps_clients_and_limits() -> None:
    settings = ("clients.closed={clients: 3, think: 5ms}", "limits={queue: 9, timeout: 1m}")
    mapping = deepcopy(THREE)
    document.override(mapping, settings)
    scenario = slotstep.parse(mapping)
    again = slotstep.parse(slotstep.resolved(scenario))
    assert slotstep.resolved(again) == slotstep.resolved(scenario)
    assert (again.clients, again.limits) == (scenario.clients, scenario.limits)


def test_replicas_share_the_requests_and_are_told_apart() -> None:
    result = run("cluster={replicas: 3, router: least_requests}", "engine.slots=1")
    assert ends(result) == {"a": 30, "b": 30, "c": 30}
    assert sorted(result.requests.replica) == [0, 1, 2]
    assert sorted(result.slots.slot) == [0, 1, 2]
    assert len(result.summary["replicas"]) == len(result.logs) == 3
    with pytest.raises(ValueError, match="too many values"):
        _ = result.log


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        (
            "cluster={replicas: 2, router: rund_robin}",
            "cluster.router: 'rund_robin' is unknown; did you mean round_robin?",
        ),
        (
            "cluster={replicas: 2, router: [a]}",
            "cluster.router: found ['a']; expected a name, or a name with its options",
        ),
        ("cluster.replicas=0", "cluster.replicas: found 0; expected a whole number of at least 1"),
    ],
)
def test_routers_are_checked(setting: str, complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        run(setting)
    assert complaint in str(error.value)


def test_sessions_wait_for_their_answers_and_what_was_not_sent_is_said() -> None:
    turns = [
        {"id": "a1", "output": 3, "session": "a"},
        {"id": "a2", "output": 3, "session": "a", "think": "5ms"},
        {"id": "b1", "output": 3, "session": "b", "timeout": "15ms"},
        {"id": "b2", "output": 3, "session": "b", "think": "5ms"},
    ]
    mapping = {**deepcopy(THREE), "workload": {"requests": turns}, "clients": {"sessions": {}}}
    scenario = slotstep.parse(mapping)
    result = slotstep.run(scenario)
    assert ends(result) == {"a1": 30, "b1": 15, "a2": 65}
    assert result.summary["sessions"] == {"begun": 2, "completed": 1, "broken_off": 1, "unsent_turns": 1}
    assert slotstep.resolved(slotstep.parse(slotstep.resolved(scenario))) == slotstep.resolved(scenario)


def test_synthetic_sessions_think_as_their_law_says() -> None:
    law = {"requests": 60, "arrivals": {"poisson": {"rate": 2}}, "prompt": 40, "output": 20}
    mapping = {
        "workload": {"synthetic": {**law, "sessions": {"turns": 4, "think": "2s", "think_cv": 0}}},
        "engine": {"prefix_cache": True},
        "cost": {"unit": "10ms"},
        "clients": {"sessions": {}},
    }
    frame = slotstep.run(slotstep.parse(mapping)).requests.set_index("id")
    waited = [
        frame.queued_ns[f"{session}.{turn + 1}"] - frame.ended_ns[f"{session}.{turn}"]
        for session, turn in (id_.split(".") for id_ in frame.index)
        for session, turn in [(session, int(turn))]
        if f"{session}.{turn + 1}" in frame.index
    ]
    assert len(waited) > 30
    assert set(waited) == {2_000_000_000}


@pytest.mark.parametrize(
    ("workload", "clients", "complaint"),
    [
        ([{"output": 1}], {"sessions": {}}, "clients.sessions: the workload has none"),
        (
            [{"id": "x", "output": 1, "session": "a"}, {"id": "y", "output": 1, "session": "a"}],
            {"sessions": {}},
            "clients.sessions: turn y of session a has no think time; expected one in the workload, or a think here",
        ),
        (
            [{"tokens": [1], "output": 1, "session": "a"}, {"tokens": [1], "output": 1, "session": "a", "think": 0}],
            {"sessions": {"history": "added"}},
            "the prompts of session a have content; expected history: included",
        ),
    ],
)
def test_sessions_that_make_no_sense_are_refused(workload: Any, clients: Any, complaint: str) -> None:
    mapping = {**deepcopy(THREE), "workload": {"requests": workload}, "clients": clients}
    with pytest.raises(BadInput) as error:
        slotstep.run(slotstep.parse(mapping))
    assert complaint in str(error.value)


def test_a_think_time_needs_a_session() -> None:
    with pytest.raises(BadInput, match=r"requests\.0\.think is given without session"):
        run("workload.requests.0.think=5s")
