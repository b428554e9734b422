"""The script for a GPU, rehearsed on a CPU where neither SimPy nor pydantic can be imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from array import array

import pytest
import torch
from repository import ROOT

from calibrate.gpu.config import FULL, TINY, anchor, requests
from calibrate.gpu.correctness import check_attention, check_engine
from calibrate.gpu.gpu_check import GpuCheck
from calibrate.gpu.summary import markdown
from calibrate.measure.points import Limits, grid
from calibrate.profiles.profile import read
from sim.memory.numbered import NumberedPool

SCRIPT = ROOT / "calibrate" / "gpu" / "gpu_check.sh"
BLOCK = "import sys\nsys.modules.update(simpy=None, pydantic=None, slotstep=None)\n"


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory):
    """The script's output folder, its words and its exit code; run where SimPy and pydantic are not there."""
    blocked = tmp_path_factory.mktemp("blocked")
    (blocked / "usercustomize.py").write_text(BLOCK)
    (blocked / "sitecustomize.py").write_text(BLOCK)
    out = tmp_path_factory.mktemp("gpu") / "out"
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(blocked)}
    for package in ("simpy", "pydantic"):
        refused = subprocess.run([sys.executable, "-c", f"import {package}"], env=environment, capture_output=True)
        assert refused.returncode != 0
    ended = subprocess.run(
        ["sh", SCRIPT, out, "--scale", "tiny"], env=environment, capture_output=True, text=True, check=False
    )
    return out, ended


@pytest.mark.slow
def test_every_stage_of_the_rehearsal_ends_and_writes_what_it_found(rehearsal):
    out, ended = rehearsal
    assert ended.returncode == 0, ended.stdout + ended.stderr
    stages = ("machine", "correctness", "ceilings", "kernels", "steps", "fit", "validation")
    found = {name: json.loads((out / f"{name}.json").read_text()) for name in stages}
    assert all(found.values())
    assert not list(out.glob("*.error.txt"))
    assert {check["passed"] for check in found["correctness"]} <= {True, None}
    assert next(check["check"] for check in found["correctness"]).startswith("attention torch")
    assert any("triton" in check["check"] and check["passed"] for check in found["correctness"])
    assert all(value > 1e8 for value in found["ceilings"].values())
    assert found["validation"]["verdict"] in ("within", "beyond", "not measurable here")
    assert found["fit"]["anchor"]["over_floor"] > 1
    assert read(out / "profile.yaml").kind == "table"
    assert (out / "fit.png").read_bytes().startswith(b"\x89PNG")
    summary = (out / "summary.md").read_text()
    assert "| correctness checks passed |" in summary
    assert "verdict" in summary
    assert summary.strip() in ended.stdout


def test_the_summary_says_what_failed_and_what_is_missing():
    said = markdown(
        {"correctness": [{"check": "attention x", "passed": False}]}, (64, 2048), ["fit: ValueError: no"], 5.0
    )
    assert "0 of 1" in said
    assert "| attention x | FAILED |" in said
    assert "- broke: fit: ValueError: no" in said
    assert "verdict" not in said


def test_a_stage_that_breaks_is_told_and_the_next_one_goes_on(tmp_path):
    check = GpuCheck(tmp_path, TINY, None)
    assert check.stage("one", lambda: 1 // 0) is None
    assert check.stage("two", lambda: [1]) == [1]
    assert not check.passed
    assert "ZeroDivisionError" in (tmp_path / "one.error.txt").read_text()
    assert "broke: one" in (tmp_path / "summary.md").read_text()
    assert json.loads((tmp_path / "two.json").read_text()) == [1]


def test_a_wrong_page_is_noticed_and_a_right_one_is_not():
    check = check_attention("torch", torch.device("cpu"), "float32", 1)
    assert check["passed"]
    assert check["error"] < 1e-6 < 0.01 < check["error_with_a_wrong_page"]


def test_an_engine_that_reads_a_wrong_page_gives_other_tokens(monkeypatch):
    """The negative control: one page of every preempted request exchanged for a neighbour."""
    table = NumberedPool.table

    def wrong(self, seq, positions):
        found = table(self, seq, positions)
        return found if self.pages == 100 else array("i", [found[0] ^ 1, *found[1:]])

    monkeypatch.setattr(NumberedPool, "table", wrong)
    preempted, swapped, shared = check_engine("cpu")
    assert not preempted["passed"]
    assert not swapped["passed"]
    assert shared["passed"]


def test_the_full_scale_is_one_that_a_device_can_take():
    asked = requests(FULL)
    assert asked == requests(FULL)
    assert all(request.prompt + request.output <= FULL.max_model_len for request in asked)
    assert [request.arrival for request in asked] == sorted(request.arrival for request in asked)
    limits = Limits(FULL.slots, FULL.token_budget, FULL.max_model_len, 60_000, 16)
    assert limits.allow(anchor(FULL))
    assert 40 <= len(grid(limits)) <= 90


def test_without_a_gpu_the_full_scale_is_refused_in_one_line(tmp_path, capsys):
    from calibrate.gpu.gpu_check import main

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert main(["--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err.strip()
    assert "no CUDA GPU" in said
    assert said.count("\n") == 0
    (tmp_path / "file").write_text("")
    assert main(["--out", str(tmp_path), "--scale", "tiny"]) == 2
    assert "not empty" in capsys.readouterr().err
