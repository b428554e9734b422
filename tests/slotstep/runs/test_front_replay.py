"""`slotstep replay`: a scenario on an engine, its files, and every reason why there is none, in one line."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import slotstep
from slotstep.cli.app import main
from slotstep.runs.engine_replay import opened, run
from slotstep.runs.workload import requests
from traces.errors import BadInput

STORY = {
    "workload": {
        "synthetic": {
            "requests": 30,
            "arrivals": {"poisson": {"rate": 20}},
            "prompt": {"lognormal": {"mean": 60, "cv": 1}},
            "output": {"lognormal": {"mean": 20, "cv": 1}},
        }
    },
    "engine": {"slots": 8, "token_budget": 256, "pages": 400},
    "cost": {"roofline": {"weight_pass": "8ms", "per_token": "40us", "per_context_token": "100ns"}},
}


def parsed(**sections):
    return slotstep.parse({**STORY, **{key: STORY.get(key, {}) | value for key, value in sections.items()}})


@pytest.fixture
def story(tmp_path):
    path = tmp_path / "story.yaml"
    path.write_text(json.dumps(STORY))
    return path


def command(*words):
    with pytest.raises(SystemExit) as ended:
        main(["replay", *map(str, words)])
    return ended.value.code


@pytest.mark.parametrize("preset", [{}, {"preset": "vllm", "slots": 8, "pages": 22}])
def test_without_noise_the_synthetic_engine_gives_the_simulators_log(preset, monkeypatch):
    """The engine preset too: a cache, steps planned ahead, and here so few pages that somebody is preempted."""
    monkeypatch.setattr("slotstep.runs.engine_replay.NOISE", 0.0)
    told = slotstep.parse({**STORY, "engine": preset or STORY["engine"]})
    with opened(told, "synthetic", requests(told)) as device:
        result, _ = run(told, device)
    simulated = slotstep.run(told)
    assert result.log.sha256() == simulated.log.sha256()
    assert result.log.events == simulated.log.events
    assert (simulated.summary["preemptions"] > 0) == bool(preset)


@pytest.mark.slow
def test_the_command_writes_what_a_run_writes_and_its_pace(story, tmp_path, capsys):
    out = tmp_path / "out"
    assert command(story, "--model", "synthetic", "--out", out, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["requests"]["finished"] == 30
    assert printed["replay"]["lateness_s"]["n"] == 30
    assert printed["replay"]["scheduling_and_bookkeeping_s"]["n"] == printed["steps"]
    written = {path.name for path in out.iterdir()}
    assert {"summary.json", "requests.parquet", "steps.parquet", "timeline.png", "replay.json"} <= written
    assert len(pd.read_parquet(out / "steps.parquet")) == printed["steps"]


def test_a_real_model_serves_every_request(story, capsys):
    words = ["--model", "tiny", "--clock", "cpu", "--set", "workload.first=4"]
    assert command(story, *words) == 0
    shown = capsys.readouterr().out
    assert "4 finished" in shown
    assert "scheduling and bookkeeping" in shown
    assert "tiny on " in shown


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--model", "tinny"], "tinny: unknown, and no such file; did you mean tiny?"),
        (["--model", "tiny", "--device", "cuda"], "no CUDA GPU"),
        (["--model", "tiny", "--memory-fraction", "0.0001"], "room for"),
        (["--model", "tiny", "--set", "cluster.replicas=2"], "replay expects 1"),
        (["--model", "tiny", "--set", "engine.batching=static"], "replay expects continuous"),
        (["--model", "tiny", "--set", "engine.memory=contiguous"], "replay expects paged"),
        (["--model", "tiny", "--set", "workload.max_output=9000"], "max_model_len is"),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_one_line(story, capsys, words, complaint):
    if "cuda" in words:
        torch = pytest.importorskip("torch")
        if torch.cuda.is_available():
            pytest.skip("there is a GPU here")
    assert command(story, *words) == 2
    said = capsys.readouterr().err.strip()
    assert complaint in said
    assert said.count("\n") == 0


def test_without_torch_a_model_is_refused_in_one_line(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    told = parsed()
    with pytest.raises(BadInput, match="needs PyTorch"), opened(told, "tiny", requests(told)):
        pass
