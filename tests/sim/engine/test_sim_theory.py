"""Queueing theory, with the engine in a degenerate setting.

One token of prompt and n of output take n steps. With one slot and steps of equal length that is a queue
whose service times are n steps, exactly; other settings give the other models. Each test runs SEEDS streams,
drops the first and the last tenth of the requests of each (the run starts and ends empty), and asserts that
the value of the theory of the discrete law lies in the 99.9% t-interval of the mean over seeds. Where theory
knows no steps, an arrival's wait for the end of a step (at most one) is allowed on the right side only.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from sim_stories import engine, run

from policies.sjf import ShortestJobFirst
from sim.accounting.frames import requests_frame, steps_frame
from sim.cost.forms import Affine, Unit
from sim.request import Request

pytestmark = [pytest.mark.simulation, pytest.mark.no_cover]  # many runs of what other tests cover line by line

SEEDS = range(16)
STEP = 1000
"""Nanoseconds of a step at unit cost, so that arrivals fall anywhere in one."""
UNLIMITED = 10**6


def arrivals(rng, load_per_step, count):
    """Poisson arrival times in whole nanoseconds, so many per step on average."""
    return np.rint(np.cumsum(rng.exponential(STEP / load_per_step, count))).astype(np.int64).tolist()


def requests_of(rng, load_per_step, outputs):
    """Poisson arrivals of requests with these outputs and one token of prompt."""
    times = arrivals(rng, load_per_step, len(outputs))
    return [
        Request(str(place), time, 1, output)
        for place, (time, output) in enumerate(zip(times, outputs.tolist(), strict=True))
    ]


def middle(frame):
    """The requests without the first and the last tenth."""
    tenth = len(frame) // 10
    return frame.iloc[tenth : len(frame) - tenth]


def steps_waited(frame):
    """Mean time from queue entry to admission, in steps."""
    return float((frame.admitted_ns - frame.queued_ns).mean()) / STEP


def steps_spent(frame):
    """Mean time from queue entry to completion, in steps."""
    return float((frame.ended_ns - frame.queued_ns).mean()) / STEP


def interval(samples):
    """The 99.9% t-interval of the mean."""
    return stats.t.interval(0.999, len(samples) - 1, np.mean(samples), stats.sem(samples))


def assert_covers(samples, theory, allowed=0.0):
    """`theory` lies in the interval; up to `allowed` more may have been measured."""
    low, high = interval(samples)
    assert low - allowed <= theory <= high, f"{theory:.4g} is not in [{low - allowed:.4g}, {high:.4g}]"
    # An interval that is too wide shows nothing.
    assert high - low <= 0.3 * theory


def served(scheduler, cost, requests):
    return middle(requests_frame(run(requests, scheduler, cost)))


def geometric(rng, mean, count):
    return rng.geometric(1 / mean, count)


def drawn(rng, law, count):
    """Outputs by a law {output: probability}."""
    return rng.choice(list(law), count, p=list(law.values()))


def moments(law):
    """E[S] and E[S^2] in steps."""
    return sum(p * n for n, p in law.items()), sum(p * n * n for n, p in law.items())


def pollaczek_khinchine(load_per_step, first, second):
    """Mean wait in M/G/1, in steps: lambda E[S^2] / (2 (1 - rho))."""
    return load_per_step * second / (2 * (1 - load_per_step * first))


def one_slot(order=None):
    return engine(slots=1, order=order)


@pytest.mark.slow
def test_m_m_1():
    # Geometric service of mean m: E[S^2] = (2 - p) / p^2 with p = 1 / m.
    mean, load = 20, 0.5
    waits = []
    for seed in SEEDS:
        rng = np.random.default_rng((1, seed))
        waits.append(
            steps_waited(served(one_slot(), Unit(STEP), requests_of(rng, load / mean, geometric(rng, mean, 8000))))
        )
    theory = pollaczek_khinchine(load / mean, mean, (2 - 1 / mean) * mean**2)
    assert_covers(waits, theory)
    # The continuous M/M/1 waits rho / (mu - lambda); the geometric law varies a little less.
    assert theory == pytest.approx(load / (1 / mean - load / mean), rel=1 / mean)


@pytest.mark.slow
def test_m_d_1():
    # Half the wait of M/M/1.
    output, load = 10, 0.6
    waits = []
    for seed in SEEDS:
        rng = np.random.default_rng((2, seed))
        waits.append(
            steps_waited(served(one_slot(), Unit(STEP), requests_of(rng, load / output, np.full(5000, output))))
        )
    assert_covers(waits, pollaczek_khinchine(load / output, output, output**2))
    assert_covers(waits, load * output / (2 * (1 - load)))


@pytest.mark.slow
def test_m_g_1():
    # Mostly short, now and then long: the squared coefficient of variation is 3.24.
    law = {5: 0.9, 55: 0.1}
    first, second = moments(law)
    load = 0.5 / first
    waits, sojourns = [], []
    for seed in SEEDS:
        rng = np.random.default_rng((3, seed))
        frame = served(one_slot(), Unit(STEP), requests_of(rng, load, drawn(rng, law, 8000)))
        waits.append(steps_waited(frame))
        sojourns.append(steps_spent(frame))
    assert_covers(waits, pollaczek_khinchine(load, first, second))
    assert_covers(sojourns, first + pollaczek_khinchine(load, first, second))


@pytest.mark.slow
def test_shortest_job_first():
    """Cobham: class k waits lambda E[S^2] / 2 / ((1 - s_below) (1 - s_below - s_k)), s the loads in order of size."""
    law = {2: 0.5, 10: 0.3, 40: 0.2}
    first, second = moments(law)
    load = 0.65 / first
    bounds = np.concatenate(([0], np.cumsum([load * p * n for n, p in law.items()])))
    residual = load * second / 2
    theory = {
        n: residual / ((1 - below) * (1 - upto)) for n, (below, upto) in zip(law, pairwise(bounds), strict=True)
    }
    waits, overall = {n: [] for n in law}, []
    for seed in SEEDS:
        rng = np.random.default_rng((4, seed))
        requests = requests_of(rng, load, drawn(rng, law, 8000))
        frame = served(one_slot(ShortestJobFirst()), Unit(STEP), requests)
        overall.append(steps_waited(frame))
        for output, group in frame.groupby("output"):
            waits[output].append(steps_waited(group))
    for output, samples in waits.items():
        assert_covers(samples, theory[output])
    assert_covers(overall, sum(p * theory[n] for n, p in law.items()))
    assert np.mean(overall) < 0.8 * pollaczek_khinchine(load, first, second)


def batch_chain(load_per_step, leave, servers, length, most):
    """Mean sojourn (steps) of a queue that changes at step boundaries only, from its exact Markov chain.

    N at the start of a step; min(N, servers) of them are served, each ends in this step with probability
    `leave`; the step lasts length(N) unit steps, Poisson arrivals of that time join at its end. An arrival
    to an empty system starts the step at once. The time average of N, by renewal-reward and with arrivals
    counted from their instant, over the arrival rate is the sojourn (Little).
    """
    states = np.arange(most + 1)
    lengths = np.array([length(n) for n in states], dtype=float)
    lengths[0] = 1 / load_per_step
    move = np.zeros((most + 1, most + 1))
    move[0, 1] = 1
    for n in range(1, most + 1):
        ends = stats.binom.pmf(np.arange(min(n, servers) + 1), min(n, servers), leave)
        comes = stats.poisson.pmf(states, load_per_step * lengths[n])
        for gone, weight in enumerate(ends):
            left = n - gone
            move[n, left:] += weight * comes[: most + 1 - left]
        move[n, most] += 1 - move[n].sum()
    system = np.vstack((move.T - np.eye(most + 1), np.ones(most + 1)))
    visits = np.linalg.lstsq(system, np.concatenate((np.zeros(most + 1), [1])), rcond=None)[0]
    assert visits[-1] < 1e-9
    in_step = states * lengths + load_per_step * lengths**2 / 2
    in_step[0] = 0
    return float(visits @ in_step / (visits @ lengths) / load_per_step)


def erlang_c(servers, offered):
    """The probability to wait in M/M/c."""
    terms = np.cumprod(np.concatenate(([1], offered / np.arange(1, servers + 1))))
    last = terms[-1] * servers / (servers - offered)
    return float(last / (terms[:-1].sum() + last))


def test_the_chain_of_a_single_server_is_pollaczek_khinchine():
    # One server that is free at boundaries only is the discrete M/G/1: the chain itself held to a right answer.
    mean, load = 6, 0.5
    theory = mean + pollaczek_khinchine(load / mean, mean, (2 - 1 / mean) * mean**2)
    assert batch_chain(load / mean, 1 / mean, 1, lambda n: 1, 120) == pytest.approx(theory, rel=1e-6)


@pytest.mark.slow
def test_m_m_4():
    # Four slots at unit cost, geometric outputs. Erlang C knows no steps: it is met from above, within one.
    mean, load = 40, 0.6
    rate = 4 * load / mean
    waits, sojourns = [], []
    for seed in SEEDS:
        rng = np.random.default_rng((5, seed))
        frame = served(engine(slots=4), Unit(STEP), requests_of(rng, rate, geometric(rng, mean, 8000)))
        waits.append(steps_waited(frame))
        sojourns.append(steps_spent(frame))
    assert_covers(sojourns, batch_chain(rate, 1 / mean, 4, lambda n: 1, 150))
    assert_covers(waits, erlang_c(4, 4 * load) / (4 / mean - rate), allowed=1)


SHARED = Affine(per_sequence=STEP, per_prefill_token=STEP)
"""A step lasts one unit for each sequence in the batch: each gets 1 / n of the engine."""


@pytest.mark.slow
def test_processor_sharing():
    # Unlimited slots. M/M/1-PS with geometric outputs: the chain in which a step lasts n units is exact.
    mean, load = 30, 0.6
    sojourns = []
    for seed in SEEDS:
        rng = np.random.default_rng((6, seed))
        requests = requests_of(rng, load / mean, geometric(rng, mean, 5000))
        sojourns.append(steps_spent(served(engine(slots=UNLIMITED), SHARED, requests)))
    assert_covers(sojourns, batch_chain(load / mean, 1 / mean, UNLIMITED, lambda n: n, 150))
    # E[S] / (1 - rho), and at most the step in which one comes, which is longer the more there are.
    assert_covers(sojourns, mean / (1 - load), allowed=(1 + load) / (1 - load))


@pytest.mark.slow
def test_processor_sharing_does_not_care_about_the_law():
    # The mean is E[S] / (1 - rho) whatever the law, and the stretch is the same for every size.
    law = {20: 0.8, 220: 0.2}
    first, _ = moments(law)
    load = 0.6
    sojourns, by_size, steps = [], {n: [] for n in law}, []
    for seed in SEEDS:
        rng = np.random.default_rng((7, seed))
        log = run(requests_of(rng, load / first, drawn(rng, law, 5000)), engine(slots=UNLIMITED), SHARED)
        frame = middle(requests_frame(log))
        sojourns.append(steps_spent(frame))
        for output, group in frame.groupby("output"):
            by_size[output].append(steps_spent(group))
        lasts = steps_frame(log).duration_ns / STEP
        steps.append(float((lasts**2).sum() / lasts.sum()))
    # The step that an arrival meets, whole.
    allowed = float(np.mean(steps))
    assert_covers(sojourns, first / (1 - load), allowed)
    for output, samples in by_size.items():
        assert_covers(samples, output / (1 - load), allowed)


@pytest.mark.slow
def test_m_g_infinity():
    # Unlimited slots at unit cost. All whose arrival and last step enclose a boundary are in the batch: their number
    # is Poisson with mean lambda E[S], exactly, whatever the law. The sojourn adds the rest of the step one comes in.
    law = {10: 0.5, 40: 0.4, 100: 0.1}
    first, _ = moments(law)
    offered = 20
    numbers, squares, sojourns = [], [], []
    for seed in SEEDS:
        rng = np.random.default_rng((8, seed))
        log = run(requests_of(rng, offered / first, drawn(rng, law, 6000)), engine(slots=UNLIMITED), Unit(STEP))
        frame = steps_frame(log)
        batch = (frame.decode + frame.prefill).to_numpy()
        tenth = len(batch) // 10
        batch = batch[tenth:-tenth]
        numbers.append(batch.mean())
        squares.append(np.mean((batch - offered) ** 2))
        sojourns.append(steps_spent(middle(requests_frame(log))))
    assert_covers(numbers, offered)
    assert_covers(squares, offered)
    assert_covers(sojourns, first + 0.5)
    assert_covers(sojourns, first, allowed=1)
