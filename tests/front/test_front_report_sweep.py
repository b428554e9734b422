"""The report of a sweep: means over seeds with their intervals, curves over an axis of numbers, failed runs named."""

from __future__ import annotations

from pathlib import Path

import pytest
from scipy import stats

from reports.page.html import page
from slotstep.report_folder import read
from slotstep.sweeps.row import table
from slotstep.sweeps.store import Store, make

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
