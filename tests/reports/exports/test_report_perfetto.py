"""The trace for Perfetto, read back field by field: tracks, spans, counters; and the Markdown form."""

from __future__ import annotations

import json

import pytest
from repository import ROOT

import slotstep
from reports.page.markdown import markdown
from reports.page.report import Report, Run
from slotstep.cli import app
from slotstep.runs.result import Result
from slotstep.scenario import document

EXAMPLES = ROOT / "examples"
OUTPUTS = (5, 8, 6, 120, 7, 9, 6, 11)


def told(result: Result) -> Run:
    scenario = document.dump(slotstep.resolved(result.scenario))
    return Run(result.policy, result.summary, result.requests, result.steps, result.slots, scenario)


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict]]:  # type: ignore[type-arg]
    """The events of the eight answers' trace, as the command writes it, by their phase."""
    folder = tmp_path_factory.mktemp("eight")
    slotstep.run(slotstep.load(EXAMPLES / "eight-static.yaml")).save(folder)
    with pytest.raises(SystemExit):
        app.main(["report", str(folder), "--format", "perfetto"])
    read = json.loads((folder / "trace.json").read_text())
    assert set(read) == {"displayTimeUnit", "otherData", "traceEvents"}
    phases: dict[str, list[dict]] = {"M": [], "X": [], "C": []}  # type: ignore[type-arg]
    for event in read["traceEvents"]:
        phases[event["ph"]].append(event)
    return phases


def test_eight_slots_are_eight_tracks_of_one_process(eight: dict[str, list[dict]]) -> None:  # type: ignore[type-arg]
    names = {event["tid"]: event["args"]["name"] for event in eight["M"] if event["name"] == "thread_name"}
    assert names == {slot + 1: f"slot {slot}" for slot in range(8)}
    order = {
        event["tid"]: event["args"]["sort_index"] for event in eight["M"] if event["name"] == "thread_sort_index"
    }
    assert order == {slot + 1: slot for slot in range(8)}
    processes = [event for event in eight["M"] if event["name"] == "process_name"]
    assert [(event["pid"], event["args"]["name"]) for event in processes] == [(1, "fcfs")]
    assert {event["pid"] for events in eight.values() for event in events} == {1}


def test_every_answer_is_a_span_with_its_parts_in_it(eight: dict[str, list[dict]]) -> None:  # type: ignore[type-arg]
    requests = [event for event in eight["X"] if event["cat"] == "request"]
    assert {(event["name"], event["tid"], event["ts"], event["dur"]) for event in requests} == {
        (str(slot + 1), slot + 1, 0.0, 120_000.0) for slot in range(8)
    }
    assert all(event["args"] == {"tenant": "default", "status": "finished"} for event in requests)
    phases = {(e["tid"], e["name"]): (e["ts"], e["dur"]) for e in eight["X"] if e["cat"] == "phase"}
    expected = {}
    for slot, output in enumerate(OUTPUTS, start=1):
        expected[slot, "prefill"] = (0.0, 1000.0)
        expected[slot, "decode"] = (1000.0, 1000.0 * (output - 1))
        if output < 120:
            expected[slot, "held"] = (1000.0 * output, 1000.0 * (120 - output))
    assert phases == expected


def test_counters_change_when_what_they_count_does(eight: dict[str, list[dict]]) -> None:  # type: ignore[type-arg]
    courses: dict[str, list[tuple[float, float]]] = {}
    for event in eight["C"]:
        courses.setdefault(event["name"], []).append((event["ts"], event["args"][event["name"]]))
    assert courses["queue"] == [(0.0, 0)]
    falls = sorted(set(OUTPUTS))
    alive = [(1000.0 * end, sum(other > end for other in OUTPUTS) / 8) for end in falls]
    assert courses["occupancy"] == [(0.0, 1.0), *alive]
    assert courses["pages"][-1] == (120_000.0, 0)
    assert max(value for _, value in courses["pages"]) == 15


def test_a_queue_is_counted_until_the_first_admission_and_replicas_apart() -> None:
    from reports.exports.perfetto import trace

    lines = [{"id": name, "output": 2} for name in "abcd"]
    scenario = {
        "workload": {"requests": lines},
        "engine": {"slots": 1},
        "cost": {"unit": "1ms"},
        "cluster": {"replicas": 2},
    }
    events = trace([told(slotstep.run(slotstep.parse(scenario)))])["traceEvents"]
    queue = [(event["ts"], event["args"]["queue"]) for event in events if event["name"] == "queue"]
    assert queue == [(0.0, 2), (2000.0, 0)]
    names = {event["name"] for event in events if event["ph"] == "C"}
    assert names == {"queue", "pages, replica 0", "pages, replica 1", "occupancy, replica 0", "occupancy, replica 1"}


def test_markdown_says_the_same_and_takes_names_literally() -> None:
    evil = "<img src=x> | `x`"
    lines = [{"output": 2, "tenant": evil}, {"output": 3, "tenant": "b"}]
    scenario = slotstep.parse({"name": evil, "workload": {"requests": lines}, "cost": {"unit": "1ms"}})
    one = told(slotstep.run(scenario))
    text = markdown(Report(evil, [one]))
    assert "**3 of" not in text
    assert text.startswith("## \\<img src=x\\> \\| \\`x\\`\n")
    assert "<img" not in text.replace("\\<img", "")
    assert "2 of 2 requests finished in 3.00 ms" in text
    both = markdown(Report("two", [one, told(slotstep.run(scenario, "sjf"))]))
    assert "| fcfs |" in both
    assert "| sjf |" in both
    assert both.count("<details>") == both.count("</details>") == 3
