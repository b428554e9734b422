"""Conversations: a turn is sent after the answer before it and a thought, and finds both in the cache."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim_stories import engine, run, times, values

from policies.fcfs import FirstComeFirstServed
from sim.accounting.metrics import summary
from sim.cost.forms import Unit
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.pool import PagePool
from sim.memory.prefix import PrefixPool
from sim.policy.base import Policy
from sim.request import Patience, Request
from sim.service.clients import Distant
from sim.service.sessions import SessionCounts, Sessions, counts
from traces.transforms.conversations import conversations


def turn(name, output, prompt=1, arrival=0, think=None, **said):
    """A turn of the session that its name begins with."""
    return Request(name, arrival, prompt, output, session=name[0], think=think, **said)


def cached(size=4, pages=100, slots=4):
    """An engine that finds prefixes."""
    return Scheduler(
        Policy(FirstComeFirstServed()), PrefixPool(pages, size), EngineConfig(slots=slots, token_budget=1000)
    )


def test_a_turn_is_sent_when_its_client_has_thought_about_the_answer():
    # Steps of 10. a1 ends at 30 and its client thinks 5: a2 is sent at 35, waits for the step that b runs (to 40) and
    # ends at 60. b has one turn.
    a = [turn("a1", 3), turn("a2", 2, think=5)]
    log = run(Sessions([a, [turn("b1", 7)]]), engine(slots=4), Unit(10))
    assert times(log, "queued") == {"a1": 0, "b1": 0, "a2": 35}
    assert times(log, "finished") == {"a1": 30, "b1": 70, "a2": 60}
    assert summary(log)["client_wait_s"]["max"] == 0


def test_sessions_begin_on_schedule_and_a_later_turn_on_its_answer_alone():
    sessions = [[turn("a1", 2, arrival=10), turn("a2", 1, arrival=11, think=100)], [turn("b1", 1, arrival=500)]]
    log = run(Sessions(sessions), engine(slots=1), Unit(10))
    assert times(log, "queued") == {"a1": 10, "a2": 130, "b1": 500}


@pytest.mark.parametrize(
    ("patience", "status"), [(Patience(cancel_after=15), "cancelled"), (Patience(timeout=15), "timed_out")]
)
def test_a_turn_that_does_not_finish_ends_its_session(patience, status):
    clients = Sessions(
        [[turn("a1", 9, patience=patience), turn("a2", 1, think=0), turn("a3", 1, think=0)], [turn("b1", 2)]]
    )
    log = run(clients, engine(slots=2), Unit(10))
    assert summary(log)["requests"][status] == 1
    assert summary(log)["requests"]["injected"] == 2
    assert clients.counts == SessionCounts(begun=2, completed=1, unsent_turns=2)
    assert clients.counts.broken_off == 1


def test_so_does_one_that_is_rejected():
    clients = Sessions([[turn("a1", 99), turn("a2", 1, think=0)]])
    log = run(clients, engine(slots=1, pages=1), Unit(10))
    assert summary(log)["requests"]["rejected"] == 1
    assert counts(clients).counted() == {"begun": 1, "completed": 0, "broken_off": 1, "unsent_turns": 1}


def test_clients_at_a_distance_converse_too():
    clients = Distant(Sessions([[turn("a1", 2), turn("a2", 1, think=5)]]), delay=3)
    log = run(clients, engine(slots=1), Unit(10))
    assert times(log, "queued") == {"a1": 3, "a2": 31}
    assert counts(clients).completed == 1


def test_a_turn_without_think_time_is_refused():
    with pytest.raises(ValueError, match="request a2: a turn of session a has no think time"):
        Sessions([[turn("a1", 1), turn("a2", 1)]])


def test_the_next_turn_finds_prompt_and_answer():
    # Pages of 4. The first turn computes 6 + 5 - 1 = 10 positions, so two pages are full: of 6 tokens of the prompt
    # and 2 of the answer. The second begins with 11 tokens said before: it finds 8 of them.
    said = tuple(range(11))
    first = turn("a1", 5, 6, tokens=said[:6])
    second = turn("a2", 1, 14, think=0, tokens=(*said, 90, 91, 92))
    log = run(Sessions(conversations([first, second], 4)), cached(), Unit(10))
    assert values(log, "admitted") == [("a1", 0), ("a2", 8)]
    unaware = run(Sessions([[first, second]]), cached(), Unit(10))
    assert values(unaware, "admitted") == [("a1", 0), ("a2", 4)]


def test_so_it_does_where_only_lengths_are_known_and_only_in_its_own_session():
    turns = [turn("a1", 5, 6), turn("b1", 5, 6, arrival=1), turn("a2", 1, 14, arrival=2, think=0)]
    log = run(Sessions(conversations(turns, 4)), cached(), Unit(10))
    assert values(log, "admitted") == [("a1", 0), ("b1", 0), ("a2", 8)]


def test_and_with_blocks_whatever_their_size():
    # Blocks of 8 tokens, pages of 4: the first prompt fills 6 of the first block, the answer the rest of it and more.
    first = turn("a1", 5, 6, blocks=("x",), block_size=8)
    second = turn("a2", 1, 14, think=0, blocks=("X", "y"), block_size=8)
    log = run(Sessions(conversations([first, second], 4)), cached(), Unit(10))
    assert values(log, "admitted") == [("a1", 0), ("a2", 8)]


def test_a_turn_that_does_not_begin_with_what_was_said_finds_nothing_of_it():
    first, second = turn("a1", 5, 4, tokens=(1, 2, 3, 4)), turn("a2", 1, 9, think=0, tokens=(9,) * 9)
    (found,) = conversations([first, second], 4)
    assert [each.spoken for each in found] == [0, 0]
    blocks = turn("a1", 5, 4, blocks=(1,), block_size=4), turn("a2", 1, 9, think=0, blocks=(2, 3, 4), block_size=4)
    assert [each.spoken for each in conversations(blocks, 4)[0]] == [0, 0]


def test_history_can_be_put_before_prompts_that_are_what_is_new():
    turns = [turn("a1", 5, 6), turn("a2", 2, 3, arrival=1), turn("a3", 1, 1, arrival=2)]
    (found,) = conversations(turns, 4, think=7, prepend=True)
    assert [each.prompt for each in found] == [6, 6 + 5 + 3, 6 + 5 + 3 + 2 + 1]
    assert [each.think for each in found] == [None, 7, 7]
    log = run(Sessions([found]), cached(), Unit(10))
    # 10 positions of the first turn are computed, 14 + 2 - 1 = 15 after the second: pages of 4.
    assert values(log, "admitted") == [("a1", 0), ("a2", 8), ("a3", 12)]


@given(
    sessions=st.lists(
        st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(0, 60)), min_size=1, max_size=5),
        min_size=1,
        max_size=6,
    ),
    depth=st.integers(1, 2),
    slots=st.integers(1, 3),
    share=st.sampled_from([None, "tenant"]),
    patience=st.sampled_from([None, 90]),
)
def test_macro_steps_change_nothing_and_every_turn_is_accounted_for(sessions, depth, slots, share, patience):
    requests = [
        Request(
            f"{name}.{place}",
            10 * name,
            prompt,
            output,
            session=str(name),
            think=think,
            patience=Patience(timeout=patience),
        )
        for name, turns in enumerate(sessions)
        for place, (prompt, output, think) in enumerate(turns)
    ]

    def outcome(macro):
        pool = PagePool(400, 4) if share is None else PrefixPool(400, 4, share)
        scheduler = Scheduler(
            Policy(FirstComeFirstServed()), pool, EngineConfig(slots=slots, token_budget=32, depth=depth)
        )
        clients = Sessions(conversations(requests, 4, prepend=True))
        return run(clients, scheduler, Unit(7), macro=macro), clients.counts

    (fast, counted), (slow, again) = outcome(True), outcome(False)
    assert fast.sha256() == slow.sha256()
    assert counted == again
    assert counted.begun == len(sessions) >= counted.completed
    assert summary(fast)["requests"]["injected"] + counted.unsent_turns == len(requests)
    assert (counted.unsent_turns == 0) or counted.broken_off
