"""What is said of repeated runs, held to what is known: coverage of theory's values, exact zeros, chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sim_stories import engine, run

from reports.statistics.intervals import mean, percentile, pooled_percentile
from reports.statistics.paired import difference
from reports.statistics.replications import OF_LATENCIES, Replication, Replications, sentence
from reports.statistics.warmup import mser5
from sim.accounting.queue_growth import grows
from sim.accounting.requests import RequestRecords
from sim.cost.forms import Unit
from sim.request import Request

pytestmark = pytest.mark.simulation

STEP = 1000
REPETITIONS = 200


def requests_of(rng: np.random.Generator, load: float, count: int, mean_output: int = 20) -> list[Request]:
    """Poisson arrivals of geometric outputs for one slot: M/M/1 in steps of STEP nanoseconds."""
    outputs = rng.geometric(1 / mean_output, count)
    times = np.rint(np.cumsum(rng.exponential(STEP * mean_output / load, count))).astype(np.int64)
    return [
        Request(str(place), time, 1, output)
        for place, (time, output) in enumerate(zip(times.tolist(), outputs.tolist(), strict=True))
    ]


def mean_wait(load: float, seed: tuple[int, ...], count: int, warm_up: int) -> float:
    """The mean wait in one run, in steps."""
    log = run(requests_of(np.random.default_rng(seed), load, count), engine(slots=1), Unit(STEP))
    records = RequestRecords(log)
    return float((records.admitted - records.queued)[warm_up:].mean()) / STEP


@pytest.fixture(scope="module")
def waits() -> np.ndarray:
    """Mean waits in M/M/1 at load 0.3: REPETITIONS experiments of five runs each."""
    flat = [mean_wait(0.3, (1, place), 170, 20) for place in range(5 * REPETITIONS)]
    return np.array(flat).reshape(REPETITIONS, 5)


@pytest.mark.slow
@pytest.mark.no_cover
def test_intervals_cover_the_mean_wait_of_m_m_1(waits: np.ndarray) -> None:
    # Pollaczek and Khinchine, with the geometric law of mean 20: E[S^2] = (2 - p) / p^2.
    load, p = 0.3, 1 / 20
    theory = load * p * (2 - p) / p**2 / (2 * (1 - load))
    covered = sum(mean(five).holds(theory) for five in waits)
    assert 0.90 * REPETITIONS <= covered <= 0.99 * REPETITIONS


@pytest.mark.no_cover
def test_independent_streams_of_one_policy_are_seldom_called_different(waits: np.ndarray) -> None:
    called = sum(
        difference(first.tolist(), second.tolist()).differ
        for first, second in zip(waits[::2], waits[1::2], strict=True)
    )
    assert called <= 11


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_percentile_intervals_cover_those_of_an_exponential(share: float) -> None:
    rng = np.random.default_rng(2)
    theory = -math.log(1 - share)
    covered = sum(percentile(rng.exponential(size=1000), share).holds(theory) for _ in range(REPETITIONS))
    assert 0.90 * REPETITIONS <= covered <= 0.99 * REPETITIONS


def test_pooled_percentiles_know_that_samples_of_a_run_hang_together() -> None:
    # Each run shifts all its samples by its own draw: between the runs they are N(0, 2), and the median is 0.
    rng = np.random.default_rng(3)
    naive = covered = 0
    for _ in range(REPETITIONS):
        groups = [rng.normal(size=200) + rng.normal() for _ in range(10)]
        covered += pooled_percentile(groups, 0.5).holds(0.0)
        naive += percentile(np.concatenate(groups), 0.5).holds(0.0)
    assert 0.90 * REPETITIONS <= covered <= 0.99 * REPETITIONS
    assert naive < 0.5 * REPETITIONS


def test_of_independent_samples_a_pooled_percentile_is_about_the_plain_one() -> None:
    rng = np.random.default_rng(4)
    groups = [rng.exponential(size=500) for _ in range(20)]
    pooled, plain = pooled_percentile(groups, 0.9), percentile(np.concatenate(groups), 0.9)
    assert pooled.value == plain.value
    assert 0.5 < (pooled.high - pooled.low) / (plain.high - plain.low) < 2


def test_an_interval_by_hand() -> None:
    # 1, 2, 3: mean 2, deviation 1, so the reach is t(0.975, 2) / sqrt(3) = 4.3027 / 1.7321.
    found = mean([1.0, 2.0, 3.0])
    assert (found.value, found.n) == (2.0, 3)
    assert found.high - 2 == pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    # Six samples: the median lies between the first and the last with probability 1 - 2 / 64 = 96.9%.
    six = percentile([6.0, 5.0, 4.0, 3.0, 2.0, 1.0], 0.5)
    assert (six.low, six.value, six.high) == (1.0, 3.5, 6.0)
    # Of five it is 93.75% between the extremes: no interval at 95%.
    five = percentile([5.0, 4.0, 3.0, 2.0, 1.0], 0.5)
    assert (five.low, five.high) == (-math.inf, math.inf)


@given(
    st.lists(st.integers(-(10**9), 10**9).map(lambda n: n / 1000), min_size=2, max_size=60, unique=True),
    st.sampled_from([0.9, 0.95, 0.99]),
)
def test_intervals_are_those_of_scipy(samples: list[float], confidence: float) -> None:
    found = mean(samples, confidence)
    low, high = stats.t.interval(confidence, len(samples) - 1, np.mean(samples), stats.sem(samples))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9, abs=1e-9)
    for share in (0.1, 0.5, 0.99):
        ranks = percentile(samples, share, confidence)
        theirs = stats.quantile_test(samples, p=share).confidence_interval(confidence)
        assert ranks.low == theirs.low or (ranks.low == -math.inf and math.isnan(theirs.low))
        assert ranks.high == theirs.high or (ranks.high == math.inf and math.isnan(theirs.high))


def test_what_never_came_counts_as_longest() -> None:
    came = [float(value) for value in range(1, 96)]
    found = percentile([*came, *[math.inf] * 5], 0.9)
    assert found.value == pytest.approx(1 + 0.9 * 99)
    assert found.high == math.inf
    assert percentile([*came, *[math.inf] * 5], 0.99).value == math.inf
    assert percentile([*came, *[math.inf] * 5], 0.5).high < math.inf


def test_one_sample_has_no_bounds_and_none_no_mean() -> None:
    assert (mean([3.0]).low, mean([3.0]).high) == (-math.inf, math.inf)
    with pytest.raises(ValueError, match="no samples"):
        mean([])
    with pytest.raises(ValueError, match="share is 1"):
        percentile([1.0], 1)


def test_seeds_without_a_value_are_left_out_and_counted() -> None:
    found = difference([1.0, 2.0, math.inf, 4.0], [2.0, 3.0, 5.0, math.nan])
    assert found.estimate is not None
    assert (found.estimate.value, found.estimate.n, found.left_out) == (1.0, 2, 2)
    assert difference([math.inf], [1.0]).estimate is None


def test_a_verdict_says_the_difference_its_interval_and_n() -> None:
    rng = np.random.default_rng(5)
    luck = rng.normal(0, 3, 20)
    first = (10 + luck).tolist()
    second = (8.8 + luck + rng.normal(0, 0.3, 20)).tolist()
    said = sentence(("fcfs", "fair"), "p99 TTFT", difference(first, second), lambda value: f"{value:.1f} s")
    assert said.startswith("fcfs and fair differ in p99 TTFT by -1.")
    assert said.endswith("], 20 seeds.")
    equal = sentence(("a", "b"), "p99 TTFT", difference(first, first), str)
    assert equal == "a and b are equal in p99 TTFT, 20 seeds."
    alike = sentence(("a", "b"), "wait", difference([1.0, 2.0, 3.0], [2.0, 1.0, 3.0]), lambda value: f"{value:.2f}")
    assert alike == "a and b are not told apart in wait: 0.00 [-2.48, 2.48], 3 seeds."


def test_the_cut_is_where_the_transient_ends() -> None:
    rng = np.random.default_rng(6)
    steady = rng.normal(10, 1, 1000)
    assert mser5(steady).samples <= 100
    rising = steady.copy()
    rising[:200] -= np.linspace(10, 1, 200)
    cut = mser5(rising)
    assert 150 <= cut.samples <= 250
    assert cut.settled
    assert not mser5(np.arange(100.0)).settled
    assert mser5(np.ones(9)).samples == 0


def test_a_cut_takes_the_transient_out_of_the_mean() -> None:
    waits = np.concatenate((np.zeros(50), np.full(450, 2.0)))
    latencies = dict.fromkeys(("wait_s", "ttft_s", "tpot_s", "e2e_s"), waits)
    nothing = {"occupancy": None, "output_tokens_per_s": None, "attainment": None}
    runs = Replications((0, 1), {"fcfs": [Replication(latencies, nothing, False)] * 2})
    (metric,) = (metric for metric in OF_LATENCIES if metric.key == "ttft_s_mean")
    with_all, warm = (runs.estimate("fcfs", metric, warm) for warm in (False, True))
    assert with_all is not None
    assert warm is not None
    assert (with_all.value, warm.value) == (1.8, 2.0)


def verdict_at(load: float, seed: int, count: int) -> bool | None:
    log = run(requests_of(np.random.default_rng((9, seed)), load, count), engine(slots=1), Unit(STEP))
    return grows([log])


@pytest.mark.slow
def test_an_engine_that_is_asked_too_much_is_unstable_and_one_at_nine_tenths_is_not() -> None:
    assert [verdict_at(1.1, seed, 3000) for seed in range(5)] == [True] * 5
    assert [verdict_at(0.9, seed, 3000) for seed in range(5)] == [False] * 5


def test_there_is_no_telling_from_a_backlog() -> None:
    jobs = [Request(str(place), 0, 1, 5) for place in range(10)]
    assert grows([run(jobs, engine(slots=1))]) is None


def test_a_burst_that_clears_is_not_growth() -> None:
    # A hundred at once, then one every tenth step: the queue clears before the last third.
    burst = [Request(f"b{place}", 0, 1, 5) for place in range(100)]
    later = [Request(f"l{place}", 10 * place, 1, 5) for place in range(1, 200)]
    assert grows([run([*burst, *later], engine(slots=1))]) is False
    # The same at the end does not.
    late = [Request(f"e{place}", 1100 + 2 * place, 1, 5) for place in range(400)]
    assert grows([run([*later[:100], *late], engine(slots=1))]) is True


def test_whoever_waits_for_the_next_step_is_no_queue() -> None:
    # Slots for all: each is admitted at the next step's plan, though at any instant somebody waits for it.
    dense = [Request(str(place), place, 1, 50) for place in range(1000)]
    assert grows([run(dense, engine(slots=10_000), Unit(100))]) is False
