"""`run --uncertainty` and `capacity --uncertainty`: intervals that follow from the stated spread of the step cost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import answer, code_of, complaint

import slotstep
from calibrate.profiles.profile import profile
from slotstep.experiments.capacity.answer import find
from slotstep.experiments.capacity.content import content_of
from slotstep.experiments.capacity.objective import parse
from slotstep.experiments.capacity.question import Question
from slotstep.experiments.capacity.spread import Spread

REACH = 1.6449
"""The 95th percentile of the standard normal."""


def profiled(folder: Path, **uncertainty: Any) -> str:
    """A profile whose steps all last 10 ms, and are wrong as stated."""
    made = profile(
        {"roofline": {"weight_pass": 1e7}},
        device="H100",
        model={"name": "small"},
        dtype="bfloat16",
        tensor_parallel=2,
        date="2026-01-01",
        method="by hand",
        source="nothing",
        not_included=[],
        uncertainty={**uncertainty, "source": "a story"},
    )
    (folder / "cost.yaml").write_text(made.text())
    return str(folder / "cost.yaml")


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """One request of 100 steps: the first computes its prompt, the others decode."""
    mapping = {
        "workload": {"requests": [{"prompt": 10, "output": 100}]},
        "cost": {"profile": profiled(tmp_path, common=0.1)},
    }
    (tmp_path / "one.yaml").write_text(yaml.safe_dump(mapping))
    return tmp_path / "one.yaml"


def test_a_run_that_is_all_steps_has_the_interval_of_its_steps(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = answer(capsys, "run", scenario)
    found = answer(capsys, "run", scenario, "--uncertainty", "200", "--jobs", "1")
    drawn = found.pop("uncertainty")
    assert found == plain
    assert (drawn["draws"], drawn["share"], drawn["growing"], drawn["source"]) == (200, 0.9, None, "a story")
    e2e = drawn["metrics"]["e2e_s"]["mean"]
    assert e2e["median"] == pytest.approx(1.0, rel=0.01)
    assert math.log(e2e["low"]) == pytest.approx(-0.1 * REACH, rel=0.05)
    assert math.log(e2e["high"]) == pytest.approx(0.1 * REACH, rel=0.05)
    rate = drawn["metrics"]["rates"]["output_tokens_per_s"]
    assert rate["low"] * e2e["high"] == pytest.approx(100, rel=0.02)


def test_prompts_and_decodes_are_wrong_by_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mapping = {
        "workload": {"requests": [{"prompt": 10, "output": 100}]},
        "cost": {"profile": profiled(tmp_path, prompts=0.3, decode_median=2.0)},
    }
    (tmp_path / "one.yaml").write_text(yaml.safe_dump(mapping))
    metrics = answer(capsys, "run", tmp_path / "one.yaml", "--uncertainty", "100", "--jobs", "1")["uncertainty"][
        "metrics"
    ]
    ttft, tpot = metrics["ttft_s"]["mean"], metrics["tpot_s"]["mean"]
    assert math.log(ttft["high"] / 0.01) == pytest.approx(0.3 * REACH, rel=0.1)
    assert tpot["low"] == tpot["high"] == pytest.approx(0.02, rel=1e-6)


def test_the_intervals_are_printed_and_written(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of("run", scenario, "--uncertainty", "10", "--jobs", "1", "--out", tmp_path / "out") == 0
    printed = capsys.readouterr().out
    assert "10 draws of the step cost: a story" in printed
    assert "E2E mean" in printed
    assert (tmp_path / "out" / "uncertainty.json").exists()


def test_a_measured_bias_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    mapping = {
        "workload": {"requests": [{"prompt": 10, "output": 2}]},
        "cost": {"shape": {"model": "llama-3.1-8b", "device": "h100-sxm"}},
    }
    (tmp_path / "shape.yaml").write_text(yaml.safe_dump(mapping))
    assert code_of("run", tmp_path / "shape.yaml", "--uncertainty", "10", "--jobs", "1") == 0
    assert "draws of the step cost: shapes alone, beside" in " ".join(capsys.readouterr().out.split())


def test_what_cannot_be_drawn_is_refused(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "found 3; expected at least 10 draws" in complaint(capsys, "run", scenario, "--uncertainty", "3")
    unit = ("--set", "cost={unit: 1ms}")
    assert "coefficients do not say how wrong they may be" in complaint(
        capsys, "run", scenario, *unit, "--uncertainty", "10"
    )
    groups = ("--set", "cluster={replicas: [{count: 1, cost: {unit: 1ms}}]}")
    assert "--uncertainty draws one for all" in complaint(capsys, "run", scenario, *groups, "--uncertainty", "10")
    assert "--uncertainty 3: expected 0, or at least 10 draws" in complaint(
        capsys, "capacity", scenario, "--uncertainty", "3"
    )


def limit(folder: Path, **uncertainty: Any) -> dict[str, Any]:
    """An engine of one slot whose requests take two steps of 10 ms each, 50 requests/s, at 20 requests/s."""
    return {
        "workload": {
            "synthetic": {"requests": 400, "arrivals": {"poisson": {"rate": 20}}, "prompt": 10, "output": 2}
        },
        "engine": {"slots": 1, "pages": 10},
        "cost": {"profile": profiled(folder, **uncertainty)},
    }


@pytest.mark.slow
def test_the_capacity_of_one_slot_has_the_interval_of_its_steps(tmp_path: Path) -> None:
    question = Question(
        slotstep.parse(limit(tmp_path, common=0.1)),
        objectives=(parse("mean wait < 50ms"),),
        tolerance=0.05,
        seeds=4,
        uncertainty=20,
        jobs=1,
    )
    answers, stretches = find(question)
    content = content_of(question, answers, stretches)
    drawn, at = content["answers"][0]["uncertainty"], content["answers"][0]["at"]
    # Mean wait of an M/D/1 queue: rho s / (2 (1 - rho)) with s = 20 ms. It is 50 ms at rho = 5 / 6, and the rate
    # goes as s to the power of -7 / 6 around that.
    assert drawn["low"] < at < drawn["high"]
    assert math.log(drawn["high"] / drawn["low"]) == pytest.approx(7 / 6 * 2 * 0.1 * REACH, abs=0.2)
    assert drawn["sure"] == drawn["low"]
    assert "(90% interval " in content["sentences"][0]


@pytest.mark.slow
def test_without_draws_an_answer_has_the_slow_end_of_its_steps(tmp_path: Path) -> None:
    question = Question(
        slotstep.parse(limit(tmp_path, common=0.1)),
        objectives=(parse("mean wait < 50ms"),),
        tolerance=0.05,
        seeds=4,
        jobs=1,
    )
    content = content_of(question, *find(question))
    (found,) = content["answers"]
    slow = found["slow_end"]
    assert math.log(slow["decode"]) == math.log(slow["prompts"]) == pytest.approx(0.1 * REACH, rel=1e-3)
    # As above: the rate goes as the service time to the power of -7 / 6.
    assert math.log(found["at"] / slow["at"]) == pytest.approx(7 / 6 * 0.1 * REACH, abs=0.1)
    sampling, model = content["sentences"][-2:]
    assert sampling.startswith("Sampling error, at 95% confidence: ")
    assert model.startswith("Model error: at the slow end of the step cost's interval (95%) steps last 1.18 times")
    assert "at the model's slow end); limited by " in content["sentences"][0]


def test_a_cost_without_an_interval_says_so(tmp_path: Path) -> None:
    mapping = limit(tmp_path) | {"cost": {"affine": {"base": "10ms"}}}
    mapping["workload"]["synthetic"]["requests"] = 50
    question = Question(slotstep.parse(mapping), seeds=4, tolerance=0.3, jobs=1)
    content = content_of(question, *find(question))
    assert content["sentences"][-1] == (
        "Model error: not known; coefficients do not say how wrong they may be. It comes on top."
    )
    assert content["answers"][0]["slow_end"]["at"] is None


@pytest.mark.slow
def test_more_replicas_are_needed_to_be_sure(tmp_path: Path) -> None:
    mapping = limit(tmp_path, common=0.4)
    mapping["workload"]["synthetic"]["arrivals"] = {"poisson": {"rate": 110}}
    question = Question(slotstep.parse(mapping), find="replicas", seeds=4, uncertainty=10, jobs=1)
    answers, stretches = find(question)
    content = content_of(question, answers, stretches)
    (found,) = content["answers"]
    assert found["uncertainty"]["sure"] > found["at"] >= 2
    assert found["devices"] == 2 * found["at"]
    gpus = round(2 * found["uncertainty"]["sure"])
    assert f"replicas fcfs ({found['devices']} GPUs; {gpus} to be 95% sure)" in content["sentences"][0]


def test_draws_without_an_answer_are_the_worst() -> None:
    replicas = Spread((4.0, 5.0, 5.0, 5.0, 6.0, 6.0, 6.0, 7.0, 7.0, None), "")
    assert replicas.failed == 1
    assert replicas.quantile(0.5, many=True) == 6
    assert replicas.sure(many=True) is None
    rates = Spread((None, *map(float, range(1, 40))), "")
    assert rates.sure(many=False) == pytest.approx(1.5)
    assert Spread((None,) * 10, "").sure(many=False) is None
