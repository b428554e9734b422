"""The report of many runs: means over seeds with intervals, curves over an axis of numbers, failed runs named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scipy import stats

from reports.page.html import page
from slotstep.cli.reports.report import Format, rendered
from slotstep.experiments.sweeps.row import table
from slotstep.experiments.sweeps.store import Store, make
from slotstep.report_input.folder import read
from traces.errors import BadInput

KEYS = {"policy": "policy", "engine_slots": "engine.slots", "seed": "seed"}


def written(store: Store, name: str, **values: object) -> None:
    """A run's row with these values."""
    blank = dict.fromkeys(table([], store.kinds).column_names)
    store.write({**blank, "run": name, "status": "ended", "scenario": "s <b>", **values})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two policies at two numbers of slots, three seeds of each, and a run that failed."""
    made = make(tmp_path, KEYS, {"policy": "string", "engine_slots": "int64", "seed": "int64"})
    for policy in ("fcfs", "<i>fair"):
        for slots in (8, 16):
            for seed in range(3):
                written(
                    made,
                    f"{policy[:2]}{slots}{seed}".replace("<", ""),
                    policy=policy,
                    engine_slots=slots,
                    seed=seed,
                    occupancy=0.5 + 0.1 * seed,
                    ttft_s_p99=1.0 * slots,
                    slot_steps_bought=100,
                    slot_steps_decode=70,
                    slot_steps_held=30,
                )
    written(made, "bad", status="failed", error="it <b>broke", policy="fcfs", engine_slots=8, seed=9)
    return made


def test_settings_are_means_over_seeds_with_their_intervals(store: Store) -> None:
    story = read(store.folder)
    settings, ledger = story.findings
    assert settings.frame["seeds"].tolist() == [3] * 4
    reach = stats.t.ppf(0.975, 2) * 0.1 / 3**0.5
    assert settings.frame["occupancy"].tolist() == pytest.approx([0.6] * 4)
    assert settings.frame["occupancy high"].tolist() == pytest.approx([0.6 + reach] * 4)
    assert settings.frame["engine.slots"].tolist() == [8, 16, 8, 16]
    assert [(curve.across, curve.up, curve.split) for curve in settings.curves] == [
        ("engine.slots", "occupancy", "policy"),
        ("engine.slots", "p99 TTFT, s", "policy"),
    ]
    assert ledger.frame["held, %"].tolist() == [30.0] * 4
    assert story.remarks == ["A run failed: it <b>broke"]


def test_the_page_of_a_sweep_draws_them_and_escapes_names(store: Store) -> None:
    shown = page(read(store.folder), "1")
    assert shown.count('role="img"') == 2
    assert shown.count("<circle") == 2 * 4
    assert "&lt;i&gt;fair" in shown
    assert "<i>fair" not in shown
    assert "<b>" not in shown


def test_without_a_number_to_draw_over_or_a_run_that_ended_there_is_no_curve(tmp_path: Path) -> None:
    one = make(tmp_path / "one", {"policy": "policy"}, {"policy": "string"})
    written(one, "a", policy="fcfs", occupancy=0.5, slot_steps_bought=0)
    settings, _ = read(one.folder).findings
    assert settings.curves == []
    none = make(tmp_path / "none", {"seed": "seed"}, {"seed": "int64"})
    assert read(none.folder).remarks == ["No run has ended."]


def test_replications_say_who_differs_in_what_and_label_what_is_unstable(tmp_path: Path) -> None:
    def estimate(
        value: float | None, low: float | None, high: float | None, n: int = 3
    ) -> dict[str, float | int | None]:
        return {"value": value, "low": low, "high": high, "n": n}

    def policy(unstable: int, censored: int) -> dict[str, object]:
        metrics = {"wait_s_mean": estimate(1.25, 1.0, 1.5), "occupancy": estimate(0.5, 0.4, 0.6)}
        return {
            "requests": 900,
            "censored": censored,
            "unstable_runs": unstable,
            "warm_up_requests": [0, 0, 0],
            "metrics": metrics,
            "after_warm_up": {"wait_s_mean": estimate(1.0, None, None)},
        }

    pair = {"first": "<b>fcfs", "second": "fair", "left_out": 0}
    differences = [
        {**pair, "metric": "wait_s_mean", **estimate(-0.25, -0.5, -0.125), "differ": True},
        {**pair, "metric": "occupancy", **estimate(0.0, -0.1, 0.1), "differ": False},
        {**pair, "metric": "attainment", **estimate(None, None, None, 0), "differ": False},
    ]
    found = {"scenario": "s", "seeds": [0, 1, 2], "confidence": 0.95, "differences": differences}
    found["policies"] = {"<b>fcfs": policy(2, 0), "fair": policy(0, 9)}
    (tmp_path / "replications.json").write_text(json.dumps(found))
    story = read(tmp_path)
    estimates, compared = story.findings
    assert list(estimates.sentences)[1:] == [
        "<b>fcfs and fair differ in wait_s_mean by -0.250 [-0.500, -0.125], 3 seeds.",
        "<b>fcfs and fair are not told apart in occupancy.",
    ]
    assert compared.frame["verdict"].tolist() == ["differ", "not told apart", "not known"]
    assert estimates.frame["queue"].tolist() == ["unstable"] * 3 + [""] * 3
    assert [remark.split(":")[0] for remark in story.remarks] == ["<b>fcfs", "fair"]
    assert "2 of 3 runs" in story.remarks[0]
    assert "9 of 900 requests never ended" in story.remarks[1]
    shown = page(story, "1")
    assert "<b>fcfs" not in shown
    with pytest.raises(BadInput, match="holds no single run to trace"):
        rendered(story, Format.perfetto, tmp_path)
    (tmp_path / "replications.json").write_text('{"seeds": []}')
    with pytest.raises(BadInput, match="expected what `slotstep compare --seeds --out` wrote: KeyError"):
        read(tmp_path)


def point(at: float, met: bool | None, value: float | None) -> dict[str, object]:
    judged = {"objective": "p99 ttft < 1s", "limit": 1.0, "met": met, "value": value, "low": None, "high": 1.5}
    return {
        "at": at,
        "met": met,
        "stable": met is not False,
        "unstable_runs": 0,
        "runs": 4,
        "binding": None,
        "objectives": [{**judged, "late": 0.005, "late_low": 0.0, "late_high": 0.01, "late_allowed": 0.01}],
        "occupancy": 0.5,
        "finished_per_s": at,
        "output_tokens_per_s": 100 * at,
        "preemptions": 0.0,
        "cost_per_million_output_tokens": 1.25,
        "waited_for": {},
        "slot_seconds": {"bought": 200.0, "decode": 150.0, "idle": 50.0, "held": 0.0},
    }


def test_a_search_for_capacity_is_its_answers_its_curve_and_the_ledger_at_the_limit(tmp_path: Path) -> None:
    reached = [point(8.0, True, 0.5), point(12.0, True, 0.9), point(14.0, False, 2.5), point(20.0, False, None)]
    common = {"profile": None, "profile_sha256": None, "device": None, "token_budget": 2048}
    limit = {"at": 12.0, "next": 14.0, "binding": "p99 ttft < 1s", "bound_by": "slots", "knee": reached[1]}
    none = {"at": None, "next": 8.0, "binding": "p99 ttft < 1s", "bound_by": "<b>pages", "knee": None}
    answers = [
        {"policy": "fcfs", "slots": 8, **common, **limit, "curve": reached},
        {"policy": "fcfs", "slots": 4, **common, **none, "curve": [point(8.0, False, 3.0)]},
    ]
    found = {
        "scenario": "s",
        "find": "slots",
        "objectives": ["p99 ttft < 1s"],
        "from": "wanted",
        "held_back": False,
        "confidence": 0.95,
        "seeds": 8,
        "tolerance": 0.02,
        "resampled": None,
        "price": 2.0,
        "best": 0,
        "sentences": ["limit: 12 req/s fcfs"],
        "answers": answers,
    }
    (tmp_path / "capacity.json").write_text(json.dumps(found))
    story = read(tmp_path)
    answered, points, ledger = story.findings
    assert answered.title == "Capacity: the best slots within p99 ttft < 1s, 95% confidence"
    assert answered.frame["variant"].tolist() == ["fcfs, 8 slots", "fcfs, 4 slots"]
    assert answered.frame["limit, requests/s"].tolist()[0] == 12
    assert answered.frame["cost per million tokens"].tolist()[0] == 1.25
    assert points.frame["objectives"].tolist() == ["met", "met", *["missed, unstable"] * 3]
    assert [(curve.up, curve.level) for curve in points.curves] == [("p99 ttft < 1s, in s", 1.0), ("occupancy", None)]
    assert ledger.frame.to_dict("records") == [{"variant": "fcfs, 8 slots", "decode, %": 75.0, "idle, %": 25.0}]
    assert story.remarks[-1] == "fcfs, 4 slots: nothing that was looked at meets the objectives."
    shown = page(story, "1")
    assert shown.count('class="level"') == 1
    assert shown.index("limit: 12 req/s fcfs") < shown.index("Caveats") < shown.index("The points looked at")
    assert shown.count("<circle") == 4 + 5
    assert "1 of 5 points are not finite and not drawn" in shown
    assert "<b>pages" not in shown
    (tmp_path / "capacity.json").write_text("{}")
    with pytest.raises(BadInput, match="expected what `slotstep capacity --out` wrote"):
        read(tmp_path)
