"""Bundles: what is in one, and runs that are run again elsewhere, with files of another name, in other folders."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import code_of, complaint

from slotstep.experiments.bundles import inputs
from slotstep.experiments.bundles.environment import differences, environment

SCENARIO = """
workload: {trace: {azure: trace.csv}}
engine: {slots: 2}
cost: {unit: 1ms}
policy: "own_order:Own"
"""
TRACE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:15:46.680,10,4\n2023-11-16 18:15:46.681,{},2\n2023-11-16 18:15:46.682,9,0\n"
)
"""Two requests in two slots, and one of no tokens, on which the reader makes a remark with the file's name."""
ORDER = "from policies.fcfs import FirstComeFirstServed as Own\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a scenario with a trace and an order of its own, which is the current one."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "own_order.py").write_text(ORDER)
    (folder / "trace.csv").write_text(TRACE.format(12))
    (folder / "scenario.yaml").write_text(SCENARIO)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "own_order", raising=False)
    return folder


@pytest.fixture
def elsewhere(here: Path, tmp_path: Path) -> Path:
    """Another folder, with the bundle of a run and its trace under another name, one folder down."""
    assert code_of("run", "scenario.yaml", "--bundle", "run.zip") == 0
    folder = tmp_path / "elsewhere"
    (folder / "logs").mkdir(parents=True)
    (here / "run.zip").rename(folder / "run.zip")
    (here / "trace.csv").rename(folder / "logs" / "november.csv")
    return folder


def rewritten(bundle: Path, change: Callable[[str, str], str]) -> Path:
    """A bundle beside this one whose texts are changed, each by its name."""
    path = bundle.with_name("edited.zip")
    with zipfile.ZipFile(bundle) as archive, zipfile.ZipFile(path, "w") as copy:
        for name in archive.namelist():
            copy.writestr(name, change(name, archive.read(name).decode()))
    return path


def test_a_bundle_has_scenario_result_environment_and_digests_and_no_place_of_this_machine(here: Path) -> None:
    assert code_of("run", "scenario.yaml", "--bundle", "run.zip") == 0
    with zipfile.ZipFile("run.zip") as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert list(texts) == [
        "README.txt",
        "manifest.json",
        "scenarios/1-own_order_Own.yaml",
        "results/1-own_order_Own.json",
    ]
    assert not [name for name, text in texts.items() if str(here) in text]
    assert "azure: inputs/trace.csv" in texts["scenarios/1-own_order_Own.yaml"]
    manifest = json.loads(texts["manifest.json"])
    assert manifest["inputs"]["inputs/trace.csv"]["bytes"] == len(TRACE.format(12))
    assert list(manifest["code"]) == ["own_order.py"]
    assert manifest["environment"] == environment()
    assert {"slotstep", "python", "system", "numpy", "simpy"} <= set(manifest["environment"])


def test_the_same_run_gives_the_same_bytes(here: Path) -> None:
    for name in ("a.zip", "b.zip"):
        assert code_of("run", "scenario.yaml", "--bundle", name) == 0
    assert (here / "a.zip").read_bytes() == (here / "b.zip").read_bytes()


