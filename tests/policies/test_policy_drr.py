"""Deficit round robin: turns of a quantum of tokens, prompt and predicted output."""

import numpy as np
import pytest
from sim_stories import engine, happenings, job, run

from policies.registry import build
from sim.request import Request
from sim.sequence import Sequence


def drr(quantum, **options):
    return build("drr", {"quantum": quantum} | options, 0)


def served(log):
    return [event.who for event in happenings(log, "admitted")]


def test_turns_are_worth_a_quantum_and_what_is_left_is_kept():
    # A's cost 15, B's 5, a turn 10. A 10, too little; B 10: B1, B2. A 20: A1, 5 left; B3, B4; A 15: A2; B5, B6, and B
    # leaves the ring. A 10, A 20: A3.
    requests = [job(f"A{i}", 10, prompt=5, tenant="A") for i in (1, 2, 3)]
    requests += [job(f"B{i}", 4, prompt=1, tenant="B") for i in range(1, 7)]
    log = run(requests, engine(slots=1, order=drr(10)))
    assert served(log) == ["B1", "B2", "A1", "B3", "B4", "A2", "B5", "B6", "A3"]


def test_a_tenant_that_returns_has_no_credit():
    # All cost 5. B1 leaves 5 of B's turn, which is lost as B leaves the ring.
    requests = [job("B1", 4, tenant="B"), *[job(f"A{i}", 4, tenant="A") for i in range(1, 9)]]
    requests += [job(f"B{i}", 4, tenant="B", arrival=9) for i in (2, 3, 4)]
    log = run(requests, engine(slots=1, order=drr(10)))
    # B1 ends at 4; A1 to 8, A2 to 12, and A's turn is over: B 10: B2, B3. A3, A4, then B 10: B4 and no B5.
    assert served(log) == ["B1", "A1", "A2", "B2", "B3", "A3", "A4", "B4", "A5", "A6", "A7", "A8"]


def test_a_preempted_request_has_paid():
    # All cost 7. Two slots, six pages of one token: A2, with 3 of its 6 tokens, is driven out at 3. Of the 20 of A's
    # turn 6 are left: too little for A3, but A2 goes on at 6 before B's turn comes.
    requests = [job(f"A{i}", 6, tenant="A") for i in (1, 2, 3)] + [job("B1", 6, tenant="B", arrival=1)]
    log = run(requests, engine(slots=2, pages=6, page_size=1, order=drr(20)))
    assert served(log)[:4] == ["A1", "A2", "A2", "B1"]


def test_long_turns_are_counted_and_not_taken_one_by_one():
    # A quantum of 1 and costs of a million: A needs 10^6 turns, B, a token less, goes first in the round before.
    order = drr(1)
    a, b = Sequence(Request("a", 0, 1, 10**6 - 1, "A"), 0), Sequence(Request("b", 0, 1, 10**6 - 2, "B"), 1)
    order.push(a, 0, 0)
    order.push(b, 0, 0)
    assert order.head(0, 0) is order.head(0, 0) is b
    order.pop(b)
    order.admitted(b, 0)
    assert order.head(0, 0) is a
    order.pop(a)
    order.admitted(a, 0)
    assert len(order) == 0


def test_who_leaves_without_being_served_pays_nothing():
    order = drr(10)
    a, b = Sequence(job("a", 9, tenant="A"), 0), Sequence(job("b", 9, tenant="B"), 1)
    order.push(a, 0, 0)
    order.push(b, 0, 0)
    order.pop(a)
    order.left(a, 0)
    assert order.head(0, 0) is b
    order.push(Sequence(job("a2", 9, tenant="A"), 2), 0, 0)
    assert order.head(0, 0) is b


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("quantum", [1, 50, 300])
def test_two_backlogged_tenants_differ_by_no_more_than_the_bound(quantum, seed):
    # In any interval: the quantum and twice the longest request, whatever the sizes.
    rng = np.random.default_rng(seed)
    sizes = {"A": (60, 4, 150), "B": (8, 40, 60)}
    requests = [
        Request(f"{tenant}{place}", 0, int(rng.integers(1, prompt + 1)), int(rng.integers(1, output + 1)), tenant)
        for tenant, (prompt, output, count) in sizes.items()
        for place in range(count)
    ]
    cost = {request.id: request.prompt + request.output for request in requests}
    bound = quantum + 2 * max(cost.values())

    def greatest_difference(order):
        admitted = served(run(requests, engine(slots=1, order=order)))
        left = {"A": 150, "B": 60}
        difference = [0]
        for who in admitted:
            difference.append(difference[-1] + (cost[who] if who[0] == "A" else -cost[who]))
            left[who[0]] -= 1
            if not left[who[0]]:
                break
        return max(difference) - min(difference)

    assert greatest_difference(drr(quantum)) <= bound
    assert greatest_difference(build("fcfs", {}, 0)) > bound


@pytest.mark.parametrize("quantum", [0, -5, 1.5, True, "9"])
def test_what_is_no_quantum_is_refused(quantum):
    with pytest.raises(ValueError, match="expected a whole number, at least 1"):
        drr(quantum)
