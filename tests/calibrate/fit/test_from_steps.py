"""A roofline from a log of steps: hidden coefficients come back, and what the steps cannot tell is said."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sim_stories import engine, run

from calibrate.fit import from_steps
from calibrate.fit.step_log import COLUMNS, of_log, predicted, shape
from sim.cost.forms import Affine, Roofline
from sim.request import Request
from traces.errors import BadInput
from traces.reading import step_logs as step_logs

HIDDEN = Roofline(
    host=8e5, weight_pass=1e7, per_token=44e3, per_context_token=53.0, per_chunk_work=0.3, per_sequence=1e4
)


def requests(count: int, gap: float = 5e7, prompt: int = 600, output: int = 60) -> list[Request]:
    """Requests at random instants with prompts and outputs of all sizes up to twice the given ones."""
    random = np.random.default_rng(7)
    arrivals = np.cumsum(random.exponential(gap, count)).astype(int).tolist()
    sizes = zip(
        random.integers(1, 2 * prompt, count).tolist(), random.integers(1, 2 * output, count).tolist(), strict=True
    )
    return [Request(str(i), at, p, o) for i, (at, (p, o)) in enumerate(zip(arrivals, sizes, strict=True))]


@pytest.fixture(scope="module")
def mixed() -> pd.DataFrame:
    """The steps of a busy engine under the hidden cost: decodes, chunks, both."""
    return of_log(run(requests(150), engine(slots=64, budget=1024, depth=2), HIDDEN))


def noisy(steps: pd.DataFrame, sigma: float) -> pd.DataFrame:
    """The same steps, each with a lognormal error of mean 1."""
    errors = np.random.default_rng(3).lognormal(-(sigma**2) / 2, sigma, len(steps))
    return steps.assign(duration_ns=(steps["duration_ns"] * errors).round().astype(np.int64))


def test_a_simulated_log_is_a_step_log_that_says_what_each_step_cost(mixed: pd.DataFrame) -> None:
    assert sorted(mixed) == sorted(COLUMNS)
    assert (mixed["chunks"] > 0).any()
    assert (mixed["decodes"] > 0).any()
    assert np.abs(predicted(HIDDEN, mixed) - mixed["duration_ns"]).max() <= 0.51
    assert [HIDDEN.step(shape(row)) for _, row in mixed.head(50).iterrows()] == mixed["duration_ns"].head(50).tolist()


def test_without_noise_every_coefficient_comes_back(mixed: pd.DataFrame) -> None:
    found = from_steps.fit(mixed).cost
    for term in from_steps.AsRoofline.terms:
        assert getattr(found, term) == pytest.approx(
            getattr(HIDDEN, term), rel=0.02, abs=100 * (term == "per_chunk")
        ), term


SUM = Affine(base=2e7, per_sequence=3e5, per_prefill_token=5e5, per_context_token=3e3, per_chunk_work=200.0)


def test_a_sum_comes_back_as_a_sum() -> None:
    """As on a CPU, where the first token's arithmetic counts already."""
    steps = of_log(run(requests(120, gap=2e9, prompt=200, output=30), engine(slots=16, budget=256), SUM))
    assert [SUM.step(shape(row)) for _, row in steps.head(50).iterrows()] == steps["duration_ns"].head(50).tolist()
    fit = from_steps.fit(steps, form="affine")
    for term in from_steps.AsSum.terms:
        assert getattr(fit.cost, term) == pytest.approx(getattr(SUM, term), rel=1e-3), term
    assert fit.residuals["held_out"]["mean_abs"] < 1e-6
    doubtful = from_steps.fit(noisy(steps, 0.1), form="affine")
    low, high = doubtful.intervals["per_prefill_token"]
    assert low * 0.95 < SUM.per_prefill_token < high * 1.05
    with pytest.raises(ValueError, match="form is line; expected roofline or affine"):
        from_steps.fit(steps, form="line")


def test_shares_of_a_step_say_what_the_steps_tell(mixed: pd.DataFrame) -> None:
    """A coefficient that grows by 1% makes a step longer by its share of it: by hand, one after the other."""
    problem = from_steps.AsRoofline(mixed)
    crossing = problem.crossing()
    cost = problem.cost(crossing)
    shares = problem.sensitivity(crossing)
    before = predicted(cost, mixed)
    for place, term in enumerate(problem.terms):
        more = dataclasses.replace(cost, **{term: getattr(cost, term) * 1.0001})
        assert (predicted(more, mixed) / before - 1) * 1e4 == pytest.approx(shares[:, place], abs=1e-3), term


def test_with_noise_the_mean_step_comes_back_and_the_truth_lies_in_its_intervals(mixed: pd.DataFrame) -> None:
    fit = from_steps.fit(noisy(mixed, 0.05))
    assert predicted(fit.cost, mixed).mean() == pytest.approx(mixed["duration_ns"].mean(), rel=0.005)
    assert np.abs(predicted(fit.cost, mixed) / mixed["duration_ns"] - 1).mean() < 0.01
    assert fit.residuals["fitted"]["mean_abs"] == pytest.approx(0.05 * np.sqrt(2 / np.pi), rel=0.15)
    assert fit.residuals["held_out"]["mean_abs"] == pytest.approx(0.05 * np.sqrt(2 / np.pi), rel=0.2)
    low, high = fit.intervals["per_context_token"]
    assert low * 0.8 < HIDDEN.per_context_token < high * 1.2


