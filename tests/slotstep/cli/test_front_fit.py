"""`slotstep calibrate from-steps` and `from-log`: from files to a profile that a scenario can use."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import slotstep
from calibrate.fit.step_log import predicted
from calibrate.profiles.profile import profile, read
from calibrate.validate.compare import in_flight_at
from sim.cost.forms import Roofline
from slotstep.cli.app import main
from slotstep.cli.calibrate.from_log import shape_prior
from slotstep.validation.measured_runs import logs_beside
from traces.errors import BadInput

ABOUT = [f"--about={each}" for each in ("device=H100", "model=small", "dtype=bfloat16", "tensor_parallel=1")]
HIDDEN = Roofline(host=1e6, weight_pass=1e7, per_token=4e4, per_context_token=50.0, per_sequence=1e4)


def slotstep_exits(*arguments: object) -> int:
    """Run the command line; its exit code."""
    try:
        main([str(each) for each in arguments])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    """A CSV of 400 steps of all kinds under the hidden cost."""
    random = np.random.default_rng(5)
    chunks = random.integers(0, 2, 400)
    tokens = chunks * random.integers(1, 2000, 400)
    frame = pd.DataFrame(
        {
            "decodes": random.integers(1, 200, 400),
            "context": random.integers(1000, 200_000, 400),
            "chunks": chunks,
            "chunk_tokens": tokens,
            "chunk_work": tokens**2 / 2,
        }
    )
    frame["duration_ns"] = predicted(HIDDEN, frame).round().astype(np.int64)
    frame.to_csv(tmp_path / "steps.csv", index=False)
    return tmp_path / "steps.csv"


def test_a_step_log_becomes_a_profile_that_a_scenario_can_name(
    steps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert slotstep_exits("calibrate", "from-steps", steps, "--out", tmp_path / "mine.yaml", *ABOUT) == 0
    assert "fitted: 300 steps" in capsys.readouterr().out
    made = read(tmp_path / "mine.yaml")
    assert made.content["curve"]["roofline"]["weight_pass"] == pytest.approx(1e7, rel=0.02)
    assert made.content["range"]["tokens"] > 200
    mapping = {"workload": {"requests": [{"prompt": 100, "output": 2}]}, "cost": {"profile": "mine.yaml"}}
    found = slotstep.run(slotstep.parse(mapping, folder=tmp_path))
    assert found.summary["profile"]["sha256"] == made.sha256
    assert found.summary["e2e_s"]["max"] == pytest.approx(2 * 11e-3, rel=0.01)


def test_a_step_log_of_a_cpu_becomes_a_sum(steps: Path, tmp_path: Path) -> None:
    log = pd.read_csv(steps)
    log["duration_ns"] = 2e7 + 3e5 * log["decodes"] + 5e5 * log["chunk_tokens"]
    log.astype({"duration_ns": int}).to_csv(steps, index=False)
    arguments = ["--form", "affine", "--out", tmp_path / "cpu.yaml", *ABOUT]
    assert slotstep_exits("calibrate", "from-steps", steps, *arguments) == 0
    curve = read(tmp_path / "cpu.yaml").content["curve"]["affine"]
    assert curve["per_prefill_token"] == pytest.approx(5e5, rel=1e-3)
    mapping = {"workload": {"requests": [{"prompt": 100, "output": 2}]}, "cost": {"profile": "cpu.yaml"}}
    # A prompt of 100, then one decode.
    found = slotstep.run(slotstep.parse(mapping, folder=tmp_path))
    assert found.summary["e2e_s"]["max"] == pytest.approx(70e-3 + 20.3e-3, rel=1e-3)


def test_json_has_the_coefficients_and_how_sure_they_are(steps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert slotstep_exits("calibrate", "from-steps", steps, "--json", "--hold-out", 0.5) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fitted"]["n"] == found["held_out"]["n"] == 200
    low, high = found["intervals"]["per_token"]
    assert low / 1.001 <= found["cost"]["per_token"] <= high * 1.001
    assert any("per_chunk_work" in said for said in found["not_identified"])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--out", "mine.yaml"], "expected also --about device=... --about model.name=... --about dtype=..."),
        (["--about", "devise=H100"], "--about devise: unknown key; did you mean device?"),
        (["--about", "device"], "--about device: expected KEY=VALUE, such as device=H100"),
        (["--form", "line"], "--form line: expected roofline or affine"),
        (["--clock", "sundial"], "--clock sundial: expected cpu or wall"),
        (["--hold-out", "1"], "hold-out is 1.0; expected a share from 0 to below 1"),
        (["--out", "mine.yaml", *ABOUT, "--about=memory=lots"], "memory: found 'lots'; expected a whole number"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_and_nothing_is_written(
    steps: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert slotstep_exits("calibrate", "from-steps", steps, *arguments) == 2
    printed = capsys.readouterr()
    assert complaint in printed.err
    assert len(printed.err.splitlines()) == 1
    assert not (tmp_path / "mine.yaml").exists()


ENGINE = """
workload: {trace: {auto: log.csv}}
clients: {delay: 3ms}
engine: {slots: 32, token_budget: 2048, async_scheduling: true}
cost: {roofline: {host: 1ms, weight_pass: 10ms, per_token: 40us, per_context_token: 50ns}}
"""


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    """Two measured runs in TraceV2, written of simulated ones, with latencies as their clients saw them."""
    (tmp_path / "engine.yaml").write_text(ENGINE)
    files = []
    for name, rate in (("light", 2.0), ("busy", 8.0)):
        law = {
            "requests": 80,
            "arrivals": {"poisson": {"rate": rate}},
            "prompt": {"uniform": {"minimum": 50, "maximum": 900}},
        }
        mapping = {
            "workload": {"synthetic": {**law, "output": {"fixed": 30}}},
            "clients": {"delay": "3ms"},
            "engine": {"slots": 32, "token_budget": 2048, "async_scheduling": True},
            "cost": {
                "roofline": {"host": "1ms", "weight_pass": "10ms", "per_token": "40us", "per_context_token": "50ns"}
            },
        }
        made = slotstep.run(slotstep.parse(mapping)).requests
        arrival = (made["queued_ns"] - 3_000_000) // 1000
        frame = pd.DataFrame(
            {
                "request_id": made["id"],
                "input_tokens": made["prompt"],
                "output_tokens": made["output"],
                "arrival_time_us": arrival,
                "send_time_us": arrival + 10**15,
                "first_chunk_time_us": made["first_token_ns"] // 1000 + 10**15,
                "last_chunk_time_us": made["ended_ns"] // 1000 + 10**15,
                "status": "ok",
            }
        )
        files.append(tmp_path / f"{name}.trace.csv")
        frame.to_csv(files[-1], index=False)
    return files


@pytest.mark.slow
def test_measured_runs_become_a_profile_and_one_kept_back_is_predicted(
    logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["calibrate", "from-log", *logs, "--scenario", tmp_path / "engine.yaml", "--hold-out", "busy"]
    assert slotstep_exits(*arguments, "--out", tmp_path / "mine.yaml", *ABOUT) == 0
    printed = capsys.readouterr().out
    assert "held out" in printed
    assert "from a guess; predicted over measured" in printed
    made = read(tmp_path / "mine.yaml")
    found = made.content["curve"]["roofline"]
    assert found["weight_pass"] + found["host"] == pytest.approx(11e6, rel=0.05)
    assert found["per_token"] == pytest.approx(4e4, rel=0.1)
    assert made.content["residuals"]["held_out_e2e"] < 0.1
    assert made.content["source"] == "measured runs light"


@pytest.mark.slow
def test_a_known_model_and_device_are_where_a_fit_starts_and_what_it_cannot_leave(
    logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The engine read weights at 45% of the bandwidth of an H100: that is taken for 50% and something else."""
    about = ["--about=model=llama-3.1-8b", "--about=device=h100-sxm", *ABOUT[2:]]
    arguments = ["calibrate", "from-log", logs[1], "--scenario", tmp_path / "engine.yaml", *about]
    assert slotstep_exits(*arguments, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["start"] == "what shapes say of llama-3.1-8b on h100-sxm"
    assert found["cost"]["weight_pass"] <= 2 * 4.5e6
    assert found["cost"]["weight_pass"] + found["cost"]["host"] == pytest.approx(11e6, rel=0.05)


@pytest.mark.slow
def test_a_run_and_the_same_again_are_one_setting_and_their_difference_is_noise(
    logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.read_csv(logs[0])
    for name in ("first_chunk_time_us", "last_chunk_time_us"):
        frame[name] = frame["send_time_us"] + (1.2 * (frame[name] - frame["send_time_us"])).astype(int)
    frame.to_csv(tmp_path / "again.trace.csv", index=False)
    arguments = ["calibrate", "from-log", "--scenario", tmp_path / "engine.yaml", "--free", "weight_pass", "--json"]
    assert slotstep_exits(*arguments, logs[0], tmp_path / "again.trace.csv") == 0
    both = json.loads(capsys.readouterr().out)
    spread = {name: pytest.approx(0.2, rel=0.01) for name in ("ttft_s", "tpot_s", "e2e_s")}
    assert both["repeats"] == [{"runs": ["light", "again"], "spread": spread}]
    low, high = both["intervals"]["weight_pass"]
    assert low < 10e6 < 12e6 < high


@pytest.mark.slow
def test_steps_that_were_logged_are_recommended_before_requests_are_fitted(
    logs: list[Path], steps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["calibrate", "from-log", logs[0], "--scenario", tmp_path / "engine.yaml", "--free", "host"]
    assert slotstep_exits(*arguments) == 0
    first = capsys.readouterr().err.splitlines()[0]
    assert first == f"{steps} is a log of steps: fit it first, slotstep calibrate from-steps {steps}"


def test_logs_of_steps_are_known_by_their_content(steps: Path, tmp_path: Path) -> None:
    pd.read_csv(steps).to_parquet(tmp_path / "steps.parquet")
    line = {"type": "step", "scheduled": {"a": 1}, "computed_before": {"a": 3}, "t_sched0": 1.0, "t_upd": 1.5}
    (tmp_path / "engine.jsonl").write_text(json.dumps(line) + "\n")
    pd.DataFrame({"decodes": [1]}).to_csv(tmp_path / "other.csv", index=False)
    pd.DataFrame({"decodes": [1]}).to_parquet(tmp_path / "other.parquet")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "requests.jsonl").write_text('{"prompt": 3, "scheduled": {}}\n')
    (tmp_path / "folder.csv").mkdir()
    found = logs_beside([tmp_path / "requests.jsonl"])
    assert [file.name for file in found] == ["engine.jsonl", "steps.csv", "steps.parquet"]
    assert steps not in logs_beside([steps])


def test_what_is_no_number_of_devices_is_no_place_to_start() -> None:
    of = {"model": {"name": "llama-3.1-8b"}, "device": "b200", "dtype": "float32", "tensor_parallel": "two"}
    assert shape_prior(of) == (None, "a guess")
    assert shape_prior({**of, "tensor_parallel": 0}) == (None, "a guess")
    with pytest.raises(BadInput, match=r"--about device b200: .*float32"):
        shape_prior({**of, "tensor_parallel": 1})


@pytest.mark.slow
def test_only_the_host_is_fitted_beside_the_scenarios_other_terms(
    logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    about = ["--about=model=llama-3.1-8b", "--about=device=h100-sxm", *ABOUT[2:]]
    arguments = ["calibrate", "from-log", logs[0], "--scenario", tmp_path / "engine.yaml", "--free", "host"]
    assert slotstep_exits(*arguments, "--set", "cost.roofline.host=4ms", *about) == 0
    # 7.5e9 parameters of layers and head, 2 bytes each, in the 10 ms of the scenario
    assert "weight_pass: weights read, B/s 1.5e12, 45% of the data sheet" in capsys.readouterr().out
    arguments.append("--json")
    assert slotstep_exits(*arguments, "--set", "cost.roofline.host=4ms") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cost"]["host"] == pytest.approx(1e6, rel=0.1)
    assert (found["cost"]["weight_pass"], found["cost"]["per_token"], found["delay"]) == (1e7, 4e4, 3_000_000)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--hold-out", "bussy"], "--hold-out bussy: no such run; did you mean busy?"),
        (["--hold-out", "busy", "--hold-out", "light"], "every run is kept back; expected at least one to fit"),
        (["--free", "warmth"], "warmth is no term; expected some of host"),
        (["--set", "workload.first=15"], "light: 15 requests with a latency to compare; expected at least 20"),
        (
            ["--set", "cost={unit: 1ms}", "--free", "host"],
            "--free: the scenario's cost is a unit",
        ),
    ],
)
def test_a_log_that_cannot_be_fitted_is_refused_in_one_line(
    logs: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    complaint: str,
) -> None:
    assert slotstep_exits("calibrate", "from-log", *logs, "--scenario", tmp_path / "engine.yaml", *arguments) == 2
    printed = capsys.readouterr()
    assert complaint in printed.err
    assert len(printed.err.splitlines()) == 1


def test_a_file_without_measurements_and_one_given_twice_are_refused(
    logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plain.csv").write_text("prompt,output\n5,6\n")
    for files, complaint in (([tmp_path / "plain.csv"], "no measurements"), ([logs[0], logs[0]], "given twice")):
        assert slotstep_exits("calibrate", "from-log", *files, "--scenario", tmp_path / "engine.yaml") == 2
        assert complaint in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_is_held_against_what_made_it_and_meets_it(
    logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["validate", *logs, "--scenario", tmp_path / "engine.yaml", "--out", tmp_path / "out"]
    assert slotstep_exits(*arguments, "--json") == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [run["run"] for run in runs] == ["light", "busy"]
    for run in runs:
        assert run["requests"]["compared"] == 80
        assert {name: of["n"] for name, of in run["metrics"].items()} == {"ttft_s": 80, "tpot_s": 80, "e2e_s": 80}
        assert all(abs(of["p99"]["error"]) < 1e-3 and of["each"] < 1e-3 for of in run["metrics"].values())
        assert abs(run["makespan_s"]["error"]) < 1e-3
        assert [level["level"] for level in run["by_load"]] == ["low", "middle", "high"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "busy.parquet", "busy.png", "light.parquet", "light.png", "validation.json",
    ]  # fmt: skip
    assert json.loads((tmp_path / "out" / "validation.json").read_text())["runs"] == runs


def test_a_profile_takes_the_place_of_the_scenarios_cost_and_its_error_is_said(
    logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    about = {"device": "H100", "model": {"name": "small"}, "dtype": "bfloat16", "tensor_parallel": 1}
    told = {"date": "2026-01-01", "method": "by hand", "source": "nowhere", "not_included": []}
    slow = profile({"roofline": {"weight_pass": 22e6}}, **about, **told)
    Path("slow.yaml").write_text(slow.text())
    assert slotstep_exits("validate", logs[0], "--scenario", "engine.yaml", "--profile", "slow.yaml") == 0
    printed = capsys.readouterr().out
    tpot = next(line for line in printed.splitlines() if "TPOT p50" in line)
    assert "22.0 ms" in tpot
    assert "80 requests ended well in both runs" in printed
    assert slotstep_exits("validate", logs[0], "--scenario", "engine.yaml", "--profile", "slow.yaml", "--json") == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["profile"]["sha256"] == slow.sha256


def test_who_timed_out_is_counted_and_not_compared(
    logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.read_csv(logs[1])
    frame.loc[:4, ["first_chunk_time_us", "last_chunk_time_us"]] = 0
    frame.loc[:4, "status"] = "timeout"
    frame.to_csv(logs[1], index=False)
    scenario = tmp_path / "engine.yaml"
    assert slotstep_exits("validate", logs[1], "--scenario", scenario, "--json") == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["requests"]["measured"] == {"ok": 75, "timed_out": 5}
    assert run["requests"]["predicted"]["finished"] == 80
    assert run["requests"]["compared"] == run["metrics"]["e2e_s"]["n"] == 75


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "found neither of measured runs and --replay"),
        (["light.trace.csv", "--replay", "synthetic"], "found both of measured runs and --replay"),
        (["light.trace.csv", "--rounds", "3"], "--rounds goes with --replay"),
        (["--replay", "synthetic", "--profile", "mine"], "--profile goes with measured runs"),
    ],
)
def test_validate_takes_measured_runs_or_a_replay(
    logs: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert slotstep_exits("validate", *arguments, "--scenario", "engine.yaml") == 2
    assert complaint in capsys.readouterr().err


def test_running_and_waiting_are_counted_alike_on_both_sides() -> None:
    run = pd.DataFrame({"sent_s": [0.0, 1.0, 2.0], "first_s": [0.5, 2.5, np.nan], "end_s": [2.0, 3.0, 4.0]})
    instants = np.array([0.25, 1.5, 2.25, 3.5, 5.0])
    assert in_flight_at(run, instants).tolist() == [1, 2, 2, 1, 0]
    assert in_flight_at(run, instants, "first_s").tolist() == [1, 1, 2, 1, 0]
