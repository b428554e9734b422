"""Limits of tenants: slots at once, tokens a second, slots kept. One step lasts 1 ns unless said otherwise."""

import pytest
from sim_stories import booked, engine, happenings, job, run

from policies.registry import build
from sim.accounting.metrics import summary
from sim.cost.forms import Unit
from sim.request import SECOND, Patience, Request


def flood(tenant, count, output=1, arrival=0, prompt=1):
    return [job(f"{tenant}{place}", output, prompt, arrival, tenant) for place in range(1, count + 1)]


def admissions(log):
    return [(event.who, event.time) for event in happenings(log, "admitted")]


def two_at_once(order="fcfs", **tenants):
    return build("tenant_slots", {"order": order, "slots": 2, "tenants": tenants}, 0)


def test_a_flood_leaves_the_other_slots_to_others():
    log = run(flood("A", 4, output=3) + flood("B", 1, output=3), engine(slots=3, order=two_at_once()))
    assert admissions(log) == [("A1", 0), ("A2", 0), ("B1", 0), ("A3", 3), ("A4", 3)]


def test_slots_that_the_limit_leaves_empty_are_booked_to_it():
    # A1 and A2 take 4 steps, and A3 waits beside an empty slot; then it runs alone.
    log = run(flood("A", 3, output=4), engine(slots=3, order=two_at_once()))
    assert admissions(log) == [("A1", 0), ("A2", 0), ("A3", 4)]
    assert booked(summary(log)) == {"prefill": 3, "decode": 9, "limited": 4, "no_demand": 8}


def test_a_tenant_may_have_a_limit_of_its_own():
    log = run(flood("A", 3, output=4) + flood("B", 3, output=4), engine(slots=8, order=two_at_once(A=1)))
    assert admissions(log)[:3] == [("A1", 0), ("B1", 0), ("B2", 0)]
    assert admissions(log)[3:] == [("A2", 4), ("B3", 4), ("A3", 8)]


def test_those_held_go_in_the_order_that_is_wrapped():
    # A3, of 5, is held aside; A4, of 1, comes at 1, is held too, and goes first when A1 ends.
    requests = [*flood("A", 2, output=3), job("A3", 5, tenant="A"), job("A4", 1, tenant="A", arrival=1)]
    log = run(requests, engine(slots=4, order=two_at_once("sjf")))
    assert admissions(log) == [("A1", 0), ("A2", 0), ("A4", 3), ("A3", 3)]


def test_one_that_is_back_keeps_its_place_among_all():
    # One slot each, and two in all. B2 and A2 are held from the start, in this order, and both may go at 4: B2 first.
    requests = [
        job("B1", 4, tenant="B"),
        job("A1", 4, tenant="A"),
        job("B2", 2, tenant="B"),
        job("A2", 2, tenant="A"),
        job("C1", 9, tenant="C", arrival=1),
    ]
    log = run(requests, engine(slots=3, order=build("tenant_slots", {"slots": 1}, 0)))
    assert admissions(log) == [("B1", 0), ("A1", 0), ("C1", 1), ("B2", 4), ("A2", 4)]


def test_a_preempted_request_frees_its_place():
    # Two slots and six pages of one token: A2 is driven out at 3. A may run two, and at 6 both A2 and A3 enter.
    requests = [*flood("A", 2, output=6), job("A3", 2, tenant="A")]
    log = run(requests, engine(slots=3, pages=6, page_size=1, order=two_at_once()))
    assert admissions(log)[:4] == [("A1", 0), ("A2", 0), ("A2", 6), ("A3", 6)]


def test_a_limit_may_lie_within_fair_shares():
    # B has been served less, but its one slot is taken: A goes on.
    order = build("vtc", {"order": {"tenant_slots": {"slots": 1, "tenants": {"A": 9}}}}, 0)
    log = run(flood("B", 2, output=9) + flood("A", 3, output=2), engine(slots=2, order=order))
    assert admissions(log) == [("B1", 0), ("A1", 0), ("A2", 2), ("A3", 4), ("B2", 9)]


def test_reserved_slots_wait_for_their_tenant():
    # Three slots, one of them B's: A's third waits, though a slot is empty, and B's first finds it.
    order = build("reserved", {"of": 3, "tenants": {"B": 1}}, 0)
    requests = flood("A", 3, output=9) + flood("B", 2, output=9, arrival=5)
    log = run(requests, engine(slots=3, order=order))
    assert admissions(log) == [("A1", 0), ("A2", 0), ("B1", 5), ("A3", 9), ("B2", 9)]
    assert summary(log)["slot_steps"]["limited"] == 5


def test_beyond_its_own_a_tenant_takes_open_slots_like_everyone():
    order = build("reserved", {"of": 3, "tenants": {"B": 1}}, 0)
    log = run(flood("B", 3, output=9) + flood("A", 1), engine(slots=3, order=order))
    assert admissions(log) == [("B1", 0), ("B2", 0), ("B3", 0), ("A1", 9)]


