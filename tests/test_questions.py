"""The numbers of docs/questions.md, by hand, from theory, or by counting the requests that were drawn."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable
from math import ceil

import numpy as np
import pytest
from pandas import DataFrame, Series
from repository import ROOT
from scipy import stats

import slotstep
from sim.request import Request
from slotstep.runs import workload

pytestmark = pytest.mark.simulation

QUESTIONS = ROOT / "examples" / "questions"
Answer = Callable[[str], DataFrame]


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """The rows of a question's runs, all of which have ended, and finished every request."""

    def rows(name: str) -> DataFrame:
        folder = tmp_path_factory.mktemp(name) / "runs"
        frame = slotstep.sweep(slotstep.load_grid(QUESTIONS / f"{name}.yaml"), folder, jobs=1).frame()
        assert (frame.status == "ended").all()
        assert (frame.requests_finished == frame.requests_injected).all()
        return frame

    return rows


def requests_of(row: Series) -> list[Request]:
    """The requests of a run, drawn again from its settings."""
    return workload.requests(slotstep.parse(json.loads(row.settings)))


def assert_mean(values: Series, theory: float, confidence: float = 0.999) -> None:
    """The theory is in the interval of the seeds' mean, by Student's t."""
    half = stats.sem(values) * stats.t.ppf((1 + confidence) / 2, len(values) - 1)
    assert abs(values.mean() - theory) <= half, (values.mean(), theory, half)


def test_every_question_has_its_runs_and_its_query_on_the_page() -> None:
    page = (ROOT / "docs" / "questions.md").read_text()
    names = {path.stem for path in QUESTIONS.glob("*.yaml")}
    assert names == {path.stem for path in QUESTIONS.glob("*.sql")}
    for name in names:
        assert f"$ rm -rf out/{name}; slotstep sweep examples/questions/{name}.yaml --out out/{name}\n" in page
        assert f'$ slotstep results out/{name} --query "$(cat examples/questions/{name}.sql)"\n' in page
    for line in page.splitlines():
        if line.startswith("- ["):
            title, _, link = line.removeprefix("- [").partition("](#")
            assert link == f"{title.lower().replace(' ', '-')})"
            assert f"\n## {title}\n" in page


def test_the_last_token_of_each_of_three_answers_is_lost(answer: Answer) -> None:
    outputs = (2, 4, 1)
    rows = answer("lost-token").set_index(["engine_evict", "engine_harvest"])
    usual, late, lossy = (rows.loc[key] for key in (("before", "step"), ("after", "step"), ("after", "next")))
    assert (usual.steps, late.steps, lossy.steps) == (4, 5, 5)
    assert (usual.slot_steps_held, late.slot_steps_held, lossy.slot_steps_held) == (0, 3, 3)
    assert usual.tokens_lost == late.tokens_lost == 0
    assert usual.tokens_output == late.tokens_output == sum(outputs)
    assert lossy.tokens_lost == len(outputs)
    results = [slotstep.run(slotstep.parse(json.loads(row.settings))) for row in (late, lossy)]
    kept, lost = (result.requests for result in results)
    assert kept.tokens.tolist() == list(outputs)
    assert lost.tokens.tolist() == [output - 1 for output in outputs]
    assert lost.ttft_s.tolist()[:2] == kept.ttft_s.tolist()[:2]
    assert np.isnan(lost.ttft_s.iloc[2])
    assert late.itl_s_n == sum(output - 1 for output in outputs)
    assert lossy.itl_s_n == sum(max(output - 2, 0) for output in outputs)


def test_a_splice_copies_the_prompt_or_the_whole_rectangle(answer: Answer) -> None:
    rows = answer("splice")
    copied = dict(zip(zip(rows.name, rows.engine_memory, strict=True), rows.makespan_s * 1e6, strict=True))
    steps = 4 * 1000
    rectangle = [(1, 103), (2, 253), (3, 503), (4, 1000)]
    growing = sum(sequences * length for sequences, length in rectangle)
    assert copied["growing", "contiguous"] - steps == pytest.approx(growing)
    assert copied["shrinking", "contiguous"] - steps == pytest.approx(1000 + 500 + 250 + 100)
    assert copied["growing", "paged"] == copied["shrinking", "paged"] == pytest.approx(steps)