def test_steps_that_others_stretched_weigh_little(mixed: pd.DataFrame) -> None:
    lot = np.random.default_rng(2)
    stretched = noisy(mixed, 0.05)
    hit = lot.random(len(mixed)) < 0.05
    stretched.loc[hit, "duration_ns"] *= 4
    found = predicted(from_steps.fit(stretched).cost, mixed)
    assert found.mean() == pytest.approx(mixed["duration_ns"].mean(), rel=0.05)  # the mean of all is 15% longer


def test_steps_that_only_decode_cannot_tell_the_host_from_the_weights() -> None:
    log = run([Request(str(i), 0, 1, 100 + i) for i in range(40)], engine(slots=40), HIDDEN)
    steps = of_log(log).iloc[1:]
    fit = from_steps.fit(steps, hold_out=0)
    assert predicted(fit.cost, steps).mean() == pytest.approx(steps["duration_ns"].mean(), rel=0.005)
    said = " ".join(fit.identified.lines())
    assert "per_chunk_work: not seen" in said
    assert {"host", "weight_pass"} <= set(fit.identified.unsure) | {
        name for group in fit.identified.tied for name in group
    } | set(fit.identified.unseen)


def test_a_term_that_is_not_there_is_zero_and_never_negative(mixed: pd.DataFrame) -> None:
    flat = Roofline(weight_pass=1e7, per_token=44e3)
    steps = noisy(mixed.assign(duration_ns=predicted(flat, mixed).round().astype(np.int64)), 0.05)
    found = from_steps.fit(steps).cost
    assert found.per_chunk_work * steps["chunk_work"].mean() < 0.02 * steps["duration_ns"].mean()
    assert all(getattr(found, term) >= 0 for term in from_steps.AsRoofline.terms)


def test_too_few_steps_are_refused(mixed: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="15 steps to fit; expected at least 20"):
        from_steps.fit(mixed.head(20))
    with pytest.raises(ValueError, match="hold-out is 1; expected a share"):
        from_steps.fit(mixed, hold_out=1)


def line(**changes: object) -> str:
    """A line of an instrumented engine: a prompt's second chunk and a decode, 20 ms on the clock, 15 of the CPU."""
    whole = {
        "type": "step",
        "scheduled": {"a": 64, "b": 1},
        "computed_before": {"a": 32, "b": 100},
        "t_sched0": 5.0,
        "t_upd": 5.02,
        "cpu0": [1000, 7],
        "cpu1": [15_001_000, 9],
    }
    return json.dumps(whole | changes)


def test_an_instrumented_engines_log_is_read_by_cpu_time_or_by_the_clock(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_text('{"type": "header"}\n' + line() + "\n" + line(scheduled={}) + "\n")
    (row,) = step_logs.read(path).to_dict("records")
    assert (row["decodes"], row["context"], row["chunks"], row["chunk_tokens"]) == (1, 100, 1, 64)
    assert row["chunk_work"] == 64 * (32 + 32)
    assert row["duration_ns"] == 15_000_000
    assert step_logs.read(path, "wall")["duration_ns"].tolist() == [20_000_000]


def test_tables_of_steps_are_read(tmp_path: Path, mixed: pd.DataFrame) -> None:
    mixed.to_csv(tmp_path / "steps.csv", index=False)
    mixed.to_parquet(tmp_path / "steps.parquet")
    for name in ("steps.csv", "steps.parquet"):
        pd.testing.assert_frame_equal(step_logs.read(tmp_path / name)[list(mixed)], mixed)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (line(t_upd="soon"), "row 1: t_upd is 'soon'; expected seconds"),
        (line(cpu1=None), "row 1: cpu1 is None; expected a list that begins with CPU time"),
        (line(scheduled={"a": 0}), "row 1: a has 0 tokens after 32; expected at least 1"),
        (line(scheduled={"c": 3}), "row 1: c has 3 tokens after None; expected whole numbers"),
        (line(cpu1=[1000]), "row 1: the step lasts 0 ns; expected at least 1"),
        ('{"type": "header"}', "no line of type step"),
        ("decodes,context,chunks,chunk_tokens,duration_ns\n1,5,1,3,9\n", "row 2: chunks is '1'; expected 0"),
        ("decodes,context,chunks,chunk_tokens,duration_ns\n1,5,0,0,0\n", "row 2: duration_ns is '0'; expected"),
        ("decodes,context\n1,5\n", "column chunks is missing"),
    ],
)
def test_what_is_no_step_is_refused_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "steps"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        step_logs.read(path)
    assert complaint in str(caught.value)


def test_a_table_has_no_other_clock(tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_text("decodes,context,chunks,chunk_tokens,duration_ns\n1,5,0,0,3\n")
    with pytest.raises(BadInput, match="expected no choice"):
        step_logs.read(path, "cpu")