def test_one_slot_must_stay_open():
    with pytest.raises(ValueError, match="of is 3; expected more than the 3 that are reserved"):
        build("reserved", {"of": 3, "tenants": {"B": 1, "C": 2}}, 0)


def two_tokens_a_second(**options):
    """Buckets of 10 tokens that fill at 2 a second; a step lasts a second, and "busy" keeps the engine running."""
    return build("tenant_rate", {"rate": 2, "burst": 10} | options, 0)


BUSY = job("busy", 60, tenant="other")


def seconds(log):
    return [(who, time // SECOND) for who, time in admissions(log) if who != "busy"]


def test_a_bucket_pays_for_prompt_and_output():
    # A request costs 10: the first empties the bucket, the next go every 5 s.
    log = run([BUSY, *flood("A", 3, output=5, prompt=5)], engine(slots=9, order=two_tokens_a_second()), Unit(SECOND))
    assert seconds(log) == [("A1", 0), ("A2", 5), ("A3", 10)]


def test_an_idle_engine_wakes_when_the_bucket_can_pay():
    # With nobody else, and two steps a second: A1 has ended at 2.5 s, A2 enters at 5, and A3, which costs more than a
    # burst, when the bucket is full again at 10.
    requests = [*flood("A", 2, output=5, prompt=5), job("A3", 1, prompt=11, tenant="A")]
    log = run(requests, engine(slots=9, order=two_tokens_a_second()), Unit(SECOND // 2))
    assert admissions(log) == [("A1", 0), ("A2", 5 * SECOND), ("A3", 10 * SECOND)]
    assert log.steps == 11


def test_an_idle_engine_looks_again_when_one_that_is_held_gives_up():
    # A2 would wait until 5 s, and A3, which costs 3, behind it. A2 is cancelled at 2 s: A3 has its 3 tokens by then.
    patience = Patience(cancel_after=2 * SECOND)
    requests = [
        *flood("A", 1, output=5, prompt=5),
        Request("A2", 0, 5, 5, "A", patience=patience),
        job("A3", 2, tenant="A"),
    ]
    log = run(requests, engine(slots=9, order=two_tokens_a_second()), Unit(SECOND // 10))
    assert admissions(log) == [("A1", 0), ("A3", 2 * SECOND)]


def test_a_bucket_holds_no_more_than_a_burst():
    # Nothing for 20 s saves 10 tokens, not 40: then two of 5 at once, and the third 2.5 s later, at the next step.
    requests = [BUSY, *flood("A", 3, output=1, prompt=4, arrival=20 * SECOND)]
    log = run(requests, engine(slots=9, order=two_tokens_a_second()), Unit(SECOND))
    assert seconds(log) == [("A1", 20), ("A2", 20), ("A3", 23)]


def test_more_than_a_burst_needs_a_full_bucket_and_leaves_a_debt():
    # 20 tokens of 10: from -10 to the 10 of the next request takes 10 s.
    requests = [BUSY, *flood("A", 1, output=10, prompt=10), *flood("a", 1), job("A2", 5, 5, 0, "A")]
    log = run(requests, engine(slots=9, order=two_tokens_a_second()), Unit(SECOND))
    assert seconds(log) == [("A1", 0), ("a1", 0), ("A2", 10)]


def test_tenants_have_buckets_of_their_own_and_perhaps_rates():
    order = two_tokens_a_second(tenants={"B": 0.5})
    requests = [BUSY, *flood("A", 2, output=5, prompt=5), *flood("B", 2, output=5, prompt=5)]
    log = run(requests, engine(slots=9, order=order), Unit(SECOND))
    assert seconds(log) == [("A1", 0), ("B1", 0), ("A2", 5), ("B2", 20)]


def test_a_preempted_request_pays_once():
    # Two slots and six pages of one token; A2 costs 7 of 14, is driven out at 3 and returns at 6 without a token.
    order = build("tenant_rate", {"rate": 1e-6, "burst": 14}, 0)
    log = run(flood("A", 2, output=6), engine(slots=2, pages=6, page_size=1, order=order))
    assert admissions(log) == [("A1", 0), ("A2", 0), ("A2", 6)]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("tenant_slots", {"slots": 0}, "slots is 0; expected a whole number, at least 1"),
        ("tenant_slots", {"tenants": {"A": 0}}, "tenants.A is 0; expected a whole number, at least 1"),
        ("tenant_slots", {"tenants": 4}, "tenants is 4; expected tenants with their counts"),
        ("reserved", {"tenants": {"A": -1}}, "tenants.A is -1"),
        ("tenant_rate", {"rate": 0}, "rate is 0; expected a number above 0"),
        ("tenant_rate", {"burst": 0}, "burst is 0"),
        ("tenant_rate", {"tenants": {"A": "fast"}}, "tenants.A is 'fast'"),
    ],
)
def test_what_is_no_limit_is_refused(name, options, words):
    with pytest.raises(ValueError, match=words):
        build(name, options, 0)
