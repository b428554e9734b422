"""Fair shares: a prompt token counts 1, an output token 2, the least served tenant goes first."""

import pytest
from sim_stories import engine, happenings, job, run, times

from policies import fair as policy
from policies.fcfs import FirstComeFirstServed
from policies.sjf import ShortestJobFirst
from sim.cost.forms import Unit

NEVER = 10**18


def fair(max_wait=NEVER, order=FirstComeFirstServed):
    return policy.fair(order, max_wait)


def flood(tenant, count, arrival=0, output=1):
    return [job(f"{tenant}{place}", output, tenant=tenant, arrival=arrival) for place in range(1, count + 1)]


def served(log):
    return [event.who for event in happenings(log, "admitted")]


@pytest.mark.parametrize("order", [FirstComeFirstServed, ShortestJobFirst])
def test_ten_requests_beside_a_flood_of_a_hundred(order):
    # Each costs 3, so the two take turns: B's tenth ends with the 20th completion, or the 21st if A is ahead.
    requests = flood("A", 100) + flood("B", 10)
    log = run(requests, engine(slots=1, order=fair(order=order)))
    ends = [event.who[0] for event in happenings(log, "finished")]
    assert ends[:21].count("B") == 10
    assert ends[:20] == ["A", "B"] * 10
    # First come, first served: B's last is the last of all.
    assert [event.who[0] for event in happenings(run(requests, engine(slots=1)), "finished")][100:] == ["B"] * 10


def test_service_is_weighted():
    # A's requests cost 5 + 2 = 7, B's 1 + 2 x 3 = 7, C's 1 + 2 = 3. From (0, 0, 0), the first in line at a tie:
    # A 7, B 7, C 3, C 6, C 9, A 14, B 14, C 12.
    requests = [job(f"A{i}", 1, prompt=5, tenant="A") for i in (1, 2)]
    requests += flood("B", 2, output=3) + flood("C", 4)
    log = run(requests, engine(slots=1, order=fair()))
    assert served(log) == ["A1", "B1", "C1", "C2", "C3", "A2", "B2", "C4"]


def test_service_counts_while_it_is_given():
    # Two slots: A1 decodes on and on. When B1 has ended, B has 1 + 2 and A 1 + 2; a step later A has 1 + 4,
    # so B's next two go before A's next.
    requests = [job("A1", 9, tenant="A"), job("B1", 2, tenant="B"), *[job(f"A{i}", 1, tenant="A") for i in (2, 3)]]
    requests += [job(f"B{i}", 1, tenant="B") for i in (2, 3)]
    log = run(requests, engine(slots=2, order=fair()))
    # After 2 steps: A 1 + 4, B 1 + 4, a tie, to A, which is known longer: A2. After 3: A 1 + 6 + 3, B 5: B2, B3.
    assert served(log) == ["A1", "B1", "A2", "B2", "B3", "A3"]


def test_a_tenant_that_returns_is_lifted_to_the_least_active():
    # B comes at 55, in the sixth of A's steps of 10, which counts already: A has 6 x 3 = 18, so B starts at 18.
    # At 60 they are even, and A is known longer: A7 -> 21, B1 -> 21, A8 -> 24, ... in turns, and not B four times.
    requests = flood("A", 10) + flood("B", 4, arrival=55)
    log = run(requests, engine(slots=1, order=fair()), Unit(10))
    assert served(log)[6:] == ["A7", "B1", "A8", "B2", "A9", "B3", "A10", "B4"]


def test_a_tenant_that_returns_to_an_empty_engine_has_no_credit_either():
    # A has had 3 x 3 and left. B comes first, is lifted to the 9 of the last who left, and takes turns with A,
    # which is known longer and goes first at a tie.
    requests = flood("A", 3) + flood("B", 3, arrival=100) + [job(f"A{i}", 1, tenant="A", arrival=100) for i in (4, 5)]
    log = run(requests, engine(slots=1, order=fair()))
    assert served(log)[3:] == ["A4", "B1", "A5", "B2", "B3"]


def test_a_tenant_that_returns_keeps_its_debt():
    # B has had 1 + 2 x 10 = 21 and comes back at once: it is not lowered to A's level.
    requests = flood("B", 1, output=10) + flood("A", 3, arrival=9) + [job("B2", 1, tenant="B", arrival=11)]
    # At 9 A is lifted to B's 1 + 2 x 9 = 19. At 10: A 19, B 21, and B's last has left: A1 -> 22. At 11 B2 joins with
    # 21 < 22 and goes; then B has 24 and A 22.
    log = run(requests, engine(slots=1, order=fair()))
    assert served(log) == ["B1", "A1", "B2", "A2", "A3"]


