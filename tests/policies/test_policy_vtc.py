"""The virtual token counter: lifts as in the paper, weights, charges in advance, and the paper's bound."""

import numpy as np
import pytest
from sim_stories import engine, happenings, job, run

from policies.base.service_counters import Tariff
from policies.fair import fair
from policies.fcfs import FirstComeFirstServed
from policies.predictors.base import Exact, PromptLength
from policies.registry import build
from policies.vtc import VirtualTokenCounter
from sim.accounting.frames import requests_frame
from sim.cost.forms import Unit
from sim.policy.base import Reserve
from sim.request import Request


def vtc(tariff=None, prepay=None):
    return VirtualTokenCounter(FirstComeFirstServed, tariff or Tariff(), prepay)


def flood(tenant, count, arrival=0, output=1):
    return [job(f"{tenant}{place}", output, tenant=tenant, arrival=arrival) for place in range(1, count + 1)]


def served(log):
    return [event.who for event in happenings(log, "admitted")]


def test_a_client_that_returns_has_no_credit():
    # Steps of 10. B comes at 55, in the sixth of A's steps: A has had 6 x 3 = 18, so B starts at 18, and at 60, where
    # they are even, A is known longer.
    requests = flood("A", 10) + flood("B", 4, arrival=55)
    log = run(requests, engine(slots=1, order=vtc()), Unit(10))
    assert served(log)[6:] == ["A7", "B1", "A8", "B2", "A9", "B3", "A10", "B4"]


def test_without_a_lift_it_has():
    # As above, but B starts at 0: with A at 18, B has its four, up to 12, before A goes on.
    requests = flood("A", 10) + flood("B", 4, arrival=55)
    log = run(requests, engine(slots=1, order=build("vtc", {"lift": False}, 0)), Unit(10))
    assert served(log)[6:] == ["B1", "B2", "B3", "B4", "A7", "A8", "A9", "A10"]


def test_one_that_returns_to_an_empty_queue_is_lifted_to_the_last_who_left_it():
    # A has had 3 x 3 and left. B comes first and is lifted to 9: at the tie A goes first, then in turns.
    requests = flood("A", 3) + flood("B", 3, arrival=100) + [job(f"A{i}", 1, tenant="A", arrival=100) for i in (4, 5)]
    log = run(requests, engine(slots=1, order=vtc()))
    assert served(log)[3:] == ["A4", "B1", "A5", "B2", "B3"]


@pytest.mark.parametrize(("order", "when"), [(vtc(), 6), (fair(FirstComeFirstServed, 10**9), 5)])
def test_who_has_nobody_waiting_is_away_though_it_runs(order, when):
    # Two slots. After 5 steps A has had 5 x 3 = 15, B, whose B1 decodes on, 1 + 2 x 5 = 11. B2 comes. The paper lifts
    # B to A's 15: at 5 the tie is A's, and B2 enters at 6, when A has 18 and B 17. `fair` lifts nobody who runs.
    requests = [*flood("A", 9), job("B1", 20, tenant="B"), job("B2", 1, tenant="B", arrival=5)]
    log = run(requests, engine(slots=2, order=order))
    assert next(event.time for event in happenings(log, "admitted") if event.who == "B2") == when


def test_a_tenant_of_weight_two_gets_two_turns():
    # A request costs 3, so A's costs 1.5: in halves A 3, B 6. A 6, tie: A 9, B 12, A 12, tie: A 15, B 18.
    requests = flood("A", 8) + flood("B", 4)
    log = run(requests, engine(slots=1, order=vtc(Tariff(tenants={"A": 2}))))
    assert "".join(who[0] for who in served(log)) == "ABAABAABAABA"


def test_shares_of_one_and_a_half_are_exact():
    # 2 x 1 / 1.5 = 4/3 and 2: scaled by 3, A's tokens cost 2 and 4, B's 3 and 6.
    tariff = Tariff(tenants={"A": 1.5})
    assert tariff.scale == 3
    assert (tariff.of("A").prompt_token, tariff.of("A").output_token) == (2, 4)
    assert (tariff.of("B").prompt_token, tariff.of("B").output_token) == (3, 6)


def test_what_is_predicted_is_charged_before_it_is_served():
    # Three slots. As served: A1 1, B1 1, and at the tie A2 enters. In advance: A1 201, B1 3, so B2.
    requests = flood("A", 2, output=100) + flood("B", 2)
    assert served(run(requests, engine(slots=3, order=vtc())))[:3] == ["A1", "B1", "A2"]
    assert served(run(requests, engine(slots=3, order=vtc(prepay=Exact()))))[:3] == ["A1", "B1", "B2"]