def test_a_run_is_reproduced_with_a_file_of_another_name(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert code_of("reproduce", elsewhere / "run.zip", "--inputs", elsewhere, "--jobs", "1") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("own_order:Own: ")
    assert lines[0].endswith(" metrics as recorded")
    assert lines[1:] == ["1 run: all as recorded"]


def test_an_input_of_another_content_is_missed(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (elsewhere / "logs" / "november.csv").write_text(TRACE.format(13))
    capsys.readouterr()
    words = complaint(capsys, "reproduce", elsewhere / "run.zip", "--inputs", elsewhere)
    assert words.startswith(
        f"trace.csv: not in {elsewhere}; expected a file of {len(TRACE.format(12))} bytes with SHA-256 "
    )


def test_what_differs_is_named_before_the_values(
    here: Path, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def another(name: str, text: str) -> str:
        if not name.startswith("results/"):
            return text
        summary = json.loads(text)
        assert summary["steps"] == 4  # those of the first request; the second joins it for two of them
        return json.dumps(summary | {"steps": 5, "makespan_s": summary["makespan_s"] * 1.001})

    edited = rewritten(elsewhere / "run.zip", another)
    (here / "own_order.py").write_text(f"{ORDER}# anew\n")
    capsys.readouterr()
    command = ("reproduce", edited, "--inputs", elsewhere, "--jobs", "1")
    assert code_of(*command) == 1
    lines = capsys.readouterr().out.splitlines()
    assert " differ" in lines[0]
    assert lines[1].startswith("  own_order.py: ")
    assert [line.split()[0] for line in lines[2:5]] == ["metric", "steps", "makespan_s"]
    assert code_of(*command, "--within", "1%") == 1
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:4]] == ["metric", "steps"]


def test_a_run_that_fails_elsewhere_is_broken(
    here: Path, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = rewritten(elsewhere / "run.zip", lambda _, text: text.replace("own_order:Own", "no_order:Own"))
    capsys.readouterr()
    assert code_of("reproduce", edited, "--inputs", elsewhere, "--jobs", "1") == 2
    assert "no_order:Own: broken: " in capsys.readouterr().out


def test_the_runs_of_a_sweep_and_of_a_comparison_are_reproduced(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "grid.yaml").write_text("scenario: scenario.yaml\ngrid: {engine.slots: {one: 1, two: 2}}\n")
    assert code_of("sweep", "grid.yaml", "--out", "out", "--jobs", "1", "--bundle", "sweep.zip") == 0
    assert code_of("compare", "scenario.yaml", "--policies", "fcfs,own_order:Own", "--bundle", "compare.zip") == 0
    with zipfile.ZipFile("sweep.zip") as archive:
        runs = json.loads(archive.read("manifest.json"))["runs"]
    assert [run["axes"] for run in runs] == [{"engine_slots": "one"}, {"engine_slots": "two"}]
    for name in ("sweep.zip", "compare.zip"):
        capsys.readouterr()
        assert code_of("reproduce", name, "--jobs", "1") == 0
        assert capsys.readouterr().out.endswith("2 runs: all as recorded\n")


def test_a_sweep_with_failed_runs_is_not_bundled(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "grid.yaml").write_text("scenario: scenario.yaml\ngrid: {workload.between: [[0s, 1h], [2h, 3h]]}\n")
    assert code_of("sweep", "grid.yaml", "--out", "out", "--jobs", "1", "--bundle", "sweep.zip") == 2
    assert "1 runs failed; expected a grid whose runs all end" in capsys.readouterr().err
    assert not (here / "sweep.zip").exists()


def test_what_is_no_bundle_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(capsys, "reproduce", "none.zip") == "none.zip: no such file"
    assert (
        complaint(capsys, "reproduce", "trace.csv")
        == "trace.csv: expected what --bundle wrote: File is not a zip file"
    )
    with zipfile.ZipFile("other.zip", "w") as archive:
        archive.writestr("manifest.json", '{"format": "slotstep bundle 9"}')
    assert complaint(capsys, "reproduce", "other.zip").startswith("other.zip: its format is 'slotstep bundle 9'")
    assert complaint(capsys, "reproduce", "other.zip", "--within", "x").startswith("--within: found 'x'")


def test_files_of_one_name_and_different_content_are_told_apart(tmp_path: Path) -> None:
    for folder, content in (("a", "1"), ("b", "2"), ("c", "1")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.csv").write_text(content)
    settings = [{"file": str(tmp_path / folder / "t.csv")} for folder in "abc"]
    names = inputs.named(settings)
    assert len(set(names.values())) == 2
    assert inputs.replaced(settings[0], names) == inputs.replaced(settings[2], names)
    found = inputs.found(inputs.described(names), tmp_path)
    assert {Path(path).read_text() for path in found.values()} == {"1", "2"}


def test_versions_that_differ_are_named() -> None:
    assert differences({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}) == ["b: 2 -> 3", "c: absent -> 4"]
