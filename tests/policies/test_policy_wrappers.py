"""A cap on waiting and ageing, over orders that starve."""

import numpy as np
import pytest
from sim_stories import engine, happenings, job, run

from policies.fcfs import FirstComeFirstServed
from policies.registry import build
from policies.sjf import ShortestJobFirst
from sim.accounting.frames import requests_frame
from sim.cost.forms import Unit
from sim.request import Request


def served(log):
    return [event.who for event in happenings(log, "admitted")]


@pytest.mark.parametrize(
    ("cap", "turn"),
    [
        (10**9, 5),  # by length, last
        (20, 3),  # at 20 it has waited just 20, which is not longer; at 30 it goes
        (19, 2),
        (0, 1),  # at 0 it has not waited: the shortest goes first
    ],
)
def test_nobody_waits_longer_than_the_cap_while_the_short_go_first(cap, turn):
    requests = [job("long", 5), *[job(f"short{place}", 1) for place in range(5)]]
    order = build("max_wait", {"order": "sjf", "max_wait": cap}, 0)
    log = run(requests, engine(slots=1, order=order), Unit(10))
    assert served(log).index("long") == turn


def test_of_the_overdue_the_oldest_goes_first_and_the_others_by_the_order():
    # "first" runs to 100. With a cap of 50 those of 10 and 20 are overdue then, those of 60 and 70 are not.
    requests = [
        job("first", 10),
        job("old", 9, arrival=10),
        job("older-than-it-looks", 1, arrival=20),
        job("long", 5, arrival=60),
        job("short", 1, arrival=70),
    ]
    log = run(requests, engine(slots=1, order=build("max_wait", {"max_wait": 50}, 0)), Unit(10))
    # "old" ends at 190, where all are overdue.
    assert served(log) == ["first", "old", "older-than-it-looks", "long", "short"]
    log = run(requests[:3] + requests[4:], engine(slots=1, order=build("max_wait", {"max_wait": 85}, 0)), Unit(10))
    # Only "old" is overdue at 100; at 190 all are. Without a cap the short would have gone first.
    assert served(log) == ["first", "old", "older-than-it-looks", "short"]
    log = run(requests, engine(slots=1, order=ShortestJobFirst()), Unit(10))
    assert served(log) == ["first", "older-than-it-looks", "short", "long", "old"]


def heavy_tailed(seed, count=400):
    """Pareto outputs (shape 1.2) at a load of 1.2 on two slots, in steps of 10 ns."""
    rng = np.random.default_rng(seed)
    outputs = np.minimum(1 + 5 * rng.pareto(1.2, count), 2000).astype(int)
    gaps = rng.exponential(outputs.mean() * 10 / 2 / 1.2, count)
    return [
        Request(str(place), int(time), 1, int(output))
        for place, (time, output) in enumerate(zip(np.cumsum(gaps), outputs, strict=True))
    ]


def waits(requests, order):
    frame = requests_frame(run(requests, engine(slots=2, order=order), Unit(10)))
    return frame, frame.admitted_ns - frame.queued_ns


@pytest.mark.parametrize("seed", range(4))
def test_shortest_first_starves_the_longest_and_a_cap_does_not(seed):
    requests, cap = heavy_tailed(seed), 3000
    frame, by_arrival = waits(requests, FirstComeFirstServed())
    longest = frame.output >= frame.output.quantile(0.98)
    _, by_length = waits(requests, ShortestJobFirst())
    assert by_length[longest].mean() > by_arrival[longest].mean()
    assert by_length.max() > by_arrival.max()
    frame, capped = waits(requests, build("max_wait", {"max_wait": cap}, 0))
    assert capped[longest].mean() < by_length[longest].mean()
    # What the cap costs: the mean is between the two.
    assert by_length.mean() < capped.mean() < by_arrival.mean()
    # One past the cap waits for older ones past it only: whoever is admitted while it waits is such a one.
    overdue = frame.queued_ns + cap
    passed = 0
    for index, request in enumerate(frame.itertuples()):
        while_overdue = (frame.admitted_ns > overdue[index]) & (frame.admitted_ns < request.admitted_ns)
        passed += int(while_overdue.sum())
        assert (frame.queued_ns[while_overdue] <= request.queued_ns).all()
    assert passed > 0


@pytest.mark.parametrize(
    ("arrival", "second"),
    [
        (79, "short"),  # 2 x 10 + 79 against 10 x 10
        (80, "long"),  # even: the older
        (81, "long"),
    ],
)
def test_a_newcomer_passes_one_that_waits_if_its_rank_is_better_by_more_than_the_wait_is_worth(arrival, second):
    requests = [job("first", 9), job("long", 10), job("short", 2, arrival=arrival)]
    order = build("aging", {"order": "sjf", "unit": 10}, 0)
    log = run(requests, engine(slots=1, order=order), Unit(10))
    assert served(log) == ["first", second, "long" if second == "short" else "short"]


def test_without_a_worth_of_waiting_ageing_is_first_come_first_served():
    requests = [job("a", 5), job("b", 1, arrival=1), job("c", 9, arrival=2), job("d", 1, arrival=3)]
    log = run(requests, engine(slots=1, order=build("aging", {"unit": 0}, 0)))
    assert served(log) == ["a", "b", "c", "d"]


def test_levels_and_priorities_age_too():
    # One level is worth 100: "deep" of level 1, which came at 0, goes before one of level 0 that came at 101.
    levels = {"mlfq": {"quantum": 4, "prompt_tokens": 1}}
    requests = [job("first", 12), job("deep", 1, prompt=5), job("flat", 1, prompt=1, arrival=101)]
    log = run(requests, engine(slots=1, order=build("aging", {"order": levels, "unit": 100}, 0)), Unit(10))
    assert served(log) == ["first", "deep", "flat"]
    log = run(requests, engine(slots=1, order=build("aging", {"order": levels, "unit": 102}, 0)), Unit(10))
    assert served(log) == ["first", "flat", "deep"]


@pytest.mark.parametrize("order", ["fcfs", "hrrn", "vtc", "longest_prefix"])
def test_what_has_no_rank_can_not_age(order):
    with pytest.raises(ValueError, match="order has no rank; expected one such as"):
        build("aging", {"order": order}, 0)
