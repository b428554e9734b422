"""The commands that make profiles without a run, and list what there is, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibrate.profiles.profile import named, read, shipped
from slotstep.cli.app import main

TABLES = "profiles/llmservingsim/RTX4090__Llama-3.1-8B__tp1"


def call(*arguments: str) -> int:
    """Run the command line; the code it exits with."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return int(end.value.code or 0)


def test_operators_become_a_profile(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.yaml"
    about = ["--about", "device=RTX 4090", "--about", "dtype=bfloat16", "--source", "published tables"]
    command = ["calibrate", "from-operators", str(data / TABLES), "--model", "llama-3.1-8b", "--out", str(out)]
    assert call(*command, *about, "--multiprocessors", "128") == 0
    made = read(out)
    assert made.kind == "table"
    assert (made.content["device"], made.content["source"]) == ("RTX 4090", "published tables")
    assert made.content["curve"].keys() == named("rtx4090-llama-3.1-8b").content["curve"].keys()
    assert made.sha256[:12] in capsys.readouterr().out
    out.unlink()
    assert call(*command) == 2
    assert "--about device=... --about dtype=..." in capsys.readouterr().err
    assert not out.exists()


def test_shapes_become_a_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.yaml"
    command = ["calibrate", "from-shapes", "--model", "mixtral-8x7b", "--device", "h100-sxm", "--out", str(out)]
    assert call(*command) == 2
    assert "mixtral-8x7b in bfloat16 does not fit" in capsys.readouterr().err
    assert not out.exists()
    assert call(*command, "--tensor-parallel", "2", "--host", "0.8ms", "--efficiency", "weights=0.9") == 0
    made = read(out)
    assert made.content["curve"]["table"]["host"] == 800000
    assert made.content["details"]["efficiency"]["weights"] == 0.9
    assert call(*command, "--tensor-parallel", "2", "--efficiency", "weights=most") == 2
    assert "efficiency.weights is 'most'; expected a number above 0 and up to 1" in capsys.readouterr().err
    assert call(*command, "--efficiency", "weight=0.9") == 2
    assert "--efficiency weight: unknown key; did you mean weights?" in capsys.readouterr().err


def test_the_pages_that_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("pages", "--model", "llama-3.1-8b", "--device", "h100-sxm", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["page_bytes"] == 16 * 131072
    assert found["pages"] == int(
        (found["limit"] - found["weights"] - found["activations"] - found["graphs"] - found["other"]) // (16 * 131072)
    )
    assert call("pages", "--model", "llama-3.1-8b", "--device", "h100-sxm", "--graphs", "1GiB") == 0
    assert f"engine.pages: {found['pages'] - 512} " in capsys.readouterr().out
    assert call("pages", "--model", "llama-3.1-70b", "--device", "h100-sxm") == 2
    assert "does not fit" in capsys.readouterr().err
    assert call("pages", "--model", "llama-3.1-8b", "--device", "h100", "--graphs", "much") == 2


def test_pages_are_of_heads_that_can_be_dealt_out(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["pages", "--model", "llama-3.1-8b", "--device", "h100-sxm", "--json", "--tensor-parallel"]
    assert call(*command, "3") == 2
    assert "tensor_parallel is 3; expected a divisor of 32 heads" in capsys.readouterr().err
    assert call(*command, "16") == 0  # eight heads of keys and values, each on two devices
    assert json.loads(capsys.readouterr().out)["page_bytes"] == 16 * 131072 / 8


def test_the_profiles_are_listed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    assert call("profiles") == 0
    listed = capsys.readouterr().out
    assert shipped()
    assert all(name in listed for name in shipped())
    assert call("profiles", "--json") == 0
    content = json.loads(capsys.readouterr().out)["profiles"]
    assert {each["name"]: each["sha256"] for each in content} == {name: named(name).sha256 for name in shipped()}
