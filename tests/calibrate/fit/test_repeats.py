"""Runs of one setting: which they are, and what their differences say of the noise from run to run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibrate.fit.measured_run import MeasuredRun
from calibrate.fit.repeats import Repeats, noise, same_setting, settings
from slotstep.validation.measured_runs import runs as runs_of


def timed(name: str, seconds: float, count: int = 40, gap: float = 1.0, **changed: object) -> MeasuredRun:
    """A run whose requests, a `gap` apart, all take `seconds`."""
    columns = {"id": [f"{name}{i}" for i in range(count)], "rank": range(count), "prompt": range(10, 10 + count)}
    frame = pd.DataFrame({**columns, "output": 7, "e2e_s": seconds, **changed})
    frame["sent_s"] = 100 + gap * frame["rank"]
    return MeasuredRun(name, frame, count, lambda cost, delay, first: [])


def test_runs_of_one_setting_are_told_by_their_prompts_and_their_pace() -> None:
    one = timed("one", 1.0)
    assert same_setting(one, timed("slower", 3.0))
    assert same_setting(one, timed("two percent faster", 1.0, gap=0.98))
    for other in (
        timed("other prompts", 1.0, prompt=55),
        timed("twice the rate", 1.0, gap=0.5),
        timed("longer outputs", 1.0, output=14),
        timed("more requests", 1.0, count=50),
        timed("other metrics", 1.0, ttft_s=0.1),
    ):
        assert not same_setting(one, other), other.name
    several = [one, timed("fast", 1.0, gap=0.5), timed("again", 1.1), timed("fast again", 1.0, gap=0.5)]
    assert [[each.name for each in group] for group in settings(several)] == [
        ["one", "again"],
        ["fast", "fast again"],
    ]
    lost = replace(one, measured=one.measured.iloc[:19])  # who failed has no row
    assert not same_setting(one, lost)


def test_the_noise_of_a_run_by_hand() -> None:
    found = noise([timed("a", 1.0), timed("b", 2.0), timed("c", 4.0), timed("alone", 9.0, gap=3.0)], 2000)
    assert found.repeats == (Repeats(("a", "b", "c"), {"e2e_s": pytest.approx(3.0)}),)
    # Logarithms -1, 0, 1 times log 2: a variance of (log 2)^2 for each of the two that are independent.
    first, second = (contrast["e2e_s"] for contrast in found.contrasts)
    assert first == pytest.approx(-np.log(2) / np.sqrt(2))
    assert (first**2 + second**2) / 2 == pytest.approx(np.log(2) ** 2)
    assert found.lines() == [
        "a and b and c: runs of one setting, whose means differ in E2E by 300%",
        "noise from run to run: in the intervals, as far as 2 repetitions can tell it",
    ]


@pytest.mark.parametrize(("runs", "quantile"), [(2, 6.314), (3, 2.920), (6, 2.015)])
def test_few_repetitions_leave_the_noise_uncertain(runs: int, quantile: float) -> None:
    """90% of the draws are within Student's t at as many degrees of freedom as there are repetitions."""
    several = [timed(f"{place}", float(np.exp(place))) for place in range(runs)]
    deviation = np.arange(runs).std(ddof=1)
    found, lot = noise(several, 2000), np.random.default_rng(4)
    drawn = np.array([each["e2e_s"][0] for _ in range(2000) for each in found.draws(lot)])
    assert (np.abs(drawn) < quantile * deviation).mean() == pytest.approx(0.9, abs=0.02)


def test_runs_of_other_settings_say_nothing_of_the_noise() -> None:
    runs = [timed(f"{gap}", 1.0, gap=gap) for gap in (1.0, 2.0, 3.0)]
    assert noise(runs, 2000).contrasts == ()
    assert noise(runs, 2000).lines()[0].startswith("3 runs, each of another setting, cannot tell")
    # Nothing is drawn, so that the samples of requests stay as they are.
    lot = np.random.default_rng(1)
    assert [dict(each) for each in noise(runs, 2000).draws(lot)] == [{}, {}, {}]
    assert lot.random() == np.random.default_rng(1).random()


def test_the_runs_of_the_cpu_are_told_apart_and_their_noise_is_that_of_the_notes(data: Path, tmp_path: Path) -> None:
    """Beside the first run the second had 33, 30 and 30% less at half load; 44, 8 and 30% more above capacity."""
    (tmp_path / "engine.yaml").write_text("workload: {trace: {auto: a.json}}\ncost: {unit: 1ms}\n")
    names = ("light", "half", "over", "half_rep", "over_rep")
    files = [data / "engine_vllm_cpu" / f"bench_{name}.json.gz" for name in names]
    found = noise([run.for_fit() for run in runs_of(files, tmp_path / "engine.yaml")], 2000)
    half, over = found.repeats
    assert (half.runs, over.runs) == (("bench_half", "bench_half_rep"), ("bench_over", "bench_over_rep"))
    assert list(half.spread.values()) == pytest.approx([1 / 0.67 - 1, 1 / 0.70 - 1, 1 / 0.70 - 1], abs=0.02)
    assert list(over.spread.values()) == pytest.approx([0.44, 0.08, 0.30], abs=0.01)
