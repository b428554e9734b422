"""Clients that give up: cancelled, timed out, or turned away. What they got counts, what was done was in vain."""

from __future__ import annotations

import pytest
from hypothesis import event
from hypothesis import given as drawn
from hypothesis import strategies as st
from sim_stories import booked, engine, happenings, job, run, static_engine, times

from policies.registry import build
from sim.accounting.frames import requests_frame, slots_frame
from sim.accounting.metrics import summary
from sim.accounting.requests import RequestRecords
from sim.cost.forms import Affine, Unit
from sim.request import Patience, Request


def impatient(name, output, prompt=1, arrival=0, **limits):
    """A request whose client gives up."""
    return Request(name, arrival, prompt, output, patience=Patience(**limits))


def given(log):
    """Tokens that each request was given."""
    return {request.id: int(count) for request, count in zip(log.requests, RequestRecords(log).tokens, strict=True)}


def test_a_cancelled_request_keeps_its_tokens_and_frees_its_slot_at_the_next_boundary():
    # Steps of 10. a has tokens at 10, 20, 30 and gives up at 35, in its fourth step: that one ends at 40 for nobody.
    # b waits for the only slot and runs from 40.
    log = run([impatient("a", 100, cancel_after=35), job("b", 2)], engine(slots=1), Unit(10))
    assert given(log) == {"a": 3, "b": 2}
    assert times(log, "cancelled") == {"a": 35}
    assert times(log, "released") == {"a": 40, "b": 60}
    found = summary(log)
    assert found["requests"] == {
        "injected": 2, "finished": 1, "rejected": 0, "timed_out": 0, "cancelled": 1, "waiting": 0, "running": 0,
    }  # fmt: skip
    assert booked(found) == {"wasted": 4, "prefill": 1, "decode": 1}
    assert found["tokens"]["output"] == 5
    assert slots_frame(log).status.tolist() == ["cancelled", "finished"]


def test_who_gives_up_at_the_instant_of_a_token_has_got_it():
    log = run([impatient("a", 100, cancel_after=30)], engine(slots=1), Unit(10))
    assert given(log) == {"a": 3}
    assert times(log, "released") == {"a": 30}


def test_who_gives_up_while_waiting_just_leaves():
    log = run([job("a", 5), impatient("b", 5, cancel_after=12), job("c", 1)], engine(slots=1), Unit(10))
    assert times(log, "dequeued") == {"b": 12}
    assert given(log) == {"a": 5, "b": 0, "c": 1}
    assert times(log, "finished") == {"a": 50, "c": 60}
    assert booked(summary(log)) == {"prefill": 2, "decode": 4}


def test_a_client_that_wants_n_tokens_leaves_with_n():
    log = run([impatient("a", 100, cancel_tokens=3), job("b", 4)], engine(slots=2), Unit(10))
    assert given(log) == {"a": 3, "b": 4}
    assert times(log, "cancelled") == {"a": 30}
    assert booked(summary(log)) == {"wasted": 3, "prefill": 1, "decode": 3, "no_demand": 1}


def test_a_queue_timeout_ends_with_the_admission():
    # a is admitted at once and may take as long as it likes; b still waits at 25; c is admitted at 50, before its 60.
    requests = [
        impatient("a", 5, queue_timeout=25),
        impatient("b", 5, queue_timeout=25),
        impatient("c", 2, queue_timeout=60),
    ]
    log = run(requests, engine(slots=1), Unit(10))
    assert times(log, "timed_out") == {"b": 25}
    assert times(log, "finished") == {"a": 50, "c": 70}


def test_a_timeout_counts_from_arrival_to_the_end():
    log = run([impatient("a", 9, timeout=90), impatient("b", 9, timeout=89)], engine(slots=2), Unit(10))
    assert times(log, "finished") == {"a": 90}  # a completion comes before a time-out of the same instant
    assert times(log, "timed_out") == {"b": 89}
    assert given(log) == {"a": 9, "b": 8}
    frame = requests_frame(log).set_index("id")
    assert frame.status.to_dict() == {"a": "finished", "b": "timed_out"}
    assert frame.e2e_s.isna().to_dict() == {"a": False, "b": True}


def test_a_full_queue_turns_newcomers_away():
    requests = [job("a", 3), job("b", 1, arrival=1), job("c", 1, arrival=2), job("d", 1, arrival=35)]
    log = run(requests, engine(slots=1, queue_limit=1), Unit(10))
    assert [event.who for event in happenings(log, "rejected")] == ["c"]
    assert log.reasons == ["queue is full"]
    assert times(log, "finished") == {"a": 30, "b": 40, "d": 50}


def test_in_a_static_batch_whoever_gives_up_keeps_the_place():
    # Three steps for a; b gives up in the second: its place is held to the end, and all of it was in vain.
    log = run([job("a", 3), impatient("b", 3, cancel_after=15)], static_engine(slots=2), Unit(10))
    assert given(log) == {"a": 3, "b": 1}
    assert booked(summary(log)) == {"prefill": 1, "decode": 2, "wasted": 3}
    assert times(log, "released") == {"a": 30, "b": 30}


