"""Measuring an engine whose right answer is known: what is measured, fitted and said of it."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import numpy as np
import pytest

from calibrate.decoder.engine.protocol import OutOfMemory
from calibrate.decoder.engine.synthetic import SyntheticEngine
from calibrate.fit.fit_run import fit
from calibrate.fit.table_fit import errors, left_out, residuals, tabulate
from calibrate.measure.frame import by_point, contention, drift_of
from calibrate.measure.points import Limits, Point, between, grid, held_out, read
from calibrate.measure.robust import drift, robust
from calibrate.measure.run_log import RunLog, read_lines
from calibrate.measure.sampling_plan import SamplingPlan, all_points
from calibrate.measure.step_timer import StepTimer
from calibrate.replay.clock import FakeClock
from sim.cost.forms import Roofline
from sim.cost.table import table

TRUE = Roofline(
    weight_pass=5e6, per_token=2e4, per_context_token=60.0, per_chunk_work=2.0, per_sequence=1e4, host=5e5
)
ABOUT = {"device": "none", "model": {"name": "synthetic"}, "dtype": "none", "page_size": 16}
LIMITS = Limits(batch=32, tokens=512, max_model_len=2048, pages=4000, page_size=16)


def sampling(folder=None, noise=0.0, engine=SyntheticEngine, points=None, cost=TRUE, **settings):
    made = engine(
        cost, FakeClock(), LIMITS.pages, LIMITS.page_size, max_model_len=LIMITS.max_model_len, noise=noise, seed=4
    )
    run_log = RunLog(folder, {"model": "synthetic"})
    return SamplingPlan(
        StepTimer(made, vocabulary=100, seed=1),
        run_log,
        grid(LIMITS) if points is None else points,
        held_out(LIMITS, 12, seed=3) if points is None else [],
        control=Point("decode", (256,) * 8),
        limits=LIMITS,
        **settings,
    )


def finish(visits):
    for _ in visits:
        pass


def test_a_grid_covers_the_limits_and_keeps_them():
    points = grid(LIMITS)
    assert len({point.name for point in points}) == len(points)
    assert all(LIMITS.allow(point) for point in points)
    assert {point.kind for point in points} == {"decode", "chunk", "mixed", "uneven"}
    decodes = {(len(point.decodes), point.decodes[0]) for point in points if point.kind == "decode"}
    assert {batch for batch, _ in decodes} == {1, 2, 4, 8, 16, 32}
    assert max(context for _, context in decodes) > LIMITS.max_model_len / 2
    small = Limits(32, 512, 2048, pages=40, page_size=16)
    assert all(point.pages(16) <= 40 for point in grid(small))
    assert len(grid(small)) < len(points)


def test_held_out_points_are_ragged_and_unlike_the_grid():
    points = held_out(LIMITS, 12, seed=3)
    assert len(points) == 12
    assert points == held_out(LIMITS, 12, seed=3) != held_out(LIMITS, 12, seed=4)
    assert not {point.name for point in points} & {point.name for point in grid(LIMITS)}
    assert any(max(point.decodes) > 5 * min(point.decodes) for point in points)
    assert all(read(point.written()) == point for point in points)


def test_half_way_between_two_points():
    one, other = Point("decode", (100,) * 4), Point("decode", (400,) * 16)
    assert between(one, other) == Point("decode", (200,) * 8)
    assert between(Point("chunk", (), ((0, 16),)), Point("chunk", (), ((64, 64),))) == Point("chunk", (), ((32, 32),))
    assert between(one, Point("chunk", (), ((0, 16),))) is None
    assert between(one, one) is None


def test_a_noiseless_engine_is_measured_exactly():
    made = sampling(points=[Point("decode", (100, 300)), Point("chunk", (), ((64, 32),))])
    finish(made.rounds(1))
    points = by_point(made.run_log.lines, "device").set_index("kind")
    # The three timed steps read 2 x (1, 2, 3) positions more than the first: on average 404.
    assert points.loc["decode", "context"] == 404
    for kind in ("decode", "chunk"):
        row = points.loc[kind]
        assert row["duration_ns"] == TRUE.step(row["point"].to_shape(row["context"]))
        assert row["mad_ns"] <= 2 * 60


def test_a_table_made_of_a_grid_predicts_ragged_and_mixed_steps():
    made = sampling(noise=0.03)
    finish(made.rounds(3))
    points = by_point(made.run_log.lines, "device")
    assert (points["n"] == 9).all()
    off = residuals(table(tabulate(points)), points)
    assert off["held_out_n"] == 12
    # Medians of nine samples with a noise of 3% are known to about 1.25 x 3% / 3.
    for kind in ("decode", "chunk", "mixed", "held_out"):
        assert off[f"{kind}_mean"] < 0.03, off
    assert "steady" in drift_of(made.run_log.lines, "device").verdict
    assert contention(made.run_log.lines) == 1.0


def test_uneven_decodes_have_the_mean_of_even_ones():
    for point in grid(LIMITS):
        if point.kind == "uneven":
            mean = sum(point.decodes) / len(point.decodes)
            assert mean in {other.decodes[0] for other in grid(LIMITS) if other.kind == "decode"}
            assert max(point.decodes) >= 2 * mean


def test_a_device_that_waits_for_its_longest_row_is_found_out():
    made = sampling(cost=replace(TRUE, raggedness=0.2))
    finish(made.rounds(1))
    found = tabulate(by_point(made.run_log.lines, "device"))
    assert found["raggedness"] == pytest.approx(0.2, abs=0.02)
    even = sampling()
    finish(even.rounds(1))
    assert tabulate(by_point(even.run_log.lines, "device")).get("raggedness", 0) < 0.01


def test_decodes_that_ran_padded_are_predicted_padded():
    made = sampling()
    finish(made.rounds(1))
    found = fit(made.run_log.lines, {"graphs": [1, 2, 4, 8, 16, 64]}, clock="device")
    cost = found.profile(ABOUT, "padded", "2026-01-01").cost()
    assert cost.graph_sizes == (1, 2, 4, 8, 16, 64)
    assert cost.dense(64) > cost.dense(32)
    for batch, size in ((3, 4), (20, 64)):
        shape = Point("decode", (0,) * batch).to_shape()
        assert cost.step(shape) == round(cost.dense(size) + cost.decode.base(batch))


def test_a_point_left_out_is_predicted_by_its_neighbours():
    made = sampling()
    finish(made.rounds(1))
    points = by_point(made.run_log.lines, "device")
    points.loc[points["name"] == "decode 4x256", "duration_ns"] *= 1.5
    found = left_out(points)
    assert found["decode 4x256"] > 0.3
    assert found["decode 16x256"] < 0.1
    assert max(found, key=lambda name: found[name]) == "decode 4x256"


def test_what_time_is_left_goes_to_the_worst_point_and_beside_it():
    made = sampling()
    finish(made.rounds(1))
    before = len(made.points)
    worst = "decode 8x256"
    visits = made.adapt(lambda: {worst: 0.5, "decode 4x256": 0.1}, batch=1)
    for _ in range(4):
        next(visits)
    assert len(by_point(made.run_log.lines, "device").query("name == @worst")) == 1
    visited = [line["name"] for line in made.run_log.of("visit") if line["round"] >= 1]
    assert visited.count(worst) >= 2
    assert len(made.points) > before
    assert set(all_points(made.run_log)) >= set(made.points[before : before + 1])


class Full(SyntheticEngine):
    """Has no room for more than 16 rows."""

    def launch(self, step):
        if len(step.rows) > 16:
            raise OutOfMemory(f"{len(step.rows)} rows asked for 3 GB more than there is")
        return super().launch(step)


def test_a_point_the_device_has_no_room_for_is_skipped_with_a_line_and_the_rest_goes_on():
    said = []
    made = sampling(engine=Full, say=said.append)
    finish(made.rounds(2))
    skipped = made.run_log.of("skip")
    assert {line["name"] for line in skipped} == {
        point.name for point in made.points + made.held_out if len(point.rows) > 16
    }
    assert len(skipped) == len(said)
    assert "3 GB" in said[0]
    assert not made.timer.engine.known
    assert len(by_point(made.run_log.lines, "device")) == len(made.points + made.held_out) - len(skipped)


def test_a_measurement_that_was_killed_goes_on_where_it_was(tmp_path):
    points = [Point("decode", (100,) * batch) for batch in (1, 2, 4, 8)]
    first = sampling(tmp_path, points=list(points))
    visits = first.rounds(2)
    for _ in range(5):
        next(visits)
    with (tmp_path / "samples.jsonl").open("a") as file:
        file.write('{"kind": "visit", "round": 1, "na')
    first.run_log.close()
    second = sampling(tmp_path, points=list(points))
    finish(second.rounds(2))
    second.run_log.close()
    lines = read_lines(tmp_path)
    made = [(line["round"], line["name"]) for line in lines if line["kind"] == "visit"]
    assert sorted(made) == sorted((number, point.name) for number in (0, 1) for point in points)
    times = [line["at"] for line in lines]
    assert times == sorted(times)


def test_a_folder_that_holds_another_measurement_is_refused(tmp_path):
    RunLog(tmp_path, {"model": "tiny"}).close()
    with pytest.raises(ValueError, match="model is 'tiny', of this measurement 'large'"):
        RunLog(tmp_path, {"model": "large"})
    (tmp_path / "samples.jsonl").write_text('{"kind": "visit"}\nnonsense\n{"kind": "visit"}\n')
    with pytest.raises(ValueError, match="line 2"):
        read_lines(tmp_path)
    assert json.loads((tmp_path / "about.json").read_text()) == {"model": "tiny"}


def test_robust_figures():
    found = robust([[1, 2, 3], [4, 100]])
    assert (found.n, found.median, found.mad) == (5, 3, 1)
    # The medians of both visits, of the first twice, and of the second twice.
    assert (found.low, found.high) == (2, 52)
    # The same values as visits of their own: more is known.
    assert robust([[value] for value in (1, 2, 3, 4, 100)]).high == 100
    assert robust([[7, 7, 7]]).doubt == 0
    with pytest.raises(ValueError, match="no values"):
        robust([])


def test_drift_is_told_from_noise():
    stream = np.random.default_rng(0)
    times = np.arange(40.0)
    noise = stream.lognormal(0, 0.03, 40)
    assert "steady" in drift(times, 100 * noise).verdict
    found = drift(times, (100 + times) * noise)
    # From 100 to 139 around a median of about 120.
    assert found.trend == pytest.approx(0.33, abs=0.05)
    assert "drifting" in found.verdict
    assert "not known" in drift([1.0], [5.0]).verdict


def test_pages_are_not_in_order_and_no_step_has_one_twice():
    seen = []

    class Recorder(SyntheticEngine):
        def launch(self, step):
            pages = [page for row in step.rows for page in row.pages]
            assert len(set(pages)) == len(pages)
            seen.append(pages)
            return super().launch(step)

    made = sampling(engine=Recorder, points=[Point("decode", (500,) * 4)])
    finish(made.rounds(1))
    assert any(pages != sorted(pages) for pages in seen)


class Held(SyntheticEngine):
    """Is launched in 1 ms; device times contain that unless the device is held for longer."""

    holds = True
    held = 0.0

    def hold(self, seconds):
        self.held = seconds

    def launch(self, step):
        began = time.perf_counter_ns()
        while time.perf_counter_ns() < began + 1_000_000:
            pass
        return super().launch(step)

    def collect(self, handle):
        waited = 0 if self.held > 0.001 else 1_000_000
        outcome = super().collect(handle)
        return replace(outcome, device_ns=outcome.device_ns + waited)


def test_device_time_of_a_held_device_contains_no_launches():
    points = [Point("decode", (100,) * 4), Point("chunk", (), ((0, 32),))]
    made = sampling(engine=Held, points=points)
    finish(made.rounds(1))
    for line in made.run_log.of("visit"):
        point = read(line["point"])
        # A visit's samples are every other step: the decodes have grown by 2, 4 and 6, the held ones by one more.
        assert [sample[0] for sample in line["samples"]] == [2, 4, 6]
        for grown, device, cpu, wall in line["samples"]:
            assert device == TRUE.step(point.to_shape(sum(point.decodes) + (grown + 1) * len(point.decodes)))
            assert cpu is None
            assert wall >= 1_000_000
    assert made.timer.engine.held == 0


def test_errors_are_relative_to_what_was_measured():
    made = sampling(points=[Point("decode", (100,))])
    finish(made.rounds(1))
    points = by_point(made.run_log.lines, "device")
    points["duration_ns"] *= 2
    assert errors(TRUE, points).to_list() == pytest.approx([-0.5], abs=1e-3)
