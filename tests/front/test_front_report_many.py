"""The report of many runs: means over seeds with intervals, curves over an axis of numbers, failed runs named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scipy import stats

from reports.page.html import page
from slotstep.report_commands import Format, rendered
from slotstep.report_folder import read
from slotstep.sweeps.row import table
from slotstep.sweeps.store import Store, make
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
