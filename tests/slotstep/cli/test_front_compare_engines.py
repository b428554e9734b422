"""`compare --engines`: the same requests on several engines."""

from __future__ import annotations

import pytest
from command_line import answer, code_of, complaint
from repository import ROOT

BURST = str(ROOT / "examples" / "burst.yaml")


def test_each_engine_serves_the_same_requests_with_its_own_defaults(capsys):
    found = answer(capsys, "compare", BURST, "--engines", "vllm,sglang,trtllm")
    assert [run["preset"] for run in found["runs"]] == ["vllm 0.32.0", "sglang 0.5.23", "trtllm 1.1"]
    assert {run["requests"]["finished"] for run in found["runs"]} == {16}
    assert len({run["tokens"]["output"] for run in found["runs"]}) == 1
    vllm, sglang, trtllm = found["step_seconds"]
    assert sglang["mixed"] == 0
    assert vllm["mixed"] > 0
    assert trtllm["mixed"] > 0
    memory = [run["pages"]["total"] for run in found["runs"]]
    assert memory == [512, 8192, 256]


def test_the_table_says_by_which_decision_they_differ(capsys):
    assert code_of("compare", BURST, "--engines", "vllm,sglang") == 0
    shown = capsys.readouterr().out
    assert "sglang 0.5.23" in shown
    assert "stand" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engines", "vllm,tgi"], "'tgi' is unknown; expected some of vllm, sglang, trtllm"),
        (["--engines", "vllm,vllm"], "vllm is there twice"),
        (["--engines", "vllm", "--profiles", "sglang=h100"], "expected ENGINE=PROFILE with one of vllm"),
    ],
)
def test_what_makes_no_sense_is_refused(capsys, options, message):
    assert message in complaint(capsys, "compare", BURST, *options)


@pytest.mark.parametrize("options", [["--policies", "fcfs", "--profiles", "vllm=h100"], []])
def test_engines_or_policies_and_profiles_only_of_engines(options):
    assert code_of("compare", BURST, *options) == 2
