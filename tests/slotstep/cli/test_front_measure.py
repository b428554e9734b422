"""`slotstep calibrate measure` and `fit`: a record that goes on after a stop, a profile, and refusals in one line."""

from __future__ import annotations

import json
import sys

import pytest

from calibrate.measure.run_log import read_lines
from calibrate.profiles.profile import read
from slotstep.cli.app import main

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 500,
    "max_position_embeddings": 512,
    "torch_dtype": "float32",
}
SMALL = ("--factor", 1.5, "--slots", 4, "--token-budget", 32, "--longest", 128, "--ragged", 4, "--device", "cpu")


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return path


def command(*words):
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", *map(str, words)])
    return ended.value.code


@pytest.mark.slow
def test_measure_goes_on_where_it_stopped_and_fit_makes_a_profile(model, tmp_path, capsys):
    out = tmp_path / "run"
    assert command("measure", "--model", model, "--out", out, "--rounds", 1, "--seconds", 0.1, *SMALL) == 0
    first = read_lines(out)
    assert (
        command("measure", "--model", model, "--out", out, "--rounds", 2, "--seconds", 90, "--extra", 4, *SMALL) == 0
    )
    lines = read_lines(out)
    assert lines[: len(first)] == first
    assert len(lines) > len(first)
    assert [line["kind"] for line in lines].count("ceilings") == 1
    names = {line["name"] for line in lines if line["kind"] == "visit"}
    assert all(sum(line.get("name") == name for line in lines) >= 1 for name in names)
    said = capsys.readouterr().err
    assert "float32" in said
    assert "visits of" in said

    profile = tmp_path / "small.yaml"
    assert command("fit", out, "--out", profile) == 0
    shown = capsys.readouterr().out
    for word in ("decode", "chunk", "mixed", "held_out", "drift", "floor"):
        assert word in shown
    made = read(profile)
    assert made.kind == "table"
    assert made.content["dtype"] == "float32"
    assert made.content["page_size"] == 16
    assert made.range["sequences"] == 4
    points = made.content["details"]["points"]
    assert len(points) == len(names)
    assert all(point["over_floor"] > 0 for point in points)
    assert made.content["details"]["ceilings"]["read_bytes_per_s"] > 1e8
    assert made.cost().step is not None
    assert (
        command("fit", out, "--out", tmp_path / "r.yaml", "--form", "roofline", "--clock", "wall", "--host", "1ms")
        == 0
    )
    assert read(tmp_path / "r.yaml").cost().host >= 1e6


def test_several_page_sizes_are_measured_each_into_its_own_folder(model, tmp_path):
    out = tmp_path / "run"
    words = ["--page-size", 8, "--page-size", 32, "--rounds", 1, "--seconds", 0.1, "--extra", 0]
    assert command("measure", "--model", model, "--out", out, *words, *SMALL) == 0
    found = {folder.name: json.loads((folder / "about.json").read_text())["page_size"] for folder in out.iterdir()}
    assert found == {"page-8": 8, "page-32": 32}


def test_a_folder_of_another_measurement_is_refused(model, tmp_path, capsys):
    out = tmp_path / "run"
    assert command("measure", "--model", model, "--out", out, "--rounds", 1, "--seconds", 0.1, *SMALL) == 0
    assert command("measure", "--model", model, "--out", out, "--rounds", 1, "--seed", 1, *SMALL) == 2
    assert "expected a new folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--model", "tinny"], "did you mean tiny?"),
        (["--model", "tiny", "--memory-fraction", "0.0001"], "room for"),
        (["--model", "tiny", "--longest", "100000"], "max_model_len is 100000"),
        (["--model", "tiny", "--device", "cuda"], "no CUDA GPU"),
        (["--model", "tiny", "--attention", "flashinfer", "--device", "cpu"], "flashinfer"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(tmp_path, capsys, words, complaint):
    if "cuda" in words:
        torch = pytest.importorskip("torch")
        if torch.cuda.is_available():
            pytest.skip("there is a GPU here")
    assert command("measure", *words, "--out", tmp_path / "run") == 2
    said = capsys.readouterr().err.strip()
    assert complaint in said
    assert said.count("\n") == 0


def test_without_torch_nothing_is_measured(tmp_path, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "torch" or name.startswith("calibrate.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert command("measure", "--model", "tiny", "--out", tmp_path / "run") == 2
    assert "needs PyTorch" in capsys.readouterr().err


def test_a_folder_without_a_measurement_is_refused(tmp_path, capsys):
    assert command("fit", tmp_path, "--out", tmp_path / "p.yaml") == 2
    assert "expected a folder" in capsys.readouterr().err
    assert not (tmp_path / "p.yaml").exists()
