"""Who is driven out when pages run out. Pages of one token, one step a nanosecond, optimistic admission."""

import pytest
from sim_stories import engine, happenings, job, run

from policies.victims import VICTIMS, build
from sim.request import Request


def driven_out(name, requests, pages, options=None, **modes):
    """(who, when), in order."""
    log = run(requests, engine(slots=4, pages=pages, page_size=1, victim=build(name, options or {}, 0), **modes))
    return [(event.who, event.time) for event in happenings(log, "preempted")]


def test_who_is_driven_out_first():
    """Three run from 0, "late" from 1 on: at the start of step 3 they have

            prompt  computed  generated  of   priority
    old     4       6         3          5    1
    big     6       8         3          16   0
    wordy   1       3         3          9    0
    late    2       3         2          3    0

    20 pages are held. Of 21 there is one page left, for "old", and none for "big".
    """
    requests = [
        Request("old", 0, 4, 5, priority=1),
        Request("big", 0, 6, 16),
        Request("wordy", 0, 1, 9),
        Request("late", 1, 2, 3),
    ]
    firsts = {name: driven_out(name, requests, pages=21)[0] for name in VICTIMS}
    assert firsts == {
        "last_admitted": ("late", 3),
        "least_urgent": ("old", 3),
        "fewest_generated": ("late", 3),  # 2
        "least_served": ("late", 3),  # 3 positions, as "wordy" has: the last admitted
        "largest_remaining": ("big", 3),  # 13 to come
    }


def test_at_a_tie_the_last_admitted():
    # Both have 3 and want a seventh page of 6.
    for name in VICTIMS:
        assert driven_out(name, [job("a", 6), job("b", 6)], pages=6)[0] == ("b", 3)


def test_what_has_the_fewest_tokens_may_have_the_most_positions():
    # At step 4 "old" has 4 positions and 4 tokens, "young" of 2 with its prompt of 8 has 9 and 2; 13 of 14 pages.
    requests = [job("old", 10), job("young", 7, prompt=8, arrival=2)]
    assert driven_out("fewest_generated", requests, pages=14)[0] == ("young", 4)
    assert driven_out("least_served", requests, pages=14)[0] == ("old", 4)


def test_remaining_is_by_prediction():
    # By the prompt "a" is to have 5 tokens, "b" 1; in truth b has the more to come.
    requests = [job("a", 3, prompt=5), job("b", 8)]
    assert driven_out("largest_remaining", requests, pages=8)[0][0] == "b"
    assert driven_out("largest_remaining", requests, pages=8, options={"predict": "prompt"})[0][0] == "a"


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("oldest", {}, "'oldest' is unknown; known are last_admitted,"),
        ("last_admitted", {"error": 1}, "last_admitted.error: unknown option; last_admitted has none"),
        ("largest_remaining", {"eror": 1}, "largest_remaining.eror: unknown option; did you mean error?"),
        ("largest_remaining", {"predict": "class_mean"}, "expected one that does not learn"),
        ("largest_remaining", {"error": -1}, "error is -1"),
    ],
)
def test_what_does_not_exist_is_refused(name, options, words):
    with pytest.raises(ValueError, match=words):
        build(name, options, 0)
