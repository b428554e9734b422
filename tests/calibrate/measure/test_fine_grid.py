"""The grid for captured batches: what is in it, and that a cost is known from it where it was coarse before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrate.decoder.engine.synthetic import SyntheticEngine
from calibrate.fit.table_fit import predicted, tabulate
from calibrate.measure.fine_grid import fine_grid, stratified
from calibrate.measure.frame import by_point
from calibrate.measure.points import Limits, Point, held_out
from calibrate.measure.run_log import RunLog
from calibrate.measure.sampling_plan import SamplingPlan
from calibrate.measure.step_timer import StepTimer
from calibrate.replay.clock import FakeClock
from sim.cost.forms import Roofline
from sim.cost.table import table

LIMITS = Limits(batch=128, tokens=2048, max_model_len=8192, pages=60_000, page_size=16)
BATCHES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)
SMOOTH = Roofline(weight_pass=3.6e6, per_token=1.8e4, per_context_token=30.0, per_chunk_work=2.0, host=2e5)


def read_of(point):
    return sum(start for start, _ in point.rows)


def test_every_captured_batch_is_measured_and_every_kind_of_mixed_step():
    points = fine_grid(LIMITS, BATCHES)
    assert 120 <= len(points) <= 140
    assert all(LIMITS.allow(point) for point in points)
    assert {len(point.decodes) for point in points if point.kind == "decode"} == set(BATCHES)
    assert len({point.chunks[0][1] for point in points if point.kind == "chunk"}) == 14
    mixed = [point for point in points if point.kind == "mixed" and point.decodes]
    assert len({len(point.decodes) for point in mixed}) == 4
    assert sum(len(point.chunks) == 2 for point in points) >= 4


def test_held_out_points_read_as_often_much_as_little():
    points = stratified(LIMITS, 40, seed=0)
    assert len(set(points)) == 40
    # 15 GB of weights are 115,000 positions of 131 kB: without strata nearly all read less than a fiftieth of it.
    assert sum(read_of(point) < 2300 for point in held_out(LIMITS, 40, seed=0)) > 20
    assert sum(read_of(point) < 2300 for point in points) < 10
    assert sum(read_of(point) > 23_000 for point in points) > 8
    assert not {point.name for point in points} & {point.name for point in fine_grid(LIMITS, BATCHES)}


def table_of(cost):
    engine = SyntheticEngine(cost, FakeClock(), LIMITS.pages, 16, max_model_len=8192)
    run_log = RunLog(None, {})
    points = fine_grid(LIMITS, BATCHES)
    plan = SamplingPlan(
        StepTimer(engine, 100, 0), run_log, points, [], control=points[0], limits=LIMITS, steps=1, every=1000
    )
    for _ in plan.rounds(1):
        pass
    return table(tabulate(by_point(run_log.lines, "device")))


@pytest.mark.slow
def test_a_smooth_cost_is_known_within_a_percent_between_the_sizes_of_chunks():
    found = table_of(SMOOTH)
    for size in (48, 80, 112, 160, 224, 320, 448, 640, 896, 1152, 1408, 1792):
        for start in (0, 500, 4000):
            shape = Point("chunk", (), ((start, size),)).to_shape()
            assert found.step(shape) == pytest.approx(SMOOTH.step(shape), rel=0.012), (size, start)


class Interfering(Roofline):
    """Decodes read their context 1.5 times as slowly beside a chunk."""

    def slope(self, shape):
        return super().slope(shape) * (1.5 if shape.chunks else 1.0)


@pytest.mark.slow
def test_decodes_that_are_slower_beside_a_chunk_are_found_out():
    given = {name: getattr(SMOOTH, name) for name in ("weight_pass", "per_token", "per_context_token", "host")}
    found = table_of(Interfering(**given))
    for batch in (8, 32, 64):
        for chunks, factor in (((), 1.0), (((0, 700),), 1.5)):
            less, more = (Point("mixed", (context,) * batch, chunks).to_shape() for context in (500, 1500))
            rise = (found.step(more) - found.step(less)) / (1000 * batch * SMOOTH.per_context_token)
            assert rise == pytest.approx(factor, rel=0.06), (batch, chunks)
    even = table_of(replace(SMOOTH, per_chunk_work=0.0))
    off = np.abs(
        [
            even.step(shape) / SMOOTH.step(shape) - 1
            for shape in (Point("mixed", (900,) * batch, ((0, 300),)).to_shape() for batch in (3, 20, 70))
        ]
    )
    assert off.max() < 0.03


def test_predictions_are_of_the_measured_context():
    points = [Point("decode", (16,) * 2)]
    assert predicted(SMOOTH, by_point([visit(points[0])], "device"))[0] == SMOOTH.step(points[0].to_shape())


def visit(point):
    return {
        "kind": "visit", "name": point.name, "round": 0, "held_out": False, "point": point.written(),
        "samples": [[0, 5, None, 6]],
    }  # fmt: skip
