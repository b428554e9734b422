"""The script for a GPU, rehearsed on a CPU with the packages alone that a GPU machine has."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from array import array
from dataclasses import replace

import pytest
import torch
from repository import ROOT
from sim_stories import engine, job

from calibrate.decoder.engine.synthetic import FakeExecutor
from calibrate.gpu.check import EAGER, GRAPHS, TORCH, engine_ways, fitted_way
from calibrate.gpu.config import FULL, anchor, requests
from calibrate.gpu.correctness import check_engine
from calibrate.gpu.gpu_check import STAGES, exit_code
from calibrate.gpu.summary import markdown
from calibrate.gpu.validation import host_at
from calibrate.measure.points import Limits
from calibrate.profiles.profile import read
from calibrate.replay.clock import FakeClock
from calibrate.replay.driver import Driver
from calibrate.replay.host_timing import HostTiming
from calibrate.replay.live import Replayed
from sim.cost.forms import Unit
from sim.memory.numbered import NumberedPool
from sim.service.clients import OpenLoop

SCRIPT = ROOT / "calibrate" / "gpu" / "gpu_check.sh"
THERE = {"numpy", "pandas", "scipy", "pyyaml", "matplotlib"}  # what a GPU machine has of our dependencies, with torch
MODULES = {"prometheus-client": "prometheus_client"}  # by the name of the package, where it is another
NOT_THERE = ["slotstep", "mypy_extensions"]


def not_there():
    """The modules that a GPU machine lacks: slotstep, the compiler's mark, and our dependencies but for THERE."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split("[<>=]", dependency)[0] for dependency in project["dependencies"]}
    assert names > THERE
    return [*NOT_THERE, *sorted(MODULES.get(name, name) for name in names - THERE)]


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory):
    """The script's output folder, its words and its exit code; run where only what a GPU machine has is there."""
    blocked = tmp_path_factory.mktemp("blocked")
    block = f"import sys\nsys.modules.update(dict.fromkeys({not_there()}))\n"
    (blocked / "usercustomize.py").write_text(block)
    (blocked / "sitecustomize.py").write_text(block)
    out = tmp_path_factory.mktemp("gpu") / "out"
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(blocked)}
    for package in not_there():
        refused = subprocess.run([sys.executable, "-c", f"import {package}"], env=environment, capture_output=True)
        assert refused.returncode != 0
    ended = subprocess.run(
        ["sh", SCRIPT, out, "--scale", "tiny", "--seconds", "600"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return out, ended


@pytest.mark.slow
def test_every_stage_of_the_rehearsal_ends_and_writes_what_it_found(rehearsal):
    out, ended = rehearsal
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads((out / "results.json").read_text())
    stages = ("machine", "correctness", "peaks", "kernels", "steps", "fit", "validation")
    assert list(found["stages"]) == list(stages)
    assert all(found[name] for name in stages)
    assert {check["passed"] for check in found["correctness"]["checks"]} <= {True, None}
    assert any("attention torch" in check["check"] for check in found["correctness"]["checks"])
    triton = [check for check in found["correctness"]["checks"] if check["check"].startswith("attention triton")]
    assert all(check["passed"] or "cannot interpret kernels with numpy" in check["why"] for check in triton)
    assert all(value > 1e8 for key, value in found["peaks"].items() if key.endswith("_per_s"))
    assert [row["product"] for row in found["kernels"]["products"]] == ["qkv", "out", "gate_up", "down", "head"]
    loads = found["validation"]["loads"]
    assert [load["load"].split(" of ")[0] for load in loads] == [
        "open loop at 25%",
        "open loop at 85%",
        "closed loop",
    ]
    assert {load["verdict"] for load in loads} == {"within"}
    assert found["fit"]["anchor"]["over_floor"] > 1
    assert read(out / "profile.yaml").kind == "table"
    assert (out / "fit.png").read_bytes().startswith(b"\x89PNG")
    summary = (out / "summary.md").read_text()
    assert "| correctness checks passed |" in summary
    assert "FAILED" not in summary
    assert summary.strip() in ended.stdout
    with tarfile.open(out / "files.tar.gz") as archive:
        assert {"profile.yaml", "fit.png", "validation.log"} <= set(archive.getnames())


def stages_of(**failed):
    names = [stage.name for stage in STAGES]
    return {
        name: {
            "seconds": 1.0,
            "way": None if name in failed else "",
            "failed": {"": why} if (why := failed.get(name)) else {},
        }
        for name in names
    }


def test_the_summary_says_what_failed_and_what_is_missing():
    stages = stages_of(fit="exit code 1: ValueError: no", validation=None)
    said = markdown(
        {"correctness": {"checks": [{"check": "attention x", "passed": False}]}, "stages": stages}, (64, 2048), 5.0
    )
    assert "0 of 1" in said
    assert "| attention x | FAILED |" in said
    assert "- FAILED fit: exit code 1: ValueError: no" in said
    assert "- validation: not run" in said
    assert "verdict" not in said


def test_the_exit_code_is_that_of_checks_stages_and_verdicts():
    passed = {"stages": stages_of(), "correctness": {"checks": [{"passed": True}, {"passed": None}]}}
    assert exit_code(passed) == 0
    for verdict, code in (("within", 0), ("beyond", 1), ("not measurable here", 3)):
        loads = [{"verdict": "within"}, {"verdict": verdict}]
        assert exit_code({**passed, "validation": {"loads": loads}}) == code
    assert exit_code({**passed, "correctness": {"checks": [{"passed": False}]}}) == 1
    assert exit_code({**passed, "stages": stages_of(steps="killed by signal 9")}) == 1


def test_an_engine_is_opened_without_triton_where_a_check_of_it_failed():
    assert engine_ways({}) == (GRAPHS, EAGER, TORCH)
    failed = {"correctness": {"checks": [{"check": "attention triton, bfloat16", "passed": False}]}}
    assert engine_ways(failed) == (TORCH,)
    assert fitted_way({"stages": {"steps": {"way": EAGER}}}) == (EAGER,)
    assert fitted_way({"stages": {"steps": {"way": None}}}) == ()


def test_host_time_is_that_of_full_batches():
    # Two requests: one is alone for two steps, then both decode for three, then the first is alone again.
    clock = FakeClock()
    scheduler = engine(slots=2)
    log = Driver(
        OpenLoop([job("a", 8), replace(job("b", 4), arrival=15)]), scheduler, FakeExecutor(Unit(10), clock), clock
    ).run()
    timing = HostTiming()
    for step in range(log.steps):
        timing.planned(1000 * step, 10)
        timing.committed(1)
    found = host_at(Replayed(log, timing, array("q"), array("q")), 2)
    full = [step for step in range(log.steps) if decoding(log)[step] == 2]
    assert found["steps"] == len(full) == 3
    assert found["planning"] == pytest.approx(1e-6 * full[1])
    assert found["all"] == pytest.approx(found["planning"] + 11e-9)
    assert host_at(Replayed(log, timing, array("q"), array("q")), 7) == {}


def decoding(log):
    runs = log.run_table()
    return [decode if decode == tokens else -1 for decode, tokens, steps in
            zip(runs["decode"], runs["tokens"], runs["steps"], strict=True) for _ in range(steps)]  # fmt: skip


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
    asked = requests(FULL, seed=0)
    assert asked == requests(FULL, seed=0) != requests(FULL, seed=1)
    assert all(request.prompt + request.output <= FULL.max_model_len for request in asked)
    limits = Limits(FULL.slots, FULL.token_budget, FULL.max_model_len, 60_000, 16)
    assert limits.allow(anchor(FULL))
    assert sum(stage.limit for stage in STAGES[:3]) < FULL.seconds < 480


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
