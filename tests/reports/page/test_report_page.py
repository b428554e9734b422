"""What a page is made of: exact means over time, the ledger over time, fairness, scales, paths, first words."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from repository import ROOT

import slotstep
from reports import ledger_rows
from reports.figures import stay_parts
from reports.figures.style import readable_on
from reports.page import (
    fairness,
    finding_charts,
    headline,
    html,
    interval_means,
    ledger_charts,
    line_charts,
    slot_timeline,
    svg,
    tables,
)
from reports.page.report import Curve, Finding, Report, Run
from slotstep.runs.result import Result
from slotstep.scenario import document

EXAMPLES = ROOT / "examples"
EVIL = "<img src=x onerror=alert(1)>"
MS = 1_000_000


def told(result: Result, name: str | None = None) -> Run:
    scenario = document.dump(slotstep.resolved(result.scenario))
    return Run(name or result.policy, result.summary, result.requests, result.steps, result.slots, scenario)


@pytest.fixture(scope="module")
def eight() -> Run:
    return told(slotstep.run(slotstep.load(EXAMPLES / "eight-static.yaml")))


def crowded(**changes: object) -> Run:
    """A run that knows most rows of the ledger: few pages, few slots, a tenant with an awkward name, two engines."""
    scenario = {
        "name": EVIL,
        "workload": {
            "synthetic": {
                "requests": 120,
                "tenants": {
                    EVIL: {"arrivals": {"poisson": {"rate": 90}}, "prompt": {"fixed": 40}, "output": {"fixed": 30}},
                    "b": {"arrivals": {"poisson": {"rate": 30}}, "prompt": {"fixed": 200}, "output": {"fixed": 5}},
                },
            }
        },
        "engine": {"slots": 6, "token_budget": 64, "pages": 24},
        "cost": {"affine": {"base": "5ms", "per_sequence": "1ms"}},
        "cluster": {"replicas": 2},
        **changes,
    }
    return told(slotstep.run(slotstep.parse(scenario)))


@pytest.fixture(scope="module")
def busy() -> Run:
    return crowded()


def test_means_are_areas_over_lengths() -> None:
    start, end, value = np.array([0, 10, 12]), np.array([4, 20, 14]), np.array([3, 1, 5])
    found = interval_means.means(start, end, value, np.array([0, 5, 10, 15, 30]))
    assert found == pytest.approx([12 / 5, 0, (5 + 10) / 5, 5 / 15])


def test_the_ledger_over_time_adds_up_to_the_summary(busy: Run, eight: Run) -> None:
    for run in (busy, eight):
        assert run.summary["slot_steps"]["wasted"] == 0
        found = interval_means.step_rows(run)
        for row, amount in found.sum().items():
            assert amount == run.summary["slot_steps"][row]
        assert {row for row, amount in run.summary["slot_steps"].items() if amount} - {"bought"} <= set(found)
        over = interval_means.edges(run, 7)
        shares = interval_means.ledger(run, over)
        assert np.sum(list(shares.values()), axis=0) == pytest.approx(1)
        length = np.diff(over) / (over[-1] - over[0])
        for row, share in shares.items():
            seconds = run.summary["slot_seconds"]
            assert share @ length == pytest.approx(seconds[row] / seconds["bought"], abs=1e-9)


def test_the_queue_holds_whoever_waits_for_the_first_time() -> None:
    lines = [{"id": "a", "output": 4}, {"id": "b", "output": 2, "arrival": "1ms"}]
    run = told(
        slotstep.run(
            slotstep.parse({"workload": {"requests": lines}, "engine": {"slots": 1}, "cost": {"unit": "1ms"}})
        )
    )
    assert run.end == 6 * MS
    assert interval_means.queue(run, np.arange(7) * MS) == pytest.approx([0, 1, 1, 1, 0, 0])


def test_jains_index_is_one_for_equals_and_one_over_n_for_one_who_has_it_all() -> None:
    assert fairness.jain([7, 7, 7]) == 1
    assert fairness.jain([5, 0, 0, 0]) == 0.25
    assert fairness.jain([1, 2, 3]) == pytest.approx(36 / 42)
    assert fairness.jain([]) is fairness.jain([0]) is None


def test_a_tenant_is_served_what_its_requests_got() -> None:
    lines = [
        {"id": "a", "tenant": "x", "prompt": 10, "output": 4},
        {"id": "b", "tenant": "y", "prompt": 3, "output": 2},
        {"id": "c", "tenant": "y", "prompt": 5, "output": 9, "queue_timeout": "1ms"},
    ]
    scenario = {"workload": {"requests": lines}, "engine": {"slots": 1}, "cost": {"unit": "1ms"}}
    table = fairness.tenants(told(slotstep.run(slotstep.parse(scenario)))).set_index("tenant")
    assert table["service"].to_dict() == {"x": 14, "y": 5}
    assert table["finished"].to_dict() == {"x": 1, "y": 1}
    assert table["worst_wait_s"].to_dict() == {"x": 0, "y": pytest.approx(0.004)}
    assert table["mean_wait_s"]["y"] == pytest.approx((0.004 + 0.001) / 2)
    assert table["service_rate"]["x"] == pytest.approx(14 / 0.004)
    assert table["service_rate"]["y"] == pytest.approx(5 / (0.006 + 0.001))


def test_ticks_are_round() -> None:
    assert svg.round_values(0, 1, 5) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert svg.round_values(3, 97, 6) == pytest.approx([20, 40, 60, 80])
    assert svg.round_values(4, 4, 5) == [4]
    assert svg.decades(0.02, 3, 8) == pytest.approx([0.02, 0.05, 0.1, 0.2, 0.5, 1, 2])
    assert svg.decades(1e-6, 100, 5) == pytest.approx([1e-6, 1e-4, 1e-2, 1, 100])


def test_a_stair_holds_each_level_to_the_next_point() -> None:
    assert svg.steps_path(np.array([0.0, 1, 2, 3]), np.array([5.0, 5, 2, 2])) == "M0 5H2V2H3"
    assert svg.steps_path(np.array([0.0, 1, 1.01, 2]), np.array([5.0, 4, 1, 0])) == "M0 5H1V1H2V0H2"
    assert svg.steps_path(np.empty(0), np.empty(0)) == ""


def test_thirty_lines_differ_and_six_by_colour_alone() -> None:
    assert len({svg.look(place) for place in range(30)}) == 30
    assert len({svg.look(place).split(";")[0] for place in range(6)}) == 6


def test_what_lies_beyond_a_profile_is_said(busy: Run) -> None:
    profile = {"name": "p <1>", "sha256": "ab" * 32, "extrapolated": {"any": 0.25, "context": 0.25}}
    run = replace(busy, summary={**busy.summary, "profile": profile})
    said = headline.warnings([run])
    assert "25.0% of the steps lie beyond what the profile p <1> measured." in said
    unknown = {**busy.summary, "profile": {**profile, "extrapolated": None}}
    assert any("is not known" in sentence for sentence in headline.warnings([replace(busy, summary=unknown)]))
    assert html.page(Report("s", [replace(busy, summary=unknown)]), "1").count("p &lt;1&gt;") >= 2


def test_markup_escapes_what_is_not_markup() -> None:
    assert str(svg.tag("text", EVIL, x=1.239, data_id='"')) == (
        '<text x="1.24" data-id="&#34;">&lt;img src=x onerror=alert(1)&gt;</text>'
    )


def test_bars_of_a_timeline_begin_and_end_with_their_stays(eight: Run) -> None:
    (one,) = slot_timeline.timelines([eight])
    bars = re.findall(r'<path d="M(\d+) ([\d.]+)h(\d+)v.84h-\d+z" class="p-(\w+)', one.figure)
    unit = slot_timeline.UNITS / 120
    outputs = (5, 8, 6, 120, 7, 9, 6, 11)
    working = {int(float(y)): int(w) for _, y, w, kind in bars if kind == "working"}
    assert working == {slot: round(n * unit) for slot, n in enumerate(outputs)}
    held = {int(float(y)): int(x) for x, y, _, kind in bars if kind == "held"}
    assert held == {slot: round(n * unit) for slot, n in enumerate(outputs) if n < 120}
    assert one.parts == ["working", "held"]
    assert one.remark == "occupancy 17.9%"
    assert one.figure.count("<title>3 of default: finished, in slot 2 from 0 s") == 2


def test_a_timeline_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch, busy: Run) -> None:
    monkeypatch.setattr(slot_timeline, "MOST_STAYS", 30)
    monkeypatch.setattr(stay_parts, "MOST_SLOTS", 4)
    (one,) = slot_timeline.timelines([busy])
    assert "first 4 of 12 slots" in one.remark
    assert f"of {len(busy.stays)} stays drawn" in one.remark
    assert re.search(r"first [\d.]+ m?s of", one.remark)


def test_the_slots_come_first_in_words(eight: Run) -> None:
    first, then = headline.answers([eight])
    assert first == [
        "17.9% of 960 slot-steps bought computed a token; the largest loss is held, 82.1%: finished, but still in "
        "the batch (continuous batching, evict: before)."
    ]
    assert then == ["8 of 8 requests finished in 120 ms: 66.7 requests/s and 1,433 output tokens/s."]
    assert [card.value for card in headline.cards([eight])][:2] == ["17.9%", "1,433 tok/s"]


def test_runs_side_by_side_show_what_tells_them_apart(busy: Run, eight: Run) -> None:
    slower = replace(busy, name="slower", summary={**busy.summary, "policy": "slower", "makespan_s": 99.0})
    table = tables.comparison([busy, slower])
    assert list(table.heads) == ["policy", "makespan, s", "worst-off tenant"]
    assert [cell.best for cell in (table.rows[0][1], table.rows[1][1])] == [True, False]
    assert table.note.startswith(f"Equal for all: occupancy {100 * busy.summary['occupancy']:.1f}%")
    _, then = headline.answers([busy, slower])
    assert any(sentence.startswith("fcfs has the shortest makespan") for sentence in then)
    assert eight.slots == 8


def test_beware_names_what_is_missing(busy: Run) -> None:
    said = " ".join(headline.warnings([busy]))
    assert "no objectives" in said
    assert "seed 0" in said


def test_a_page_is_complete_small_and_escaped(busy: Run) -> None:
    page = html.page(Report(EVIL, [busy, busy]), "1.2")
    assert EVIL not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert len(page.encode()) < html.LARGEST
    outside = re.findall(r'(?:src|href)="([^"]*)"|url\(([^)]*)\)|@import', page)
    assert {a or b for a, b in outside} <= {
        "data:,", "#ledger", "#timeline", "#latency", "#load", "#tenants", "#provenance"
    }  # fmt: skip
    assert page.count('role="img"') == 1 + 2 + 2 + len(line_charts.PANELS) + 3


def test_what_cannot_be_printed_is_shown_as_its_escape() -> None:
    name = "a\x00\u202eb"
    lines = [{"id": name, "tenant": name, "output": 2}, {"id": "c", "tenant": "d", "output": 2}]
    run = told(slotstep.run(slotstep.parse({"name": name, "workload": {"requests": lines}, "cost": {"unit": "1ms"}})))
    page = html.page(Report(name, [run]), "1.2")
    shown = page.split("<pre>")[0]
    assert not {"\x00", "\u202e"} & set(shown)
    assert shown.count(r"a\x00\u202eb") >= 5


def test_a_page_of_a_run_without_a_step_says_so() -> None:
    lines = [{"output": 4, "prompt": 10_000}]
    run = told(
        slotstep.run(
            slotstep.parse({"workload": {"requests": lines}, "engine": {"pages": 2}, "cost": {"unit": "1ms"}})
        )
    )
    assert run.summary["steps"] == 0
    page = html.page(Report("none", [run]), "1.2")
    assert "no slot-steps were bought" in page
    assert "1 of 1 requests (100.0%) did not finish: 1 rejected" in page


def test_columns_of_a_finding_without_any_value_are_left_out() -> None:
    frame = pd.DataFrame({"rate": [1, 2], "queue": ["", ""], "cost": [None, np.nan], "runs": [4, np.nan]})
    assert list(tables.of_finding(Finding("Capacity", frame)).heads) == ["rate", "runs"]


def test_a_finding_is_drawn_with_its_intervals() -> None:
    frame = pd.DataFrame({"policy": ["fcfs", "fcfs", "fair"], "rate": [1, 2, 1], "p99": [0.5, 1.5, 0.25]})
    frame["low"], frame["high"] = frame["p99"] - 0.1, frame["p99"] + 0.1
    curve = Curve("rate", "p99", "policy", "low", "high")
    finding = Finding("Capacity", frame, [f"fcfs {EVIL}"], [curve], ["low", "high"])
    drawn = finding_charts.finding_chart(finding, curve)
    assert drawn.figure.count("<circle") == 3
    assert drawn.figure.count("<path") == 2 + 3
    assert [name for name, _ in drawn.lines] == ["fcfs", "fair"]
    page = html.page(Report("capacity", [], [finding]), "1")
    assert EVIL not in page
    assert 'id="findings"' in page
    shown = tables.of_finding(finding)
    assert list(shown.heads) == ["policy", "rate", "p99"]
    assert shown.numeric == [False, True, True]


def test_a_point_without_a_value_or_an_interval_is_left_out_and_said() -> None:
    frame = pd.DataFrame(
        {"rate": [1.0, 2, 3], "p99": [0.5, np.inf, np.nan], "low": [-np.inf] * 3, "high": [np.inf] * 3}
    )
    drawn = finding_charts.finding_chart(Finding("x", frame), Curve("rate", "p99", "", "low", "high"))
    assert drawn.figure.count("<circle") == 1
    assert drawn.figure.count("<path") == 1
    assert drawn.remark == "2 of 3 points are not finite and not drawn"


def test_keys_are_numbers_to_a_script_too() -> None:
    keys = [tables.time(None), tables.time(0.5), tables.rate(None), tables.word("info"), tables.count(3)]
    assert [cell.sort for cell in keys] == ["Infinity", "0.5", "-1.0", "info", "3"]


def test_every_row_can_be_told_from_its_neighbour_on_both_grounds() -> None:
    for shades in ([row.colour for row in ledger_rows.ROWS], [row.dark for row in ledger_rows.ROWS]):
        assert len(set(shades)) == len(shades)
    assert readable_on("#0b4f82") == "white"
    assert readable_on("#f0f0f0") == "black"
    assert ledger_charts.NARROWEST_WITH_NUMBER > 0
