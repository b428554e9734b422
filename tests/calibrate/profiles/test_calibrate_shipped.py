"""The shipped profiles: made again of their tables they are the same, and they meet runs they were not made of."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import slotstep
from benchmarks.fidelity import closed_loop, operators, step_rate
from benchmarks.fidelity.rows import Row, compared
from benchmarks.shipped import profiles
from calibrate.profiles.profile import Profile, named, shipped
from sim.cost.forms import Affine
from sim.cost.shape import Shape
from sim.cost.table import Table


def about(profile: Profile) -> dict[str, Any]:
    """What a profile says in words and whole numbers, which no machine rounds otherwise."""
    return {key: value for key, value in profile.content.items() if key not in ("curve", "residuals")}


def durations(profile: Profile) -> list[float]:
    """Of steps of all kinds."""
    cost = profile.cost()
    found = []
    for decodes, mean, chunk in product((0, 1, 30, 256), (1, 500, 4000), (0, 16, 700, 2048)):
        batch = Shape()
        batch.decodes, batch.context = decodes, decodes * mean
        if chunk:
            batch.add_chunk(mean, chunk)
        found.append(float(cost.step(batch)))
    return found


@pytest.mark.slow
def test_the_shipped_profiles_are_those_that_the_tables_give(data: Path) -> None:
    made = profiles(data)
    assert {profile.name for profile in made} <= set(shipped())
    for profile in made:
        assert about(profile) == about(named(profile.name))
        assert durations(profile) == pytest.approx(durations(named(profile.name)), rel=1e-3)


def errors(run: operators.Measured, data: Path, **settings: float) -> list[Row]:
    """The nine errors of a run."""
    found = operators.measurements(data, run)
    measured = {metric: found[metric].tolist() for metric in operators.METRICS}
    result = slotstep.run(operators.scenario(data, run, **settings))  # type: ignore[arg-type]
    return compared("", run.folder, measured, operators.predicted(result))


def test_an_rtx_4090_is_met_within_four_percent_with_nothing_fitted(data: Path) -> None:
    assert [row for row in errors(operators.RUNS[0], data) if abs(row.error) > 0.04] == []


@pytest.mark.parametrize("name", ["rtx4090-llama-3.1-8b", "rtxpro6000-llama-3.1-8b", "rtxpro6000-qwen3-32b-tp2"])
def test_beside_a_chunk_decodes_read_their_context_more_slowly(name: str) -> None:
    cost = named(name).cost()
    assert isinstance(cost, Table)
    assert cost.beside is not None
    batches = cost.beside.base.at
    slower = [cost.beside.per_position(batch) / cost.decode.per_position(batch) for batch in batches]
    assert min(slower) > 1.35
    assert max(slower) < 10


def test_and_within_two_with_its_captured_graphs(data: Path) -> None:
    assert [row for row in errors(operators.RUNS[0], data, graphs=True) if abs(row.error) > 0.02] == []


@pytest.mark.parametrize("run", operators.RUNS, ids=lambda run: run.folder.partition("__")[0])
def test_neither_run_asks_for_host_time(data: Path, run: operators.Measured) -> None:
    """Without any the mean E2E is already above the measured one, now that the longest of a batch is in the cost."""
    found = {(row.metric, row.statistic): row.error for row in errors(run, data, graphs=True)}
    assert 0 <= found["e2e_s", "mean"] < 0.02


def test_an_rtx_pro_6000_is_met_within_four_percent_but_for_the_median_wait(data: Path) -> None:
    """The median request waits for the first ones to end, and these run in batches of middle size."""
    rows = errors(operators.RUNS[1], data, graphs=True)
    far = {(row.metric, row.statistic): row.error for row in rows if abs(row.error) > 0.04}
    assert list(far) == [("ttft_s", "p50")]
    assert abs(far["ttft_s", "p50"]) < 0.06


@pytest.mark.slow
def test_a_closed_loop_of_an_h100_is_met_within_five_percent(data: Path) -> None:
    rows = closed_loop.rows(data)
    assert len(rows) == 42
    assert sum(abs(row.error) for row in rows) / 42 < 0.05
    table = closed_loop.by_concurrency(data, rows)
    assert (table["mean size"] < 0.05).all()
    # What the decode table alone would miss grows with the concurrency.
    assert table["decode alone"].is_monotonic_decreasing
    assert table["decode alone"].iloc[0] == pytest.approx(-0.15, abs=0.03)


@pytest.mark.parametrize("devices", [1, 2])
def test_shapes_alone_meet_closed_loops_of_one_and_two_h100s_within_ten_percent(data: Path, devices: int) -> None:
    rows = closed_loop.measured(data, devices)
    some = rows[(rows["isl"] == 1024) & (rows["conc"] <= 32)]
    errors = closed_loop.shape_errors(data, devices, rows=some)
    assert len(errors) >= 6
    assert sum(map(abs, errors)) / len(errors) < 0.1


def test_the_load_by_the_second_is_beside_the_measured_one(data: Path) -> None:
    run = operators.RUNS[0]
    series = operators.load_by_second(data, run, slotstep.run(operators.scenario(data, run)))
    assert len(series) == len((data / operators.FOLDER / run.folder / "timeseries.csv").read_text().splitlines()) - 1
    assert (series["running"] - series["simulated_running"]).abs().mean() < 0.1 * series["running"].mean()
    assert series["simulated_waiting"].max() == pytest.approx(series["waiting"].max(), rel=0.05)


def test_steps_are_counted_between_the_ends_of_requests() -> None:
    """Three that decode, 10 ms a step and 1 ms for each: they end 4 and 6 steps apart, and nobody says so."""
    cost = Affine(base=10e6, per_sequence=1e6)
    last = np.array([10 * 0.013, 10 * 0.013 + 4 * 0.012, 10 * 0.013 + 4 * 0.012 + 6 * 0.011])
    found = step_rate.counted(np.zeros(3), last, np.array([50.0, 60.0, 100.0]), cost)
    assert found["steps"].tolist() == [4, 6]
    assert found["sequences"].tolist() == [2, 1]
    assert found["measured ms"].tolist() == pytest.approx([12, 11])
    # The step of the last token reads all but it and the one before; the longest is then six steps from its end.
    assert found["longest"].tolist() == [100 - 6 - 2, 100 - 2]
    assert found["mean"].tolist() == [(92 + 58) / 2, 98]


@pytest.mark.parametrize(("run", "within"), [(0, 0.03), (1, 0.13)])
def test_single_steps_of_the_measured_runs_are_met(data: Path, run: int, within: float) -> None:
    steps = step_rate.decode_steps(data, operators.RUNS[run])
    error = steps["profile ms"] / steps["measured ms"] - 1
    assert len(steps) >= 15
    assert error.abs().max() < within


def test_on_the_rtx_pro_6000_full_batches_are_met_and_the_longest_is_why(data: Path) -> None:
    """From 66 sequences on within 4%; as if all were as long as the mean, up to 9% short."""
    steps = step_rate.decode_steps(data, operators.RUNS[1])
    full = steps[steps["sequences"] > 65]
    assert len(full) > 40
    assert (full["profile ms"] / full["measured ms"] - 1).abs().mean() < 0.02
    assert (full["if even ms"] / full["measured ms"] - 1).mean() < -0.05
    # When the longest ends, between one batch of 39 and one of 38, a step is 9% shorter.
    before, after = (steps[steps["sequences"] == n].iloc[-1] for n in (39, 38))
    assert before["longest"] > 2 * after["longest"]
    assert after["measured ms"] - before["measured ms"] == pytest.approx(-1.8, abs=0.2)
    assert after["profile ms"] - before["profile ms"] == pytest.approx(-1.8, abs=0.4)


def test_the_miss_on_the_rtx_pro_6000_is_in_batches_of_17_to_64(data: Path) -> None:
    """It comes and goes with 16, 32 and 64 sequences, whatever their contexts: so do the tiles of matrix products."""
    steps = step_rate.decode_steps(data, operators.RUNS[1])
    short = steps["measured ms"] - steps["profile ms"]
    sizes = pd.cut(steps["sequences"], [0, 16, 32, 64, 128])
    mean = short.groupby(sizes, observed=True).mean()
    assert mean.tolist() == pytest.approx([0.4, 0.9, 2.0, 0.4], abs=0.1)
