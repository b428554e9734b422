"""The verdict at three loads: a cost with one wrong coefficient is rejected at one of them, a right one passes."""

from __future__ import annotations

from array import array
from dataclasses import replace

import numpy as np
import pytest

from calibrate.decoder.engine.synthetic import SyntheticEngine
from calibrate.replay.arrival_order import ByArrival
from calibrate.replay.clock import FakeClock
from calibrate.validate.experiment import Subject, judged, replayed
from calibrate.validate.judge import groups
from calibrate.validate.loads import capacity, three_loads
from sim.cost.forms import Affine, Roofline, Shape
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.numbered import NumberedPool
from sim.policy.base import Policy
from sim.request import SECOND, Request

PAGES, SLOTS = 20_000, 64
TRUE = Roofline(
    weight_pass=5e6, per_token=3e4, per_context_token=120.0, per_chunk_work=12.0, per_sequence=2e5, host=4e6
)
"""Every term is a quarter or more of some steps at one of the loads: the host and the weights of small batches,
context and rows of full ones, tokens and pairs of long prompts.
"""
TOLERANCE = 0.03


def scheduler():
    return Scheduler(Policy(ByArrival()), NumberedPool(PAGES, 16), EngineConfig(slots=SLOTS, token_budget=512))


def lengths(seed=0, count=80):
    stream, sigma = np.random.default_rng(seed), np.sqrt(np.log(2.0))
    prompts, outputs = (
        np.clip(stream.lognormal(np.log(mean) - sigma**2 / 2, sigma, count), 2, most).astype(int).tolist()
        for mean, most in ((1800, 8000), (160, 1000))
    )
    return [Request(str(n), 0, *both) for n, both in enumerate(zip(prompts, outputs, strict=True))]


def replays_at(load, seed, engine_cost=TRUE):
    """The subject of a load, and three replays of it on an engine with 2% of noise in its steps."""
    subject = Subject(load.clients, scheduler, lambda request: array("i", bytes(4 * request.prompt)))
    engine = SyntheticEngine(engine_cost, FakeClock(), PAGES, 16, noise=0.02, seed=seed)
    return subject, [replayed(subject, engine, "cpu", None, 1) for _ in range(3)]


def test_the_capacity_of_an_engine_by_hand():
    # Steps of 10 ms, four slots, and each request is one chunk and nine decodes: 0.1 s, four at a time.
    asked = [Request(str(n), 0, 8, 10) for n in range(80)]
    found = capacity(
        asked,
        lambda: Scheduler(Policy(ByArrival()), NumberedPool(100, 16), EngineConfig(slots=4, token_budget=512)),
        Affine(base=1e7),
    )
    assert found == pytest.approx(40, rel=0.1)


def test_the_loads_are_a_quarter_and_85_percent_of_the_capacity_and_a_closed_loop():
    asked = lengths()
    light, heavy, closed = three_loads(asked, scheduler, TRUE, 64, seed=1)
    most = capacity(asked, scheduler, TRUE)
    for load, share in ((light, 0.25), (heavy, 0.85)):
        sent = list(load.clients().requests)
        assert [(each.prompt, each.output) for each in sent] == [(each.prompt, each.output) for each in asked]
        # 80 exponential gaps are known to 1/sqrt(80), 11%.
        assert len(sent) / sent[-1].arrival * SECOND == pytest.approx(share * most, rel=0.35)
    assert closed.clients().clients == 64


def test_groups_are_chosen_by_the_shapes_of_steps():
    made = []
    for number in range(160):
        shape = Shape()
        shape.decodes, shape.context = 1 + number // 80, 100 * number
        made.append(shape)
    found = groups(made)
    assert set(found) == {"decodes, little context", "decodes, much context", "decodes, many rows"}
    assert np.flatnonzero(found["decodes, much context"]).tolist() == list(range(120, 160))
    assert np.flatnonzero(found["decodes, little context"]).tolist() == list(range(40))
    assert np.flatnonzero(found["decodes, many rows"]).tolist() == list(range(80, 160))


def test_fewer_than_three_replays_are_refused():
    light = three_loads(lengths(count=8), scheduler, TRUE, 64, seed=1)[0]
    subject, replays = replays_at(light, 1)
    with pytest.raises(ValueError, match="2 replays; expected at least 3"):
        judged(subject, TRUE, replays[:2], TOLERANCE)


@pytest.mark.slow
def test_a_cost_that_is_10_percent_wrong_in_one_coefficient_is_rejected_at_one_of_the_loads():
    at_loads = [replays_at(load, seed=3) for load in three_loads(lengths(), scheduler, TRUE, 64, seed=7)]
    for key in ("weight_pass", "per_token", "per_context_token", "per_chunk_work", "per_sequence", "host"):
        for factor in (0.9, 1.1):
            wrong = replace(TRUE, **{key: factor * getattr(TRUE, key)})
            verdicts = [judged(*(subject, wrong, replays), TOLERANCE)[1] for subject, replays in at_loads]
            assert any(found.verdict == "beyond" for found in verdicts), (key, factor)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_the_right_cost_passes_at_every_load(seed):
    for load in three_loads(lengths(seed, count=60), scheduler, TRUE, 64, seed=seed):
        subject, replays = replays_at(load, seed)
        found = judged(subject, TRUE, replays, TOLERANCE)[1]
        assert found.verdict == "within", (load.name, found.exceeded)
        assert max(found.allowed.values()) < 0.08