@pytest.mark.parametrize(
    ("max_wait", "turn"),
    [
        (NEVER, 5),  # by length, last
        (20, 3),  # at 20 it has waited just 20, which is not longer; at 30 it goes
        (19, 2),
        (9, 1),
        (0, 1),  # at 0 it has not waited: the shorter go first
    ],
)
def test_nobody_waits_longer_than_the_cap_while_the_short_go_first(max_wait, turn):
    # Steps of 10. "long" comes first, five short ones with it.
    requests = [job("long", 5, tenant="A"), *flood("A", 5)]
    log = run(requests, engine(slots=1, order=fair(max_wait, ShortestJobFirst)), Unit(10))
    assert served(log).index("long") == turn


def test_the_oldest_of_the_overdue_goes_first_whoever_it_is():
    # A1 runs to 100. All others are then overdue: in order of arrival, although A has had the more service
    # and B1 is the longest of all.
    requests = [
        job("A1", 10, tenant="A"),
        job("A2", 3, tenant="A", arrival=1),
        job("B1", 9, tenant="B", arrival=2),
        job("A3", 1, tenant="A", arrival=3),
    ]
    log = run(requests, engine(slots=1, order=fair(50, ShortestJobFirst)), Unit(10))
    assert served(log) == ["A1", "A2", "B1", "A3"]
    log = run(requests, engine(slots=1, order=fair(NEVER, ShortestJobFirst)), Unit(10))
    assert served(log) == ["A1", "B1", "A3", "A2"]


def test_what_a_preempted_request_waited_still_counts():
    # 3 pages of 1, two slots, steps of 10. A1 and A2 (3 positions each at most) hold 1 each after step 0; in step 1
    # A1 takes the third, A2 leaves. At 30 A1 has ended. A2 joined at 0 and is overdue: it goes before B1 of 15,
    # which has had no service at all.
    requests = [
        job("A1", 3, tenant="A"),
        job("A2", 3, tenant="A"),
        job("B1", 3, tenant="B", arrival=15),
    ]
    log = run(requests, engine(slots=2, pages=3, page_size=1, order=fair(25)), Unit(10))
    assert served(log)[:4] == ["A1", "A2", "A2", "B1"]
    log = run(requests, engine(slots=2, pages=3, page_size=1, order=fair()), Unit(10))
    assert served(log)[:3] == ["A1", "A2", "B1"]


def test_a_prompt_is_charged_once():
    # A's two run as above; A2's prompt of 1 is charged when it is first admitted, not again at 30; and so is no token
    # that it had before. Six tokens and two prompts of 1 make 14.
    order = fair()
    requests = [job("A1", 3, tenant="A"), job("A2", 3, tenant="A")]
    log = run(requests, engine(slots=2, pages=3, page_size=1, order=order), Unit(10))
    assert [event.who for event in happenings(log, "preempted")] == ["A2"]
    assert order.inner.tenants["A"].service(log.steps) == 2 * 1 + 2 * 6


def test_within_a_tenant_the_wrapped_order_decides():
    requests = [
        job("A1", 5, tenant="A"),
        job("A2", 2, tenant="A"),
        job("B1", 5, tenant="B"),
        job("B2", 2, tenant="B"),
    ]
    log = run(requests, engine(slots=1, order=fair(order=ShortestJobFirst)))
    # A2 costs 5; B2 then costs 5; A1 and B1 follow.
    assert served(log) == ["A2", "B2", "A1", "B1"]
    log = run(requests, engine(slots=1, order=fair()))
    assert served(log) == ["A1", "B1", "A2", "B2"]


def test_a_single_tenant_has_the_wrapped_order():
    requests = [job(str(place), output) for place, output in enumerate((5, 8, 6, 120, 7, 9, 6, 11))]
    wrapped = run(requests, engine(slots=2, order=fair(order=ShortestJobFirst)))
    alone = run(requests, engine(slots=2, order=ShortestJobFirst()))
    assert times(wrapped, "finished") == times(alone, "finished")


def test_a_negative_cap_is_refused():
    with pytest.raises(ValueError, match="max_wait is -1 ns; expected 0 or more"):
        fair(-1)
