"""Highest response ratio next. Steps of 10 ns; "first" holds the only slot up to 100."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim_stories import engine, happenings, job, run

from policies.hrrn import HighestResponseRatio
from policies.predictors.base import PromptLength
from sim.cost.forms import Unit
from sim.sequence import Sequence


@pytest.mark.parametrize(
    ("arrival", "next_one"),
    [
        (79, "short"),  # at 100: 21 / 2 against 100 / 10
        (80, "long"),  # both 10: the older
        (81, "long"),
    ],
)
def test_the_short_go_first_until_the_long_have_waited_for_long(arrival, next_one):
    requests = [job("first", 10), job("long", 10), job("short", 2, arrival=arrival)]
    log = run(requests, engine(slots=1, order=HighestResponseRatio()), Unit(10))
    assert happenings(log, "admitted")[1].who == next_one


def test_equal_predictions_go_by_arrival_and_nobody_starves():
    # Shorts of 2 come every 20, the time that one takes. long, of 10, goes when its ratio is the highest: at 100 the
    # shorts are those of 20, 40, 60, 80 with 80 / 2, 60 / 2, ... against 100 / 10. Each 20 ns s_20, s_40, ... go; the
    # oldest short has always waited 80, the ratio 40 falls to long's when it has waited 400.
    requests = [job("first", 10), job("long", 10)] + [job(f"s{at}", 2, arrival=at) for at in range(20, 800, 20)]
    log = run(requests, engine(slots=1, order=HighestResponseRatio()), Unit(10))
    admitted = happenings(log, "admitted")
    long = next(event for event in admitted if event.who == "long")
    assert long.time == 400
    shorts = [event.who for event in admitted if event.who.startswith("s")]
    assert shorts == [f"s{at}" for at in range(20, 800, 20)]


def test_the_instant_at_which_one_passes_the_other_is_known():
    # (t - 80) / 2 reaches t / 10 at 100, where the older still goes first; one nanosecond later it is passed.
    order = HighestResponseRatio()
    long, short = Sequence(job("long", 10), 0), Sequence(job("short", 2, arrival=80), 1)
    order.push(long, 0, 0)
    assert order.next_change(50, 0) == (None, None)
    order.push(short, 80, 0)
    assert order.head(90, 0) is long
    assert order.next_change(90, 0) == (100, None)
    assert order.head(100, 0) is long
    assert order.next_change(100, 0) == (101, None)
    assert order.head(101, 0) is short
    assert order.next_change(101, 0) == (None, None)
    order.pop(long)
    assert [list(order), len(order), order.head(101, 0)] == [[short], 1, short]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), min_size=1, max_size=6), st.integers(60, 120))
def test_the_head_stays_until_the_instant_stated(places, now):
    order = HighestResponseRatio(PromptLength())
    for index, (arrival, prompt) in enumerate(sorted(places)):
        order.push(Sequence(job(str(index), 1, prompt=prompt, arrival=arrival), index), arrival, 0)
    head = order.head(now, 0)
    until, steps = order.next_change(now, 0)
    assert steps is None
    assert until is None or until > now
    for later in range(now, min(until or 2000, 2000)):
        assert order.head(later, 0) is head
