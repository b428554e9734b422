"""Objectives counted from when clients wanted to send: in a scenario, in `capacity`, and said by every table."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

import slotstep
from reports.latency_origin import FROM_SENT
from reports.text.comparison import comparison_table
from reports.text.replications import replications_table
from reports.text.run_summary import summary_table
from slotstep.experiments.capacity.answer import find
from slotstep.experiments.capacity.content import content_of
from slotstep.experiments.capacity.objective import parse
from slotstep.experiments.capacity.question import Question
from slotstep.experiments.replications import replicate
from traces.errors import BadInput

ONE_AT_A_TIME: dict[str, Any] = {
    "workload": {
        "synthetic": {"requests": 800, "arrivals": {"poisson": {"rate": 3}}, "output": {"fixed": 19}},
    },
    "clients": {"window": 1},
    "engine": {"slots": 8},
    "cost": {"unit": "10ms"},
}
THEORY = 1.27
"""M/D/1 with a service of 190 ms: the rate at which 1% of the requests take longer than 500 ms."""
TWO = {
    "workload": {"requests": [{"id": "a", "output": 3}, {"id": "b", "output": 2, "arrival": "5ms"}]},
    "clients": {"window": 1},
    "cost": {"unit": "10ms"},
    "objectives": {"e2e": "40ms"},
}


def printed(table: object) -> str:
    file = io.StringIO()
    Console(file=file, width=200).print(table)
    return file.getvalue()


@pytest.mark.slow
def test_capacity_behind_a_window_is_that_of_a_queue_with_one_server() -> None:
    scenario = slotstep.parse(ONE_AT_A_TIME)
    question = Question(scenario, objectives=(parse("p99 e2e < 500ms"),), jobs=1, seeds=8, tolerance=0.1)
    found = content_of(question, *find(question))
    (answer,) = found["answers"]
    assert 0.8 * THEORY < answer["at"] <= 1.05 * THEORY
    assert answer["bound_by"] == "the clients' window"
    assert (found["from"], found["held_back"]) == ("wanted", True)
    assert any("(counted from when clients wanted to send; " in line for line in found["sentences"])


@pytest.mark.slow
def test_counted_from_sending_a_window_hides_the_wait() -> None:
    scenario = slotstep.parse({**ONE_AT_A_TIME, "objectives": {"from": "sent"}})
    question = Question(scenario, objectives=(parse("p99 e2e < 500ms"),), jobs=1, seeds=2, tolerance=0.2)
    found = content_of(question, *find(question))
    assert found["answers"][0]["at"] > 3 * THEORY
    assert any("(counted from when requests were sent; " in line for line in found["sentences"])


def test_a_scenario_says_from_when_its_objectives_count() -> None:
    assert slotstep.run(slotstep.parse(TWO)).summary["attainment"] == 0.5
    sent = slotstep.parse({**TWO, "objectives": {"e2e": "40ms", "from": "sent"}})
    assert slotstep.run(sent).summary["attainment"] == 1.0
    assert slotstep.resolved(slotstep.parse(slotstep.resolved(sent))) == slotstep.resolved(sent)
    assert slotstep.resolved(slotstep.parse(TWO))["objectives"] == {"e2e": "40ms", "from": "wanted"}
    with pytest.raises(BadInput, match=r"objectives\.from: found 'send'; expected 'wanted' or 'sent'"):
        slotstep.parse({**TWO, "objectives": {"from": "send"}})
    with pytest.raises(BadInput, match=r"objectives\.form: unknown key; did you mean objectives\.from\?"):
        slotstep.parse({**TWO, "objectives": {"form": "sent"}})


def test_tables_say_which_they_show_where_they_differ() -> None:
    summary = slotstep.run(slotstep.parse(TWO)).summary
    text = printed(summary_table(summary))
    for row in ("TTFT, from sent", "TTFT, from wanted", "E2E, from sent", "E2E, from wanted"):
        assert row in text
    assert "counted from when clients wanted to send" in text
    assert FROM_SENT in printed(comparison_table([summary, {**summary, "policy": "sjf"}]))


def test_where_they_do_not_differ_tables_show_one() -> None:
    summary = slotstep.run(slotstep.parse({**TWO, "clients": {"window": 2}})).summary
    text = printed(summary_table(summary))
    assert "wanted" not in text
    assert FROM_SENT not in printed(comparison_table([summary, {**summary, "policy": "sjf"}]))


def test_replications_say_it_too() -> None:
    workload = {"synthetic": {"requests": 30, "arrivals": {"poisson": {"rate": 3}}, "output": {"fixed": 19}}}
    for window, said in ((1, True), (30, False)):
        scenario = slotstep.parse({**ONE_AT_A_TIME, "workload": workload, "clients": {"window": window}})
        assert (FROM_SENT in printed(replications_table(replicate(scenario, ["fcfs"], 2, jobs=1)))) == said


def test_a_page_warns_of_it_in_words() -> None:
    from reports.page.headline import warnings
    from reports.page.report import Run

    result = slotstep.run(slotstep.parse(TWO))
    run = Run("fcfs", result.summary, result.requests, result.steps, result.slots, "")
    assert FROM_SENT in warnings([run])
    assert all(warnings([run]))
