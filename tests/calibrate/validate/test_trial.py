"""The three layers: what each of them finds, and when nothing can be said."""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from replay_scenarios import scenarios
from sim_stories import engine, job

import slotstep
from calibrate.decoder.engine.synthetic import FakeExecutor, SyntheticEngine
from calibrate.measure.robust import Drift
from calibrate.replay.clock import FakeClock
from calibrate.replay.driver import Driver
from calibrate.replay.host_timing import HostTiming
from calibrate.replay.live import Replayed
from calibrate.validate.experiment import unfit
from calibrate.validate.judge import Judgement, averaged, figures, noise_of, relative, shapes, teacher_forced
from sim.cost.forms import Roofline, Unit
from sim.log.events import Kind
from sim.service.clients import OpenLoop
from slotstep.cli.app import main
from slotstep.validation.experiment import validate
from traces.errors import BadInput

COST = Roofline(
    weight_pass=1e6, per_token=9e3, per_context_token=500, per_chunk_work=20, per_sequence=3e3, per_page=7
)
STORY = {
    "workload": {
        "synthetic": {
            "requests": 60,
            "arrivals": {"poisson": {"rate": 20}},
            "prompt": {"lognormal": {"mean": 60, "cv": 1}},
            "output": {"lognormal": {"mean": 20, "cv": 1}},
        }
    },
    "engine": {"slots": 8, "token_budget": 128, "pages": 400},
    "cost": {"roofline": {"weight_pass": "8ms", "per_token": "100us", "per_context_token": "1us", "host": "1ms"}},
}


