"""Policies over several seeds: the same requests for all, exact zeros, verdicts, and what the command prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

import slotstep
from reports.statistics.replications import OF_LATENCIES
from reports.text.replications import replications_json
from slotstep.cli.app import main
from slotstep.experiments.replications import replicate
from traces.errors import BadInput

EXAMPLES = ROOT / "examples"

BUSY: dict[str, Any] = {
    "workload": {
        "synthetic": {
            "requests": 300,
            "arrivals": {"poisson": {"rate": 38}},
            "output": {"lognormal": {"mean": 20, "cv": 1.5}},
        }
    },
    "engine": {"slots": 4},
    "cost": {"unit": "5ms"},
    "objectives": {"ttft": "100ms"},
}


def test_all_policies_get_the_same_requests_and_equal_ones_differ_by_exactly_nothing() -> None:
    # One tenant, and nobody waits half an hour: fair is sjf.
    fair = {"fair": {"max_wait": "30m"}}
    found = replicate(slotstep.parse({**BUSY, "policy": fair}), ["sjf", "fair", "fcfs"], seeds=6, jobs=1)
    for metric in found.metrics:
        same = found.difference(metric, "sjf", "fair").estimate
        assert same is not None
        assert (same.value, same.low, same.high, same.n) == (0.0, 0.0, 0.0, 6)
    (wait,) = (metric for metric in OF_LATENCIES if metric.key == "wait_s_mean")
    other = found.difference(wait, "sjf", "fcfs")
    assert other.differ
    assert other.estimate is not None
    # Common random numbers: the difference is known better than either mean.
    alone = found.estimate("fcfs", wait)
    assert alone is not None
    assert other.estimate.high - other.estimate.low < alone.high - alone.low


def test_a_seed_of_it_is_that_run() -> None:
    scenario = slotstep.parse({**BUSY, "seed": 7})
    found = replicate(scenario, ["fcfs"], seeds=3, jobs=1)
    assert found.seeds == (7, 8, 9)
    second = slotstep.run(slotstep.parse({**BUSY, "seed": 8}))
    for metric in found.metrics:
        if metric.latency:
            mine = metric.of_run(found.runs["fcfs"][1])
            assert mine == pytest.approx(second.summary[metric.latency][metric.statistic], rel=1e-12)


def test_an_unstable_policy_is_called_so_wherever_its_numbers_are(capsys: pytest.CaptureFixture[str]) -> None:
    scenario = slotstep.parse({**BUSY, "workload": {"synthetic": {**BUSY["workload"]["synthetic"], "output": 60}}})
    content = replications_json(replicate(scenario, ["fcfs"], seeds=2, jobs=1))
    assert content["policies"]["fcfs"]["unstable_runs"] == 2
    assert slotstep.run(scenario).summary["queue_grows"] is True
    calm = {"synthetic": {**BUSY["workload"]["synthetic"], "output": 10}}
    assert slotstep.run(slotstep.parse({**BUSY, "workload": calm})).summary["queue_grows"] is False
    with pytest.raises(SystemExit):
        main(
            [
                "run",
                str(EXAMPLES / "chat.yaml"),
                "--set",
                "engine.slots=4",
                "--set",
                "workload.synthetic.requests=300",
            ]
        )
    assert "Unstable: the queue grew to the last arrival." in capsys.readouterr().out


def test_a_closed_loop_has_no_queue_that_could_grow() -> None:
    closed = slotstep.parse({**BUSY, "clients": {"closed": {"clients": 50}}})
    assert slotstep.run(closed).summary["queue_grows"] is None


def test_a_way_to_the_engine_is_no_wait_at_the_client() -> None:
    calm = {"synthetic": {**BUSY["workload"]["synthetic"], "output": 10}}
    delayed = slotstep.parse({**BUSY, "workload": calm, "clients": {"delay": "1s"}})
    assert slotstep.run(delayed).summary["queue_grows"] is False
    windowed = slotstep.run(slotstep.parse({**BUSY, "clients": {"window": 1}}))
    assert windowed.summary["wait_s"]["max"] == 0
    assert windowed.summary["queue_grows"] is True


def test_requests_that_never_end_are_counted_and_make_percentiles_unbounded() -> None:
    scenario = slotstep.parse({**BUSY, "limits": {"queue": 3}})
    found = replicate(scenario, ["fcfs"], seeds=3, jobs=1)
    missing, n = found.censored("fcfs")
    assert n == 900
    assert missing > 9
    content = replications_json(found)["policies"]["fcfs"]
    assert content["metrics"]["e2e_s_p99"] == {"value": None, "low": None, "high": None, "n": 900}
    assert content["metrics"]["e2e_s_mean"]["value"] > 0


def test_a_workload_without_luck_is_refused() -> None:
    with pytest.raises(
        BadInput, match="every seed gives the same requests; expected laws, or a transform that draws"
    ):
        replicate(slotstep.load(EXAMPLES / "eight-static.yaml"), ["fcfs"], seeds=2, jobs=1)


@pytest.mark.parametrize(
    "drawing",
    [
        {"policy": {"sjf": {"error": 1}}},
        {"policy": "random"},
        {"cluster": {"replicas": 2, "router": "random"}},
        {"policy": {"fair": {"order": {"sjf": {"predict": {"correlated": {"tau": 0.5, "median": 9, "sigma": 1}}}}}}},
    ],
)
def test_what_is_drawn_outside_of_the_workload_is_luck_enough(drawing: dict[str, Any]) -> None:
    lines = [{"prompt": 1, "output": 1 + 7 * n % 20} for n in range(20)]
    base = {"workload": {"requests": lines}, "engine": {"slots": 1}, "cost": {"unit": "1ms"}}
    scenario = slotstep.parse(base | drawing)
    found = replicate(scenario, [scenario.policy.name], seeds=3, jobs=1)
    assert len({tuple(run.latencies["e2e_s"]) for run in found.runs[scenario.policy.name]}) == 3
    with pytest.raises(BadInput, match="every seed gives the same requests"):
        replicate(slotstep.parse(base), ["fcfs", "priority"], seeds=3, jobs=1)


def test_the_command_prints_intervals_verdicts_and_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = ["compare", str(EXAMPLES / "chat.yaml"), "--policies", "fcfs,sjf", "--seeds", "3", "--jobs", "1"]
    command += ["--set", "workload.synthetic.requests=200", "--out", str(tmp_path)]
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert not ended.value.code
    printed = capsys.readouterr().out
    assert "3 seeds (0 to 2), the same requests for every policy; 95% intervals" in printed
    assert "n: 3 runs, 600 requests" in printed
    assert "fcfs and sjf are not told apart in" in printed
    content = json.loads((tmp_path / "replications.json").read_text())
    assert list(content["policies"]) == ["fcfs", "sjf"]
    whole = ["occupancy", "output_tokens_per_s", "attainment"]
    assert [each["metric"] for each in content["differences"]] == [*(metric.key for metric in OF_LATENCIES), *whole]
    with pytest.raises(SystemExit) as ended:
        main([*command[:4], "--jobs", "1"])
    assert ended.value.code == 2