@pytest.mark.slow
def test_under_load_copies_are_little_and_reserved_positions_much(answer: Answer) -> None:
    runs = dict(list(answer("splice-load").groupby("name")))
    contiguous, free, paged = (
        runs[name].set_index("seed") for name in ("contiguous", "contiguous with free copies", "paged")
    )
    positions = (contiguous.makespan_s - free.makespan_s) / 78e-9
    for seed, row in contiguous.iterrows():
        lengths = [(request.prompt, request.prompt + 999) for request in requests_of(row)]
        longest, records, prompts = 0, 0, 0
        for prompt, length in lengths:
            records += length if length > longest else 0
            prompts += prompt if length <= longest else 0
            longest = max(longest, length)
        assert prompts + records <= round(positions[seed]) <= prompts + 64 * records
    assert round((positions * 78e-9 / contiguous.makespan_s).mean(), 3) == 0.001
    into_answer = (401 * 801 / 6 - 401 / 2) / 401
    assert_mean(contiguous.pages_mean_live_fraction, (500 + into_answer) / 1499)
    assert (paged.concurrency_running_mean > 2 * contiguous.concurrency_running_mean).all()


def steps_of_a_backlog(outputs: list[int], slots: int) -> int:
    """Steps until all have ended, when the next in line takes the slot that is free first."""
    free = [0] * slots
    for output in outputs:
        heapq.heapreplace(free, free[0] + output)
    return max(free)


@pytest.mark.slow
def test_a_backlog_takes_what_list_scheduling_takes_within_grahams_bound(answer: Answer) -> None:
    rows = answer("output-law")
    for _, row in rows.iterrows():
        outputs = [request.output for request in requests_of(row)]
        total, longest = sum(outputs), max(outputs)
        assert row.steps == steps_of_a_backlog(outputs, 16)
        assert total / (total + 15 * longest) <= row.occupancy <= total / (16 * longest)
    by_law = rows.groupby(["name", "workload_synthetic_requests"]).occupancy.mean()
    assert by_law["fixed at 100"].tolist() == [pytest.approx(n / (16 * ceil(n / 16))) for n in (50, 500, 5000)]
    assert by_law["Pareto 0.75, cut at 4096", 5000] > 0.8
    assert by_law["Pareto 0.75"].max() < 0.25


def test_the_sum_of_a_pareto_law_stays_below_four_times_its_longest() -> None:
    draws = 1 + np.random.default_rng(7).pareto(0.75, (2000, 5000))
    shares = draws.sum(axis=1) / draws.max(axis=1)
    assert 3.5 < shares.mean() < 4 + 3 * stats.sem(shares)