def test_at_depth_two_what_is_in_flight_is_for_nobody():
    # Steps of 10, planned one ahead. At 25 the third step runs and the fourth is planned; from 30 the slot is free
    # for the plan of the fifth, which starts at 40.
    log = run([impatient("a", 100, cancel_after=25), job("b", 1)], engine(slots=1, depth=2), Unit(10))
    assert given(log) == {"a": 2, "b": 1}
    assert times(log, "released") == {"a": 30, "b": 50}
    assert times(log, "finished") == {"b": 50}
    assert booked(summary(log)) == {"wasted": 4, "prefill": 1}


def test_the_pages_of_who_gave_up_are_free_again():
    # 4 pages of 2, all taken by the prompts. At 10 b finds no page for its fifth position and leaves; a gives up at
    # 11, its pages are free at 20: b computes its 5 known tokens then, and ends at 40, long before a would have.
    scheduler = engine(slots=2, pages=4, page_size=2)
    log = run([impatient("a", 6, prompt=3, cancel_after=11), job("b", 3, prompt=4)], scheduler, Unit(10))
    assert times(log, "preempted") == {"b": 10}
    assert times(log, "admitted") == {"a": 0, "b": 20}
    assert times(log, "finished") == {"b": 40}


@pytest.mark.parametrize("limit", ["cancel_after", "cancel_tokens", "queue_timeout", "timeout"])
def test_a_limit_of_nothing_is_refused(limit):
    with pytest.raises(ValueError, match=f"{limit} is 0; expected at least 1"):
        impatient("a", 1, **{limit: 0})


@st.composite
def impatient_requests(draw):
    """Up to 25 requests of three tenants, about half of which give up or time out some time."""
    now, requests = 0, []
    for place in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from([0, 0, 1, 13, 80, 700]))
        prompt, output = draw(st.integers(1, 40)), draw(st.integers(1, 60))
        some_time = st.one_of(st.none(), st.integers(1, 1500))
        requests.append(
            Request(
                str(place),
                now,
                prompt,
                output,
                draw(st.sampled_from("abc")),
                patience=Patience(
                    cancel_after=draw(some_time),
                    cancel_tokens=draw(st.one_of(st.none(), st.none(), st.integers(1, 60))),
                    queue_timeout=draw(some_time),
                    timeout=draw(st.one_of(st.none(), st.integers(1, 4000))),
                ),
            )
        )
    return requests


@drawn(
    requests=impatient_requests(),
    slots=st.sampled_from([1, 2, 5]),
    spare=st.sampled_from([0, 1, 10, 1000]),
    page_size=st.sampled_from([1, 4, 16]),
    budget=st.sampled_from([4, 32, 1000]),
    policy=st.sampled_from([("fcfs", {}), ("sjf", {}), ("fair", {"max_wait": 100})]),
    mode=st.sampled_from(["plain", "depth 2", "late", "static"]),
    cost=st.sampled_from([Unit(7), Affine(base=5, per_sequence=0.7, per_context_token=0.13, per_prefill_token=1.1)]),
)
def test_giving_up_at_any_moment_loses_nothing(requests, slots, spare, page_size, budget, policy, mode, cost):
    """Every slot and page comes back (the end of a run checks it), no token counts twice, and the accounts add up."""
    pages = max(-(-(r.prompt + r.output) // page_size) for r in requests) + spare
    settings = {"depth 2": {"depth": 2}, "late": {"evict": "after"}}.get(mode, {})

    def log(macro):
        order = build(*policy, seed=0)
        if mode == "static":
            return run(requests, static_engine(slots, pages, page_size, order), cost, macro)
        return run(requests, engine(slots, budget, pages, page_size, order, **settings), cost, macro)

    happened = log(True)
    assert happened.sha256() == log(False).sha256()
    found = summary(happened)
    counts = found["requests"]
    assert counts["injected"] == counts["finished"] + counts["cancelled"] + counts["timed_out"]
    event(f"gave up: {counts['injected'] > counts['finished']}")
    frame = requests_frame(happened)
    assert (frame.tokens <= frame.output).all()
    assert (frame.tokens[frame.status == "finished"] == frame.output[frame.status == "finished"]).all()
    assert found["tokens"]["output"] == frame.tokens.sum()
    for account in (found["slot_steps"], found["slot_seconds"]):
        assert min(account.values()) >= 0
        assert sum(spent for row, spent in account.items() if row != "bought") == pytest.approx(account["bought"])
    in_vain = set(frame.index[frame.status.isin(["cancelled", "timed_out"])])
    stays = [end - first for index, first, end in happened.stay_table().tolist() if index in in_vain]
    assert found["slot_steps"]["wasted"] == sum(stays)
