"""Multi-level feedback with skip-join."""

import pytest
from sim_stories import engine, happenings, job, run, times

from policies.mlfq import Levels, MultiLevelFeedback
from policies.registry import build


def served(log):
    return [event.who for event in happenings(log, "admitted")]


@pytest.mark.parametrize(
    ("prompt", "tokens", "level"),
    [
        (3, 0, 0),
        (4, 0, 0),  # just within the quantum of 4
        (5, 0, 1),  # skips a level
        (8, 0, 1),
        (9, 0, 2),
        (1000, 0, 2),  # there is none below
        (3, 3, 0),
        (3, 4, 1),  # the first quantum is used up
        (3, 11, 1),
        (3, 12, 2),  # 4 and 8
        (3, 10**6, 2),
        (5, 7, 1),  # it never had the first
        (5, 8, 2),
    ],
)
def test_levels_of_4_and_8_and_the_rest(prompt, tokens, level):
    assert Levels(quantum=4, ratio=2, levels=3, prompt_tokens=1).of(prompt, tokens) == level


def test_prompt_tokens_are_quicker_than_output_tokens():
    levels = Levels(quantum=4, ratio=2, levels=3, prompt_tokens=10)
    assert [levels.of(prompt, 0) for prompt in (40, 41, 80, 81)] == [0, 1, 1, 2]


def test_newcomers_skip_levels_by_their_prompts_and_go_by_arrival_within_one():
    requests = [
        job("huge", 1, prompt=9),
        job("middling", 1, prompt=5),
        job("small", 7, prompt=3),
        job("tiny", 1, prompt=1),
    ]
    order = MultiLevelFeedback(Levels(quantum=4, ratio=2, levels=3, prompt_tokens=1))
    assert served(run(requests, engine(slots=1, order=order))) == ["small", "tiny", "middling", "huge"]


@pytest.mark.parametrize(("quantum", "third"), [(3, "new"), (4, "second")])
def test_one_that_has_used_up_its_quantum_returns_a_level_below(quantum, third):
    # Two slots and six pages of one token: "second" is driven out at 3 with 3 tokens, and "new" waits since 1. With a
    # quantum of 3 it returns to level 1; with 4 to level 0, where it is the older.
    requests = [job("first", 6), job("second", 6), job("new", 4, arrival=1)]
    order = build("mlfq", {"quantum": quantum, "prompt_tokens": 1}, 0)
    log = run(requests, engine(slots=2, pages=6, page_size=1, order=order))
    assert served(log)[2] == third


@pytest.mark.parametrize("swap", [False, True])
def test_preemptive_a_quantum_that_is_used_up_is_a_slot_given_up(swap):
    # Quanta of 4, 8 and the rest. "a" has used up its 4 at 4 and is of level 1: "b", of level 0, takes its slot. At 8
    # "b" is of level 1 too, and "a", which came before it, goes on. "c", of level 0, comes at 9 and goes at once.
    # "a" has 5 by then and its 12 at 18; "b" has 8 more to come, at 26. What is recomputed fits the step of a token.
    order = build("mlfq", {"quantum": 4, "ratio": 2, "levels": 3, "prompt_tokens": 1, "preemptive": True}, 0)
    requests = [job("a", 12), job("b", 12), job("c", 2, arrival=9)]
    log = run(requests, engine(slots=1, order=order, swap=swap))
    assert [(event.who, event.time) for event in happenings(log, "admitted")] == [
        ("a", 0),
        ("b", 4),
        ("a", 8),
        ("c", 9),
        ("a", 11),
        ("b", 18),
    ]
    assert times(log, "finished") == {"a": 18, "b": 26, "c": 11}


@pytest.mark.parametrize("option", ["quantum", "ratio", "levels", "prompt_tokens"])
@pytest.mark.parametrize("value", [0, 1.5, "4", True])
def test_what_is_no_count_is_refused(option, value):
    with pytest.raises(ValueError, match=f"{option} is {value!r}; expected a whole number, at least 1"):
        build("mlfq", {option: value}, 0)
