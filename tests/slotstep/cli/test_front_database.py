"""`slotstep calibrate from-aiconfigurator`: the profile it writes, its cache, and a run with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import answer, code_of, complaint

from calibrate.database import profile as database
from calibrate.profiles.profile import Profile, named, read

pytest.importorskip("aiconfigurator_core", reason="the optional package aiconfigurator-core is not installed")

COMMAND = ("calibrate", "from-aiconfigurator", "llama-3.1-8b", "--system", "h100_sxm", "--backend", "vllm", "--out")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache folder of the test's own."""
    monkeypatch.setenv("SLOTSTEP_CACHE", str(tmp_path / "cache"))


def test_the_same_request_again_is_answered_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert code_of(*COMMAND, tmp_path / "one.yaml") == 0

    def sampled_again(*_: object) -> None:
        pytest.fail("sampled again")

    monkeypatch.setattr(database, "compose", sampled_again)
    assert code_of(*COMMAND, tmp_path / "two.yaml") == 0
    assert read(tmp_path / "one.yaml").sha256 == read(tmp_path / "two.yaml").sha256


@pytest.mark.slow
def test_a_run_needs_only_the_profile_and_its_pages_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(*COMMAND, tmp_path / "made.yaml", "--kv", "fp8") == 0
    said = capsys.readouterr().out
    assert "kv fp8" in said
    (tmp_path / "scenario.yaml").write_text(
        "workload: {requests: [{prompt: 100, output: 10}]}\n"
        "engine: {slots: 4, fit: 0.9}\n"
        "cost: {profile: made.yaml, host: 1ms}\n"
    )
    summary = answer(capsys, "run", tmp_path / "scenario.yaml")
    # Ten steps of at least the weights, 15 GB at 3.35 TB/s, and the host.
    assert summary["e2e_s"]["mean"] > 10 * (15e9 / 3.35e12 + 1e-3)


def test_a_model_that_does_not_fit_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("calibrate", "from-aiconfigurator", "llama-3.1-70b", "--system", "h100_sxm", "--backend", "vllm")
    assert "does not fit" in complaint(capsys, *command, "--out", tmp_path / "made.yaml")


def test_pages_of_a_model_whose_layers_are_not_counted_have_to_be_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = named("h100-llama-3.1-8b")
    (tmp_path / "made.yaml").write_text(Profile("made", {**made.content, "model": {"name": "hybrid"}}).text())
    (tmp_path / "scenario.yaml").write_text(
        "workload: {requests: [{prompt: 100, output: 10}]}\nengine: {fit: 0.9}\ncost: {profile: made.yaml}\n"
    )
    said = complaint(capsys, "run", tmp_path / "scenario.yaml")
    assert "the sizes of hybrid are not known; expected engine.pages instead" in said
