"""The command line: what it prints where, its exit codes, and that bad input leaves nothing behind."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from command_line import answer, code_of, complaint
from repository import ROOT

import slotstep
from slotstep.cli import app, progress

EXAMPLES = ROOT / "examples"
STATIC = EXAMPLES / "eight-static.yaml"
COMMAND = [sys.executable, "-c", "from slotstep.cli.app import main; main()"]

KEYS = """
scenario policy seed log_sha256 steps makespan_s occupancy preemptions goodput_per_s requests slot_steps
slot_seconds pages tokens tokens_per_slot_step attainment rates wait_s ttft_s tpot_s itl_s e2e_s tenants
"""
LEDGER = "bought decode prefill recomputed wasted held no_demand no_memory no_budget blocked limited"
BESIDE = [
    "rejections",
    "max_itl_s",
    "preset",
    "kernel",
    "cache",
    "speculation",
    "client_wait_s",
    "client_ttft_s",
    "client_e2e_s",
    "objectives_from",
    "concurrency",
    "measured",
    "replicas",
    "remarks",
    "profile",
    "profiles",
    "engine",
    "headroom",
    "queue_grows",
    "service",
    "pools",
    "speculation",
    "sessions",
]
NESTED = {
    "requests": "injected finished rejected timed_out cancelled waiting running",
    "slot_steps": LEDGER,
    "slot_seconds": f"{LEDGER} idle",
    "pages": "total mean_used peak_used mean_live_fraction positions",
    "tokens": "prompt output computed recomputed cached rejected padding lost",
    "rates": "offered_per_s offered_by_gaps_per_s finished_per_s finished_by_gaps_per_s output_tokens_per_s",
    "concurrency": "in_flight_peak in_flight_mean running_peak running_mean",
    **dict.fromkeys(
        (
            "wait_s",
            "ttft_s",
            "tpot_s",
            "itl_s",
            "e2e_s",
            "max_itl_s",
            "client_wait_s",
            "client_ttft_s",
            "client_e2e_s",
        ),
        "n censored_share mean p50 p90 p95 p99 max",
    ),
}


def test_the_json_of_a_run_has_exactly_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "run", STATIC)
    assert [key for key in found if key not in BESIDE] == KEYS.split()
    assert set(found) == {*KEYS.split(), *BESIDE}
    for key, inner in NESTED.items():
        assert list(found[key]) == inner.split(), key
    assert list(found["pages"]["positions"]) == ["live", "tail", "reserved", "cached", "free"]
    assert (found["scenario"], found["policy"], found["seed"]) == ("eight-static", "fcfs", 0)
    assert found["attainment"] is found["goodput_per_s"] is None
    tenant = found["tenants"]["default"]
    assert tenant["requests"] == found["requests"]
    assert {key: tenant[key] for key in ("wait_s", "ttft_s", "tpot_s", "itl_s", "e2e_s")} == {
        key: found[key] for key in ("wait_s", "ttft_s", "tpot_s", "itl_s", "e2e_s")
    }


def test_a_run_names_the_predictor_its_policy_uses(capsys: pytest.CaptureFixture[str]) -> None:
    assert "predictor" not in answer(capsys, "run", STATIC)
    found = answer(capsys, "run", STATIC, "--policy", "sjf")
    assert list(found)[:4] == ["scenario", "policy", "predictor", "seed"]
    assert found["predictor"] == "exact"
    found = answer(capsys, "run", STATIC, "--set", "policy={fair: {order: {sjf: {error: 0.5}}}}")
    assert (found["policy"], found["predictor"]) == ("fair", "lognormal error 0.5")
    assert code_of("run", STATIC, "--set", "policy={sjf: {predict: prompt}}") == 0
    assert "sjf (predictor: prompt)" in capsys.readouterr().out


def test_statistics_without_samples_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "run", EXAMPLES / "pages.yaml")
    nothing = dict.fromkeys(("mean", "p50", "p90", "p95", "p99", "max"))
    assert found["tpot_s"] == {"n": 0, "censored_share": 0.0, **nothing}


def test_settings_and_policy_of_the_command_line_count(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "run", STATIC, "--set", "engine.slots=4", "--set", "seed=3", "--policy", "sjf")
    assert (found["policy"], found["seed"]) == ("sjf", 3)
    assert found["steps"] == 7 + 120  # 5 6 6 7, then 8 9 11 120
    assert found["slot_steps"]["bought"] == 4 * found["steps"]


def test_a_comparison_runs_the_same_requests_under_each_policy(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "compare", EXAMPLES / "eight-continuous.yaml", "--policies", "fcfs, sjf,fair")
    assert list(found) == ["runs"]
    assert [run["policy"] for run in found["runs"]] == ["fcfs", "sjf", "fair"]
    assert [run["tokens"]["output"] for run in found["runs"]] == [20 * 172] * 3
    fcfs, sjf, fair = (run["log_sha256"] for run in found["runs"])
    assert fcfs != sjf
    assert sjf == fair  # of one tenant, and nobody waits as long as the cap


def test_without_json_a_person_reads_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("run", STATIC) == 0
    printed = capsys.readouterr().out
    assert "17.9%" in printed
    assert "held" in printed
    assert code_of("compare", STATIC, "--policies", "fcfs,sjf") == 0
    printed = capsys.readouterr().out
    assert "fcfs" in printed
    assert "sjf" in printed


def test_out_holds_the_whole_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "deep" / "out"
    found = answer(capsys, "run", STATIC, "--out", out)
    assert json.loads((out / "summary.json").read_text()) == found
    assert len(pd.read_parquet(out / "requests.parquet")) == 8
    assert len(pd.read_parquet(out / "steps.parquet")) == 120
    assert slotstep.resolved(slotstep.load(out / "scenario.yaml")) == slotstep.resolved(slotstep.load(STATIC))
    assert len(list(out.glob("*.png"))) >= 3
    assert not list(out.glob(".*"))
    assert answer(capsys, "run", out / "scenario.yaml") == found


@pytest.mark.slow
def test_out_of_a_comparison_holds_each_run_and_pictures_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(capsys, "compare", STATIC, "--policies", "fcfs,sjf", "--out", tmp_path)
    for run in found["runs"]:
        folder = tmp_path / run["policy"]
        assert json.loads((folder / "summary.json").read_text()) == run
        assert slotstep.load(folder / "scenario.yaml").policy.name == run["policy"]
    assert list(tmp_path.glob("*.png"))


def test_a_missing_scenario_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    absent = tmp_path / "absent.yaml"
    assert complaint(capsys, "run", absent) == f"{absent}: no such file"


def test_a_folder_is_no_scenario(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert complaint(capsys, "run", tmp_path) == f"{tmp_path}: is a directory; expected a file"


def test_a_mistake_in_a_scenario_names_file_and_key(capsys: pytest.CaptureFixture[str]) -> None:
    found = complaint(capsys, "run", STATIC, "--set", "engine.slotz=4")
    assert found == f"{STATIC}: engine.slotz: unknown key; did you mean engine.slots?"
    found = complaint(capsys, "run", STATIC, "--set", "workload.requests.2.output=-4")
    assert found == f"{STATIC}: workload.requests.2.output: found -4; expected a whole number of at least 1"


def test_a_missing_trace_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    absent = tmp_path / "absent.csv"
    assert complaint(capsys, "run", STATIC, "--trace", absent) == f"{absent}: no such file"


def test_a_missing_trace_that_can_be_fetched_says_how(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    absent = tmp_path / "AzureLLMInferenceTrace_code.csv"
    found = complaint(capsys, "run", EXAMPLES / "azure-code.yaml", "--trace", absent)
    assert found == f"{absent}: no such file; `slotstep trace fetch azure-2023-code` downloads it"


def test_text_in_a_trace_is_named_with_its_row_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    trace = tmp_path / "bad.csv"
    trace.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:15:46.6805900,374,44\n"
        "2023-11-16 18:15:50.9951690,396,n/a\n"
    )
    found = complaint(capsys, "run", STATIC, "--trace", trace, "--out", tmp_path / "out")
    assert found.startswith(f"{trace}, row 3: GeneratedTokens is 'n/a'; expected a whole number of tokens")
    assert sorted(tmp_path.iterdir()) == [trace]


@pytest.mark.parametrize("command", [["run"], ["compare", "--policies", "fcfs,sjf"]])
def test_a_folder_that_cannot_be_written_is_refused_before_the_run(
    command: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slotstep.runs.simulation.serve", lambda *_, **__: pytest.fail("the run has started"))
    file = tmp_path / "file"
    file.write_text("not a folder")
    found = complaint(capsys, *command, STATIC, "--out", file / "out")
    assert found.startswith(f"{file / 'out'}")
    assert found.endswith(": cannot be written: Not a directory")
    assert file.read_text() == "not a folder"
    assert sorted(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("policies", "reason"),
    [
        ("fcfs,,sjf", "expected names separated by commas, such as fcfs,sjf,fair"),
        ("fcfs,sjf,fcfs", "fcfs is there twice; expected each policy once"),
    ],
)
def test_a_list_of_policies_names_each_once(policies: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(capsys, "compare", STATIC, "--policies", policies) == f"--policies {policies}: {reason}"


def test_an_unknown_policy_or_trace_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean sjf" in complaint(capsys, "run", STATIC, "--policy", "sfj")
    assert "did you mean sjf" in complaint(capsys, "compare", STATIC, "--policies", "fcfs,sfj")
    assert "did you mean azure-2023-conv" in complaint(capsys, "trace", "fetch", "azure-2023-cnv")


def test_a_fault_of_our_own_is_not_passed_off_as_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("a fault of our own")

    monkeypatch.setattr("slotstep.runs.simulation.serve", broken)
    with pytest.raises(ValueError, match="a fault of our own"):
        app.main(["run", str(STATIC)])


@pytest.mark.slow
def test_a_run_and_a_mistake_from_a_shell() -> None:
    good = subprocess.run([*COMMAND, "run", STATIC, "--json"], capture_output=True, text=True, check=False)
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["steps"] == 120
    bad = subprocess.run([*COMMAND, "run", "absent.yaml"], capture_output=True, text=True, check=False)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "error: absent.yaml: no such file\n"


@pytest.mark.slow
@pytest.mark.parametrize("how", [["--json"], []])
def test_a_reader_that_leaves_early_is_no_error(how: list[str]) -> None:
    process = subprocess.Popen([*COMMAND, "run", STATIC, *how], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait()


def test_help_and_version_import_nothing_heavy() -> None:
    script = """
import sys
from slotstep.cli.app import main
for arguments in (["--help"], ["--version"]):
    try:
        main(arguments)
    except SystemExit as end:
        assert not end.code, end
heavy = {"numpy", "pandas", "pyarrow", "matplotlib", "scipy", "simpy", "pydantic", "yaml"}
print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "Usage" in found.stdout
    assert "slotstep 0." in found.stdout
    assert found.stderr == "[]\n"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_bar_appears_on_a_terminal_once_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress.Meter("fcfs", 10) as patient:
        patient(3)
        assert patient.bar is None
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress.Meter("fcfs", 10) as meter:
        meter(3)
        assert meter.bar is not None
        (task,) = meter.bar.tasks
        assert (task.description, task.completed, task.total) == ("fcfs", 3, 10)
    assert meter.bar.finished is False
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.Meter("fcfs", 10) as unseen:
        unseen(3)
        assert unseen.bar is None