@pytest.mark.slow
def test_rules_of_admission_by_what_they_assume(answer: Answer) -> None:
    rows = answer("unknown-length")
    runs = {name: frame.set_index("seed") for name, frame in rows.groupby("name")}
    reserve, peak, ratio, optimistic = (runs[name] for name in ("reserve", "peak", "ratio", "optimistic"))
    assert (reserve.concurrency_running_peak == 1380 // ceil(1099 / 16)).all()
    assert (optimistic.concurrency_running_peak == 1380 // ceil(100 / 16)).all()
    assert not reserve.preemptions.any()
    assert not peak.preemptions.any()
    assert not ratio.preemptions.any()
    steps = [(100 + step, length) for length in range(1, 401) for step in range(length)]
    held = sum(ceil(positions / 16) for positions, _ in steps) / len(steps)
    assert 1380 / held == pytest.approx(92, abs=0.5)
    assert_mean(peak.pages_mean_used / peak.concurrency_running_mean, held)
    for name in ("quantile, 1%", "optimistic, 90 slots"):
        rate = runs[name].rates_output_tokens_per_s
        assert (rate > 3 * reserve.rates_output_tokens_per_s).all()
        assert (rate > optimistic.rates_output_tokens_per_s).all()
        assert (rate > 1.2 * ratio.rates_output_tokens_per_s).all()
        assert (runs[name].preemptions < optimistic.preemptions / 2).all()


@pytest.mark.slow
def test_every_sequence_has_a_half_empty_page_that_the_sum_does_not_count(answer: Answer) -> None:
    rows = answer("page-sum")
    for _, row in rows.iterrows():
        prompts = [request.prompt for request in requests_of(row)]
        assert row.pages_peak_used == sum(ceil(prompt / row.engine_page_size) for prompt in prompts)
        assert row.tokens_prompt == sum(prompts)
    for size, runs in rows.groupby("engine_page_size"):
        empty = (runs.pages_peak_used * size - runs.tokens_prompt) / 512
        if size == 1:
            assert not empty.any()
        else:
            assert_mean(empty, (size - 1) / 2)
        short = runs.pages_peak_used - np.ceil(runs.tokens_prompt / size)
        assert short.mean() == pytest.approx(512 * (size - 1) / 2 / size, abs=8)


def test_a_repeated_prompt_is_computed_once(answer: Answer) -> None:
    rows = answer("one-prompt").set_index("name")
    one, half, distinct = (rows.loc[name] for name in ("one prompt", "one first half", "200 prompts"))
    assert distinct.tokens_computed == 200 * (1040 + 19)
    assert half.tokens_computed == 200 * (1040 + 19) - 199 * 512
    assert one.tokens_computed == 1040 + 199 * 16 + 200 * 19
    assert one.cache_hit_rate == pytest.approx(199 * 1024 / (200 * 1040))
    assert distinct.cache_hit_rate == 0
    assert one.pages_peak_used == 64 + 32 * (ceil(1059 / 16) - 64)
    assert 31 * 67 < distinct.pages_peak_used <= 32 * 67
    for row in (one, half, distinct):
        assert row.makespan_s == pytest.approx(0.010 * row.steps + 40e-6 * (row.tokens_computed - 200 * 19))


def test_the_same_prompt_throughout_gives_what_one_with_another_last_page_gives() -> None:
    requests = [{"tokens": list(range(1040)), "output": 20} for _ in range(200)]
    grid = slotstep.load_grid(QUESTIONS / "one-prompt.yaml")
    scenario = next(point.scenario for point in grid.points if point.axes["name"] == "one prompt")
    assert scenario is not None
    settings = slotstep.resolved(scenario)
    same = slotstep.run(slotstep.parse(settings | {"workload": {"requests": requests}})).summary
    assert same["tokens"]["computed"] == 1040 + 199 * 16 + 200 * 19
    assert same["pages"]["peak_used"] == 160


def test_a_closed_loop_shows_its_clients_and_an_open_one_the_queue(answer: Answer) -> None:
    rows = answer("closed-loop").set_index("name")
    free, first_tokens = [0] * 16, []
    for arrival in range(0, 1200 * 50, 50):
        begins = max(free[0], 20 * ceil(arrival / 20))
        heapq.heapreplace(free, begins + 1000)
        first_tokens.append((begins + 20 - arrival) / 1000)
    queue, window = rows.loc["open loop"], rows.loc["window of 16"]
    assert queue.ttft_s_max == queue.client_ttft_s_max == pytest.approx(max(first_tokens))
    assert queue.makespan_s == pytest.approx(max(free) / 1000)
    for row in (queue, window):
        assert row.queue_grows
        assert row.attainment == 80 / 1200
        assert row.client_ttft_s_max == pytest.approx(max(first_tokens))
    assert window.ttft_s_max < 0.04
    for clients in (16, 32, 64):
        row = rows.loc[f"{clients} clients"]
        assert row.rates_finished_per_s == pytest.approx(16)
        assert row.e2e_s_max == pytest.approx(clients / 16)
        assert row.ttft_s_max == pytest.approx(clients / 16 - 1 + 0.020)
        assert row.client_wait_s_max == 0


def mean_of_longest(most: int, members: int) -> float:
    """E of the largest of so many whole numbers, uniform from 1 to `most`: the sum of P(largest > k)."""
    return float(sum(1 - (k / most) ** members for k in range(most)))


@pytest.mark.slow
def test_padding_and_held_slots_cost_what_the_longest_of_a_batch_exceeds_the_mean_by(answer: Answer) -> None:
    laws = {"chat": (500, 400), "code completion": (4000, 50)}
    for (name, slots), runs in answer("padding").groupby(["name", "engine_slots"]):
        prompt, output = (mean_of_longest(most, slots) - (1 + most) / 2 for most in laws[name])
        assert_mean(runs.tokens_padding, 640 * prompt)
        assert_mean(runs.slot_steps_held, 640 * output)
        assert_mean(runs.slot_seconds_held, 640 * output * 0.010)
        ratio = (runs.tokens_padding * slots * 40e-6 / runs.slot_seconds_held).mean()
        assert ratio == pytest.approx(slots * 40e-6 / 0.010 * laws[name][0] / laws[name][1], rel=0.05)
        made = runs.steps * 0.010 + (runs.tokens_prompt + runs.tokens_padding) * 40e-6
        assert runs.makespan_s.tolist() == pytest.approx(made.tolist())