@pytest.mark.parametrize("macro", [True, False])
@pytest.mark.parametrize("pages", [100, 14])
@pytest.mark.parametrize("prepay", [None, Exact(), PromptLength()])
def test_in_the_end_everyone_has_paid_for_what_it_got(prepay, pages, macro):
    # Prompts of 9, 1 and 4 predict 9, 1 and 4 tokens: too many, too few and right. With 14 pages one is preempted.
    requests = [
        job("A1", 2, prompt=9, tenant="A"),
        job("B1", 7, prompt=1, tenant="B"),
        job("A2", 4, prompt=4, tenant="A"),
    ]
    order = vtc(prepay=prepay)
    log = run(requests, engine(slots=3, pages=pages, page_size=1, order=order), macro=macro)
    assert bool(happenings(log, "preempted")) == (pages == 14)
    served = {name: account.service(log.steps) for name, account in order.tenants.items()}
    assert served == {"A": 9 + 2 * 2 + 4 + 2 * 4, "B": 1 + 2 * 7}


def test_a_prediction_is_used_up_before_tokens_are_charged_again():
    # Prompt 3 and 3 tokens in advance: 3 + 6 = 9 from the first step on; tokens 4 and 5 make 11 and 13.
    order = vtc(prepay=PromptLength())
    counters = []

    class Watched(Unit):
        def step(self, shape):
            counters.append(order.tenants["A"].service(scheduler.state.decoders.step))
            return 1

    scheduler = engine(slots=1, order=order)
    run([job("A1", 5, prompt=3, tenant="A")], scheduler, Watched(1), macro=False)
    assert counters == [9, 9, 9, 11, 13]


SLOTS, PAGES, LONGEST_PROMPT = 8, 200, 60


def services(log, tenant):
    """Weighted service of a tenant by the end of every step, from the log: steps last 1 and nobody is preempted."""
    frame = requests_frame(log)
    frame = frame[frame.tenant == tenant]
    given = np.zeros(log.steps + 1)
    for request in frame.itertuples():
        given[request.admitted_ns + 1] += request.prompt
        given[request.first_token_ns : request.ended_ns + 1] += 2
    return np.cumsum(given)


def greatest_difference(order, seed):
    """Over all intervals in which both tenants always have someone waiting: of the services they get in it."""
    rng = np.random.default_rng(seed)
    lengths = {"A": (LONGEST_PROMPT, 4, 150), "B": (8, 40, 60)}
    requests = [
        Request(f"{tenant}{place}", 0, int(rng.integers(1, prompt + 1)), int(rng.integers(1, output + 1)), tenant)
        for tenant, (prompt, output, count) in lengths.items()
        for place in range(count)
    ]
    log = run(requests, engine(slots=SLOTS, pages=PAGES, page_size=1, order=order, admission=Reserve()))
    assert not happenings(log, "preempted")
    frame = requests_frame(log)
    both_wait = int(frame.groupby("tenant").admitted_ns.max().min())
    assert both_wait > 50
    difference = (services(log, "A") - services(log, "B"))[: both_wait + 1]
    return difference.max() - difference.min()


@pytest.mark.parametrize("seed", range(8))
def test_two_backlogged_clients_differ_by_no_more_than_the_bound(seed):
    # 2 max(w_p L_input, w_q M), M the tokens that fit in a batch: all pages. Where the order does not
    # care it is exceeded.
    bound = 2 * max(1 * LONGEST_PROMPT, 2 * PAGES)
    assert greatest_difference(build("vtc", {}, 0), seed) <= bound
    assert greatest_difference(build("vtc", {"prepay": True}, 0), seed) <= bound
    assert greatest_difference(build("fcfs", {}, 0), seed) > bound


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": {"A": 0}}, "weights.A is 0; expected a number above 0"),
        ({"weights": 3}, "weights is 3; expected tenants"),
        ({"prompt_weight": -1}, "prompt_weight is -1"),
        ({"output_weight": 0}, "output_weight is 0"),
        ({"prepay": 1}, "prepay is 1; expected true or false"),
        ({"predict": "prompt"}, "apply to prepay: true only"),
    ],
)
def test_what_cannot_be_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        build("vtc", options, 0)
