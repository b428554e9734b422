"""What the fits promise, on public measurements: runs that no fit has seen, at the cost that is shipped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.fidelity import from_shapes, inference_perf, tenants, vllm_cpu
from benchmarks.fidelity.__main__ import main, pivoted, put
from benchmarks.fidelity.rows import Row
from benchmarks.fidelity.runs import ENGINES, Judged, amplified, judge, part_of
from calibrate.profiles.profile import named
from sim.cost.forms import Roofline
from slotstep.validation import measured_runs
from slotstep.validation.measured_runs import Run

pytestmark = pytest.mark.simulation

UNSEEN = ("sweep_rate__agg_4rps__vanilla", "w5_sweep__agg6", "w5_sweep__agg30", "w7_sweep__agg6", "w7_sweep__agg12")


def runs(data: Path, *names: str) -> list[Run]:
    """Measured runs of the H100 tenants, by name."""
    files = [data / tenants.FOLDER / f"{name}.trace.csv.gz" for name in names]
    return measured_runs.runs(files, ENGINES / "h100-tenants.yaml")


@pytest.mark.parametrize("name", UNSEEN)
def test_runs_that_the_shipped_h100_profile_has_not_seen_are_met(data: Path, name: str) -> None:
    assert name not in tenants.FITTED
    profile = named(tenants.NAME)
    cost = profile.cost()
    assert isinstance(cost, Roofline)
    (run,) = runs(data, name)
    delay = profile.content["details"]["client_delay_ns"]
    found = judge(tenants.SUITE, run, "held out", cost, delay, tenants.BOUNDS, "")
    assert found.misses == ()
    assert {row.metric for row in found.rows} == {"ttft_s", "tpot_s", "e2e_s", "throughput"}


def test_bandwidths_of_the_shipped_h100_profile_are_possible() -> None:
    cost = named(tenants.NAME).cost()
    assert isinstance(cost, Roofline)
    shares = {each.term: each.value / each.sheet for each in tenants.physical(cost)}
    assert set(shares) == {"weight_pass", "per_token", "per_context_token"}
    assert all(0.5 < share < 1 for share in shares.values())


@pytest.mark.slow
def test_steps_on_a_cpu_predict_the_runs_at_four_and_eight_requests_a_second(data: Path) -> None:
    found = {row.run: row.error for row in vllm_cpu.rows(data) if (row.metric, row.statistic) == ("e2e_s", "mean")}
    assert len(found) == 6
    assert abs(found["4 requests/s, a sum"]) < 0.10
    assert abs(found["8 requests/s, a sum"]) < 0.10


@pytest.mark.slow
def test_runs_are_met_from_shapes_alone(data: Path) -> None:
    """Nothing fitted: mean E2E within 15% in each judged run, and within 5% on average, sign and all."""
    every = from_shapes.predictions(data)
    assert {each.run for each in every} == set(from_shapes.BEFORE)
    errors = [each.error("e2e_s") for each in every if each.group == "judged"]
    assert len(errors) == 20
    assert abs(sum(errors) / len(errors)) < from_shapes.MEAN_BOUND
    assert max(map(abs, errors)) < from_shapes.WORST_BOUND


def test_a_saturated_gpu_is_met_from_shapes_alone(data: Path) -> None:
    for found in from_shapes.of_operators(data):
        assert abs(found.error("e2e_s")) < from_shapes.WORST_BOUND
        assert abs(found.error("e2e_s")) < abs(from_shapes.BEFORE[found.run][2])
        assert from_shapes.table([found]).count("\n") == 3


@pytest.mark.slow
def test_prompts_come_again_after_a_hundred_requests_and_are_found_in_the_cache(data: Path) -> None:
    """Their lengths do, and the time to first token falls when the first round is over: both are in the logs."""
    known = [run for of_model in inference_perf.runs(data).values() for run in of_model]
    judged = [run for run in known if inference_perf.OVERLOADED not in run.name]
    assert len(judged) == 8
    for run in judged:
        assert inference_perf.again(run, inference_perf.PROMPTS) > 0.95
        assert inference_perf.again(run, inference_perf.PROMPTS - 1) < 0.20
        cold, warm = inference_perf.first_round(run)
        assert warm < 0.9 * cold


def test_a_part_of_a_run_is_a_run_of_its_own(data: Path) -> None:
    (run,) = runs(data, "sweep_rate__agg_4rps__vanilla")
    each = part_of(run, 60, 120)
    assert 150 < each.requests < 350
    assert len(each.measured) == each.requests
    settled = each.settled(each.requests // 2)
    assert 0 < len(settled) <= each.requests // 2
    later = part_of(run, 60, 120, unjudged=10)
    assert later.requests == each.requests
    assert later.measured["id"].tolist() == each.measured["id"].tolist()[10:]


@pytest.mark.slow
def test_a_miss_says_how_much_a_longer_step_matters(data: Path) -> None:
    """Alone in the engine a request takes 1% longer with its steps; where others come meanwhile, a little more."""
    of = runs(data, "sweep_rate__agg_2rps__vanilla", "sweep_rate__agg_4rps__vanilla")
    cost = named(tenants.NAME).cost()
    assert isinstance(cost, Roofline)
    judged = [Judged(of[0].name, "held out", (), ()), Judged(of[1].name, "held out", (), ("e2e p50 +9.0%",))]
    line = amplified(of, judged, cost, 2_000_000)
    found = re.fullmatch(r"- sweep_rate__agg_4rps__vanilla: steps that .* median E2E (\S+)% longer\.\n", line)
    assert found is not None
    assert 1.0 <= float(found[1]) < 1.5


def test_the_table_has_a_line_per_run_with_errors_and_what_was_measured() -> None:
    rows = [Row("s", "a", "ttft_s", "p50", 2.0, 1.0), Row("s", "b", "ttft_s", "p50", 2.0, 3.0, "host")]
    assert pivoted(rows).splitlines()[2:] == ["| a | -50.0% (2 s) | nothing |", "| b | +50.0% (2 s) | host |"]


def test_a_section_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    put(page, "one", "first")
    put(page, "two", "second")
    put(page, "one", "third")
    text = page.read_text()
    assert "first" not in text
    assert text.index("third") < text.index("second")


def test_without_data_it_says_where_they_should_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTSTEP_DATA", str(tmp_path / "none"))
    with pytest.raises(SystemExit, match=r"no public data at .*none; set SLOTSTEP_DATA"):
        main(["cpu"])