class Seen(FakeExecutor):
    """Remembers the shape of every batch."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.shapes = []

    def launch(self, batch):
        self.shapes.append(told(batch))
        return super().launch(batch)


def told(shape):
    names = ("decodes", "context", "longest", "chunks", "chunk_tokens", "double_work", "pages")
    return {name: getattr(shape, name) for name in names}


def tokens(shape):
    return shape["decodes"] + shape["chunk_tokens"]


@given(scenarios(admissions=("optimistic", "ratio"), spares=(0, 0.1, 3)))
def test_the_shapes_of_a_log_are_those_that_were_run(made):
    """But for recomputed single tokens, which the log does not tell from decodes, and pages shared by a cache."""
    clock = FakeClock()
    executor = Seen(COST, clock)
    made = replace(
        made, share=None, modes={key: value for key, value in made.modes.items() if key not in ("evict", "harvest")}
    )
    scheduler = made.scheduler()
    scheduler.state.decoders.watch()
    log = Driver(made.clients(), scheduler, executor, clock).run()
    found = [told(shape) for shape in shapes(log)]
    assert [tokens(each) for each in found] == [tokens(each) for each in executor.shapes]
    if Kind.PREEMPTED not in log.event_table()[:, 1]:
        assert found == executor.shapes
        assert teacher_forced(COST, log)["median_abs"] == 0 if log.steps else True


def test_figures_of_a_run_by_hand():
    # One request of three tokens, steps of 10 ms: first token at 10 ms, the last at 30 ms.
    clock = FakeClock()
    log = Driver(
        OpenLoop([job("a", 3)]),
        engine(slots=1),
        FakeExecutor(Unit(10_000_000), clock),
        clock,
    ).run()
    found = figures(log)
    assert found["busy"] == found["makespan"] == pytest.approx(0.03)
    assert found["ttft_mean"] == pytest.approx(0.01)
    assert found["tpot_p50"] == pytest.approx(0.01)
    assert found["e2e_p99"] == pytest.approx(0.03)
    assert relative({"busy": 0.033}, found)["busy"] == pytest.approx(0.1)


def test_on_the_synthetic_engine_busy_time_is_within_two_percent(tmp_path):
    found, about = validate(slotstep.parse(STORY), "synthetic", folder=tmp_path / "measured")
    judged = found.judgement
    assert judged.verdict == "within"
    assert abs(judged.free["busy"]) < 0.02
    assert abs(judged.forced["total"]) < 0.02
    assert abs(judged.noise["busy"]) < 0.02
    assert found.simulated.ended == 60
    assert about["clock"] == "cpu"
    assert (tmp_path / "measured" / "samples.jsonl").exists()
    with pytest.raises(BadInput, match="expected a new folder"):
        validate(slotstep.parse(STORY), "synthetic", folder=tmp_path / "measured")


def test_a_prediction_of_another_engine_is_beyond(monkeypatch):
    """The negative control: steps that last 1.5 times what was measured between them fail."""
    launch = SyntheticEngine.launch

    def slower(self, step):
        if step.rows and step.rows[0].request < 1 << 40:
            kept, self.cost = self.cost, Slow(self.cost)
            try:
                return launch(self, step)
            finally:
                self.cost = kept
        return launch(self, step)

    monkeypatch.setattr(SyntheticEngine, "launch", slower)
    found, _ = validate(slotstep.parse(STORY), "synthetic")
    assert found.judgement.verdict == "beyond"
    assert found.judgement.forced["total"] == pytest.approx(-1 / 3, abs=0.05)


class Slow:
    def __init__(self, cost):
        self.cost = cost

    def step(self, shape):
        return self.cost.step(shape) * 3 // 2


def test_two_steps_in_flight_are_measured_before_the_replay():
    told = slotstep.parse({**STORY, "engine": {**STORY["engine"], "async_scheduling": True}})
    found, _ = validate(told, "synthetic", tolerance=0.05)
    assert found.judgement.verdict == "within", found.judgement.lines()
    assert abs(found.judgement.free["busy"]) < 0.02


def replayed(busy, contention=1.0):
    clock = FakeClock()
    log = Driver(OpenLoop([job("a", 4)]), engine(slots=1), FakeExecutor(Unit(busy), clock), clock).run()
    return Replayed(log, HostTiming(), array("q", [round(busy * contention)] * 4), array("q", [busy] * 4))


@dataclass
class Fitted:
    """All of a fit that is asked for."""

    drift: Drift


STEADY, DRIFTING = Fitted(Drift(9, 0.01, 0.02)), Fitted(Drift(9, 0.4, 0.02))


@pytest.mark.parametrize(
    ("fitted", "second", "pacing", "reason"),
    [
        (STEADY, replayed(1000), "cpu", None),
        (STEADY, replayed(1150), "cpu", "replays of the same requests differ by 14.0%"),
        (DRIFTING, replayed(1000), "cpu", "drifting"),
        (STEADY, replayed(1000), "wall", "2.00 times as long as their thread worked"),
    ],
)
def test_an_overloaded_host_is_told_from_a_wrong_prediction(fitted, second, pacing, reason):
    found = unfit(fitted, [replayed(5000), second, replayed(1000, contention=2.0)], pacing, 0.2)
    if reason is None:
        assert found == ()
        return
    assert reason in found[0]
    judged = Judgement({**EXACT, "n": 4}, {"busy": 0.9}, {"busy": 0.15}, found, 0.2)
    assert judged.verdict == "not measurable here"
    assert reason in judged.lines()[-1]
    assert judged.told()["reasons"] == list(found)


EXACT = {"n": 400, "median_abs": 0.0, "p90_abs": 0.0, "total": 0.0, "groups": {}}


def test_an_error_below_the_noise_is_not_called_better_than_it():
    judged = Judgement(EXACT, {"busy": 0.001}, {"busy": 0.03}, (), 0.02)
    assert "within the 3.0% by which replays differ" in judged.lines()[1]
    assert judged.allowed == {"busy": 0.06, "group": 0.06}
    assert judged.verdict == "within"
    assert Judgement(EXACT, {"busy": 0.07}, {"busy": 0.03}, (), 0.02).verdict == "beyond"


def test_busy_time_alone_does_not_pass():
    """Busy time, latencies, the sum of all steps and that of each group: one that is wrong suffices."""
    right = {"busy": 0.01, "ttft_mean": 0.04, "tpot_mean": -0.04, "e2e_mean": 0.0, "ttft_p99": 0.5}
    still = dict.fromkeys(right, 0.001)
    assert Judgement(EXACT, right, still, (), 0.03).verdict == "within"
    for key in ("ttft_mean", "tpot_mean", "e2e_mean"):
        found = Judgement(EXACT, {**right, key: -0.06}, still, (), 0.03)
        assert found.exceeded == [f"{key.replace('_', ' ')} -6.0% (allowed 5.0%)"]
        assert found.verdict == "beyond"
    for wrong in ({"total": 0.04}, {"groups": {"chunks, few tokens": -0.021}}):
        assert Judgement({**EXACT, **wrong}, right, still, (), 0.03).verdict == "beyond"


def test_replays_are_compared_with_their_mean():
    assert averaged([{"busy": 2.0}, {"busy": 4.0}]) == {"busy": 3.0}
    assert noise_of([{"busy": 2.0}, {"busy": 4.0}]) == {"busy": pytest.approx(2 / 3)}


def command(*words):
    with pytest.raises(SystemExit) as ended:
        main(["validate", *map(str, words)])
    return ended.value.code


def test_the_command_says_the_layers_and_writes_the_profile(tmp_path, capsys):
    story = tmp_path / "story.yaml"
    story.write_text(json.dumps(STORY))
    out = tmp_path / "out"
    assert command("--replay", "synthetic", "--scenario", story, "--out", out) == 0
    shown = capsys.readouterr().out
    for word in ("teacher-forced", "free-running", "noise", "verdict         within"):
        assert word in shown
    told = json.loads((out / "validation.json").read_text())
    assert told["verdict"] == "within"
    assert told["free_running"]["ttft_mean"] is not None
    words = ["--set", f"cost={{profile: {out / 'profile.yaml'}}}"]
    with pytest.raises(SystemExit) as ended:
        main(["run", str(story), *words, "--json"])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["profile"]["name"] == "profile"


@pytest.mark.slow
def test_a_real_engine_is_measured_between_its_steps_and_judged(tmp_path):
    """How near the prediction is depends on who else uses this host: it is asserted on synthetic engines alone."""
    config = {
        "model_type": "llama", "hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 1024,
        "torch_dtype": "float32",
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    told = slotstep.parse({**STORY, "engine": {**STORY["engine"], "slots": 4}})
    found, about = validate(told, str(tmp_path / "config.json"), rounds=3, device="cpu")
    judged = found.judgement
    assert about["dtype"] == "float32"
    assert {log.ended for log in (found.simulated, *(each.log for each in found.replays))} == {60}
    assert judged.forced["n"] == sum(each.log.steps for each in found.replays)
    assert (judged.verdict == "not measurable here") == bool(judged.unfit)
    assert (judged.verdict == "within") == (not judged.unfit and not judged.exceeded)
