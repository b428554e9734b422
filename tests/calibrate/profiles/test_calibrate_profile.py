"""Profiles: what is read is what was written, a wrong one is refused in one line, and content is what counts."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slotstep
from calibrate.profiles.profile import Profile, named, parse, profile, read, shipped
from calibrate.profiles.schema import digest
from sim.cost.forms import Roofline
from sim.cost.shape import Shape
from slotstep import BadInput

ABOUT: dict[str, Any] = {
    "device": "NVIDIA H100 80GB HBM3",
    "memory": 85899345920,
    "software": {"vllm": "0.23.0"},
    "model": {"name": "tiny", "layers": 4},
    "dtype": "bfloat16",
    "tensor_parallel": 1,
    "date": "2026-11-29",
    "method": "by hand",
    "residuals": {"mean_relative": 0.02},
    "source": "this test",
    "not_included": ["host time"],
}
CURVE = {"roofline": {"weight_pass": 1e6, "per_token": 2500.5, "host": 1000}}


def made(**changes: Any) -> Profile:
    return profile(**{"curve": CURVE, **ABOUT, **changes})


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(made().text())
    assert read(file).content == made().content
    assert read(file).cost() == Roofline(weight_pass=1e6, per_token=2500.5, host=1000)


def test_a_profile_is_its_content_not_its_name_or_layout(tmp_path: Path) -> None:
    text = made().text()
    other = parse("# a remark\n" + text.replace("1000000.0", "1000000"), "other", "other")
    assert other.sha256 == made().sha256
    assert made(curve={"roofline": {"weight_pass": 1e6}}).sha256 != made().sha256
    assert made(driver="550.1").sha256 != made().sha256


def test_the_digest_is_that_of_canonical_json() -> None:
    # printf '{"a":[1,2.5],"b":"x"}' | sha256sum
    assert digest({"b": "x", "a": [1.0, 2.5]}) == "5cefae54a95b31dc660d6cbbb2198f0811fc70ee37b1cc85b1989870cd293ffb"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"devise": "H100"}, "devise: unknown key; did you mean device?"),
        ({"curve": {"rooflin": {}}}, "curve.rooflin: unknown kind of curve; did you mean roofline?"),
        (
            {"curve": {"roofline": {"weightpass": 1}}},
            "curve.roofline.weightpass: unknown key; did you mean weight_pass?",
        ),
        ({"curve": {"roofline": {"host": -1.0}}}, "curve.roofline.host is -1.0 ns; expected 0 or more"),
        ({"curve": {"roofline": {"host": "1ms"}}}, "curve.roofline.host is '1ms'; expected a number of nanoseconds"),
        ({"curve": {}}, "curve: found {}; expected one of"),
        ({"curve": {"roofline": {"graph_sizes": 5}}}, "curve.roofline.graph_sizes is 5; expected a list"),
        ({"curve": {"roofline": {"graph_sizes": [2, 1]}}}, "curve.roofline.graph_sizes is [2, 1]; expected whole"),
        ({"curve": {"table": {"dense": {"at": ["a"], "ns": [1]}}}}, "curve.table.decode: missing"),
        ({"details": {"held_out": float("nan")}}, "details: "),
        ({"details": {"when": datetime.date(2026, 11, 29)}}, "details: "),
        ({"source": None}, "source: found nothing; expected what it was made of"),
        ({"model": {"layers": 4}}, "model.name: missing"),
        ({"memory": "80GB"}, "memory: found '80GB'; expected a whole number from 1"),
        ({"range": {"batch": 4}}, "range.batch: unknown key"),
        ({"residuals": {"mean": "small"}}, "residuals.mean: found 'small'; expected a number from 0"),
        ({"not_included": "host"}, "not_included: found 'host'; expected a list"),
    ],
)
def test_a_wrong_profile_is_refused_in_one_line(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*$") as refused:
        made(**change)
    assert str(refused.value).startswith(complaint)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("format: 1\nformat: 1\n", "p.yaml: invalid YAML: the key format is given twice"),
        ("[1, 2]", "p.yaml: found [1, 2]; expected a mapping"),
        ("format: 1", "p.yaml: device: missing; expected its name"),
        ("a: [", "p.yaml: invalid YAML"),
        (b"\xff\xfe\x00", "p.yaml: "),
    ],
)
def test_a_file_that_is_no_profile_is_named(text: str | bytes, complaint: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*$") as refused:
        parse(text, "p", "p.yaml")
    assert str(refused.value).startswith(complaint)


@given(st.dictionaries(st.sampled_from(["weight_pass", "per_token", "host"]), st.floats(0, 1e12)))
def test_every_coefficient_survives_the_file(coefficients: dict[str, float]) -> None:
    before = made(curve={"roofline": coefficients})
    after = parse(before.text(), "again", "again")
    assert after.sha256 == before.sha256
    batch = Shape()
    batch.decodes = 3
    assert after.cost().step(batch) == before.cost().step(batch)


def scenario(cost: dict[str, Any], folder: Path) -> slotstep.Scenario:
    asked = {"requests": [{"prompt": 8, "output": 3}]}
    return slotstep.parse({"workload": asked, "cost": cost}, folder=folder)


def test_a_scenario_on_a_profile_names_its_content(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(made().text())
    result = slotstep.run(scenario({"profile": "mine.yaml"}, tmp_path))
    assert result.summary["profile"]["sha256"] == made().sha256
    # 8 tokens, then one and one: 1 ms for the weights (the arithmetic rounds away), 1 us of the host
    assert [int(each) for each in result.log.step_durations()] == [1001000] * 3
    assert slotstep.resolved(result.scenario)["cost"] == {
        "profile": str(tmp_path / "mine.yaml"),
        "sha256": made().sha256,
    }


def test_the_host_term_of_a_profile_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(made().text())
    result = slotstep.run(scenario({"profile": "mine.yaml", "host": "3ms"}, tmp_path))
    assert [int(each) for each in result.log.step_durations()] == [4000000] * 3


def test_another_content_under_the_same_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(made().text())
    loaded = scenario({"profile": "mine.yaml"}, tmp_path)
    (tmp_path / "mine.yaml").write_text(made(driver="550.1").text())
    with pytest.raises(BadInput, match=r"cost\.sha256: found .*; the content of .*mine\.yaml has "):
        slotstep.run(loaded)


@pytest.mark.parametrize(
    ("cost", "complaint"),
    [
        ({"profile": "absent.yaml"}, r"cost\.profile: .*absent\.yaml: No such file"),
        ({"profile": "no-such-gpu"}, r"cost\.profile: no-such-gpu: no profile of that name"),
        ({"unit": "1ms", "host": "1ms"}, r"cost: host needs a profile or a shape"),
        ({"profile": "mine.yaml", "unit": "1ms"}, r"cost: found unit and profile; expected one of"),
    ],
)
def test_a_cost_that_is_none_is_refused(cost: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=complaint):
        scenario(cost, tmp_path)


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_profile_is_one(name: str) -> None:
    found = named(name)
    assert found.content["residuals"]
    assert found.content["licence"]
    assert found.content["range"]
    assert found.cost().step(Shape()) >= 1


def test_a_result_says_how_many_steps_lie_beyond_what_was_measured(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(made(range={"tokens": 7, "context": 100}).text())
    result = slotstep.run(scenario({"profile": "mine.yaml"}, tmp_path))
    assert result.summary["profile"]["extrapolated"] == {"any": 1 / 3, "tokens": 1 / 3, "context": 0.0}
    assert slotstep.run(scenario({"affine": {"base": "1ms"}}, tmp_path)).summary["profile"] is None
