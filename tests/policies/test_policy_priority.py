"""Priority: the most urgent class first, within it by arrival, and the least urgent gives its pages back."""

from sim_stories import engine, happenings, run, times

from policies.registry import build, victim
from sim.request import Request


def asked(name, arrival, output, priority):
    """A request of one prompt token; the smaller its priority, the more urgent."""
    return Request(name, arrival, 1, output, priority=priority)


def under_priority(requests, **modes):
    """The log of an engine under the policy, with the victim that goes with it."""
    return run(requests, engine(order=build("priority", {}, 0), victim=victim("priority"), **modes))


def admitted(log):
    return [event.who for event in happenings(log, "admitted")]


def test_the_most_urgent_class_goes_first_and_within_it_who_came_first():
    # One slot. "first" runs until 3; by then a batch job, two ordinary requests and an urgent one wait. The urgent
    # one goes first though it came last, then the ordinary ones as they came. "late", as ordinary as they are, comes
    # while they run: it goes after them and before the batch job, which has waited since 1.
    requests = [
        asked("first", 0, 3, 5),
        asked("batch", 1, 2, 9),
        asked("plain1", 1, 2, 5),
        asked("plain2", 2, 2, 5),
        asked("urgent", 2, 1, 0),
        asked("late", 5, 1, 5),
    ]
    log = under_priority(requests, slots=1)
    assert admitted(log) == ["first", "urgent", "plain1", "plain2", "late", "batch"]
    assert times(log, "finished") == {"first": 3, "urgent": 4, "plain1": 6, "plain2": 8, "late": 9, "batch": 11}


def test_at_one_instant_in_one_class_the_id_decides():
    assert admitted(under_priority([asked("b", 0, 1, 1), asked("a", 0, 1, 1)], slots=1)) == ["a", "b"]


def test_nobody_loses_a_slot_to_a_more_urgent_one_unless_the_engine_says_so():
    requests = [asked("long", 0, 10, 5), asked("urgent", 2, 1, 0)]
    assert times(under_priority(requests, slots=1), "finished") == {"long": 10, "urgent": 11}
    # With preempt_for_slot "urgent" runs in step 2 and "long" starts over at 3 from its 3 known tokens: its third
    # token comes at 4, the last of its ten at 11.
    log = under_priority(requests, slots=1, preempt_for_slot=True)
    assert times(log, "finished") == {"urgent": 3, "long": 11}


def test_when_pages_run_out_the_least_urgent_leaves():
    # Six pages of one, each holding 3 after step 2. In step 3 one more is needed: "low" leaves, though it came first,
    # and is back when "high" has ended with 6 tokens.
    requests = [asked("low", 0, 6, 9), asked("high", 0, 6, 1)]
    log = under_priority(requests, slots=2, pages=6, page_size=1)
    assert happenings(log, "preempted")[0][::2] == (3, "low")
    assert times(log, "finished")["high"] == 6
