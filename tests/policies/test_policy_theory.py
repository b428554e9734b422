"""Priority classes and random order against queueing theory: one slot, so service is the output in steps.

As in the kernel's own theory tests, each runs many streams, drops the first and the last tenth of each, and asserts
that theory lies in the 99.9% t-interval of the mean over them.
"""

import numpy as np
import pytest
from scipy import stats
from sim_stories import engine, run

from policies.registry import build
from sim.accounting.frames import requests_frame
from sim.cost.forms import Unit
from sim.request import Request

pytestmark = [pytest.mark.simulation, pytest.mark.no_cover]  # many runs of what other tests cover line by line

SEEDS = range(16)
STEP = 1000
LAW = {4: 0.7, 16: 0.3}
FIRST = sum(share * steps for steps, share in LAW.items())
SECOND = sum(share * steps**2 for steps, share in LAW.items())


def frame_of(name, seed, load, count=3000, urgent=0.4):
    """The middle of one stream: Poisson arrivals, outputs by LAW, a share of them in class 0 and the rest in 1."""
    rng = np.random.default_rng((seed, count))
    times = np.rint(np.cumsum(rng.exponential(STEP * FIRST / load, count))).astype(int).tolist()
    outputs = rng.choice(list(LAW), count, p=list(LAW.values())).tolist()
    classes = (rng.random(count) >= urgent).astype(int).tolist()
    requests = [
        Request(str(place), time, 1, output, priority=level)
        for place, (time, output, level) in enumerate(zip(times, outputs, classes, strict=True))
    ]
    frame = requests_frame(run(requests, engine(slots=1, order=build(name, {}, seed)), Unit(STEP)))
    frame["wait"] = (frame.admitted_ns - frame.queued_ns).astype(float) / STEP
    frame["level"] = classes
    return frame.iloc[count // 10 : -count // 10]


def assert_covers(samples, theory, allowed=0.0):
    """`theory` lies in the interval; up to `allowed` more may have been measured."""
    low, high = stats.t.interval(0.999, len(samples) - 1, np.mean(samples), stats.sem(samples))
    assert low - allowed <= theory <= high, f"{theory:.4g} is not in [{low:.4g}, {high:.4g}]"
    assert high - low <= 0.3 * theory


@pytest.mark.slow
def test_priority_without_preemption():
    """Cobham (1954): R / (1 - r0) for class 0, R / ((1 - r0) (1 - r)) for class 1, R = lambda E[S^2] / 2."""
    load, urgent = 0.6, 0.4
    residual = load / FIRST * SECOND / 2
    frames = [frame_of("priority", seed, load, urgent=urgent) for seed in SEEDS]
    waits = [[frame.wait[frame.level == level].mean() for frame in frames] for level in (0, 1)]
    assert_covers(waits[0], residual / (1 - urgent * load))
    assert_covers(waits[1], residual / ((1 - urgent * load) * (1 - load)))


def schrage_miller(load, most):
    """Mean time in M/G/1 under preemptive SRPT with sizes uniform on 1..most steps (Schrage and Miller 1966).

    Size x waits lambda (integral of t^2 f up to x + x^2 (1 - F(x))) / (2 (1 - r(x))^2), then takes the integral of
    1 / (1 - r(t)) up to x, where r(x) is the load of those up to x. Here in whole steps, by size.
    """
    sizes = np.arange(1, most + 1)
    rate, share = load / sizes.mean(), 1 / most
    upto = np.cumsum(rate * share * sizes)
    below = upto - rate * share * sizes
    larger = 1 - sizes * share
    squares = np.cumsum(share * sizes**2)
    waiting = rate * (squares + sizes**2 * larger) / (2 * (1 - below) * (1 - upto))
    residence = np.cumsum(1 / (1 - below))
    return waiting + residence


@pytest.mark.slow
def test_shortest_remaining_time_with_preemption():
    """Preempted by swap, which is free here: no work is lost, so each token takes one step whatever happens.

    Schrage and Miller know no steps: an arrival waits for the end of one, at most.
    """
    load, most, count = 0.7, 60, 2500
    theory = schrage_miller(load, most)
    spent = {"all": [], "long": []}
    for seed in SEEDS:
        rng = np.random.default_rng((9, seed))
        outputs = rng.integers(1, most + 1, count)
        arrivals = np.rint(np.cumsum(rng.exponential(STEP * (most + 1) / 2 / load, count))).astype(int).tolist()
        requests = [Request(str(n), arrivals[n], 1, int(outputs[n])) for n in range(count)]
        order = build("srpt", {"preemptive": True}, seed)
        log = run(requests, engine(slots=1, order=order, swap=True), Unit(STEP))
        frame = requests_frame(log).iloc[count // 10 : -count // 10]
        times = (frame.ended_ns - frame.queued_ns).astype(float) / STEP
        spent["all"].append(times.mean())
        spent["long"].append(times[frame.output > most // 2].mean())
    assert_covers(spent["all"], theory.mean(), allowed=1)
    assert_covers(spent["long"], theory[most // 2 :].mean(), allowed=1)


@pytest.mark.slow
def test_a_random_order_has_the_mean_wait_of_first_come_first_served_and_wider_ones():
    # Pollaczek and Khinchine hold for every order that does not look at lengths.
    load = 0.7
    lots = [frame_of("random", seed, load).wait for seed in SEEDS]
    assert_covers([waits.mean() for waits in lots], load / FIRST * SECOND / 2 / (1 - load))
    lines = [frame_of("fcfs", seed, load).wait for seed in SEEDS[:8]]
    assert np.mean([waits.std() for waits in lots]) > 1.1 * np.mean([waits.std() for waits in lines])
