"""KV that is fetched: pages kept after a prefill, room for it first, links that transfers share; by hand."""

from __future__ import annotations

import pytest
from sim_stories import booked, engine, job, times

from policies import routers
from policies.fcfs import FirstComeFirstServed
from sim.accounting.frames import client_frame
from sim.accounting.metrics import summary
from sim.cost.forms import Unit
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.log.events import Kind
from sim.memory.prefix import PrefixPool
from sim.policy.base import LastAdmitted, Optimistic, Policy
from sim.request import Patience, Request
from sim.service.outages import Outages
from sim.service.pools import Pool
from sim.service.service import Retry, Transfer, serve


def pool(*engines):
    """A pool of these engines, whose steps take 10 ns."""
    return Pool([(each, Unit(10)) for each in engines], routers.RoundRobin())


def fetched(requests, prefill=None, decode=None, latency=5, per_token=0.5, **more):
    """A service of two pools, the second of which fetches."""
    pools = [pool(*(prefill or [engine(slots=4)])), pool(*(decode or [engine(slots=4)]))]
    return serve(requests, pools, transfer=Transfer(latency, per_token, pull=True), **more)


def rows(served):
    """The requests by id, as their clients see them."""
    return client_frame(served.logs, served.service_log).set_index("id")


def table(served, name):
    """The rows of a table of the service log."""
    return [tuple(row) for row in served.service_log.table(name).tolist()]


def down(fate, replica, start, lasts):
    """One outage."""
    return Outages({replica: iter([(start, lasts)])}, fate)


def test_a_request_that_is_alone_takes_as_long_as_if_its_kv_were_sent():
    # The prompt and the first token: 0 to 10. 5 to connect, 32 positions in 16: 31. Two more tokens: 41, 51.
    served = fetched([job("a", 3, prompt=32)])
    frame = rows(served)
    assert (frame.ended_ns["a"], frame.tokens["a"], frame.replica["a"]) == (51, 3, 1)
    assert (frame.ttft_s["a"], frame.transfer_s["a"]) == pytest.approx((10e-9, 21e-9))
    assert table(served, "transfers") == [(0, 10, 31, 32)]
    assert table(served, "kept") == [(0, 10, 31, 0, 32)]
    found = summary(served.logs, service_log=served.service_log)
    assert booked(found) == {"prefill": 1, "decode": 2, "no_demand": 9}
    assert (found["tokens"]["computed"], found["tokens"]["recomputed"]) == (34, 0)


def test_two_transfers_share_the_link():
    # Both prompts are there at 10. From 15 on each of the two has half of the link: 32 ns instead of 16.
    served = fetched([job("a", 2, prompt=32), job("b", 2, prompt=32)])
    assert table(served, "transfers") == [(0, 10, 47, 32), (1, 10, 47, 32)]
    assert rows(served).ended_ns.tolist() == [57, 57]


def test_a_transfer_is_as_fast_as_the_busier_of_its_links():
    # a and b come from two replicas to one: each has half of the link there. When a, of 16 positions, is through at
    # 15 + 16 = 31, b has 8 of its 16 ns to go, and the link alone: 39.
    served = fetched([job("a", 2, prompt=16), job("b", 2, prompt=32)], prefill=[engine(slots=1), engine(slots=1)])
    assert table(served, "transfers") == [(0, 10, 31, 16), (1, 10, 39, 32)]


def test_prefill_waits_while_the_decoder_has_no_room():
    # Three pages at the decoder: room for one of two requests of 33 positions. The pages of b stay where they are,
    # and with them one of two prompts that the four pages of the prefill replica hold: c is computed at 31, when a
    # has been copied. a ends at 51, b is fetched then, to 72, and ends at 92; c is fetched at 92.
    requests = [job(name, 3, prompt=32) for name in "abc"]
    served = fetched(requests, prefill=[engine(slots=4, pages=4)], decode=[engine(slots=4, pages=3)])
    assert times(served.logs[0], "admitted") == {"a": 0, "b": 0, "c": 31}
    assert times(served.logs[1], "admitted") == {"a": 10, "b": 51, "c": 92}
    assert rows(served).ended_ns.tolist() == [51, 92, 133]
    assert table(served, "kept") == [(0, 10, 31, 0, 32), (1, 10, 72, 0, 32), (2, 41, 113, 0, 32)]


def test_only_the_pages_that_are_missing_are_copied():
    # The second request has the first 32 of its 48 tokens in the decoder's cache: 16 are copied, in 8.
    def cached():
        policy = Policy(FirstComeFirstServed(), Optimistic(), LastAdmitted())
        return Scheduler(policy, PrefixPool(100, 16), EngineConfig(slots=4, token_budget=1000))

    requests = [
        Request("a", 0, 32, 3, tokens=tuple(range(32))),
        Request("b", 100, 48, 3, tokens=tuple(range(48))),
    ]
    served = fetched(requests, decode=[cached()])
    assert table(served, "transfers") == [(0, 10, 31, 32), (1, 110, 123, 16)]
    assert summary(served.logs, service_log=served.service_log)["tokens"]["cached"] == 0


def test_a_client_that_gives_up_during_the_transfer_frees_the_pages_of_both():
    served = fetched([Request("a", 0, 32, 3, patience=Patience(timeout=20)), job("b", 2, prompt=32, arrival=12)])
    assert rows(served).status.tolist() == ["timed_out", "finished"]
    assert table(served, "kept")[0] == (0, 10, 20, 0, 32)
    assert table(served, "transfers") == [(1, 22, 43, 32)]


def test_kv_on_a_replica_that_fails_is_computed_again():
    # The prompt's KV is being copied when its replica fails at 20. The other computes 33 tokens from 20 to 30, which
    # brings the second; 33 positions take 5 and 16.5, rounded to 16: 51. The third token: 61.
    served = fetched(
        [job("a", 3, prompt=32)],
        prefill=[engine(slots=1), engine(slots=1)],
        outages=down(Kind.MOVED, 0, 20, 1000),
    )
    assert rows(served).ended_ns["a"] == 61
    assert (rows(served).tokens["a"], rows(served).attempts["a"]) == (3, 1)
    assert table(served, "kept") == [(0, 10, 20, 0, 32), (0, 30, 51, 1, 33)]


def test_a_decoder_that_fails_during_the_transfer_costs_only_the_transfer():
    # The other one fetches from 20 on: 25 to 41.
    served = fetched(
        [job("a", 3, prompt=32)],
        decode=[engine(slots=1), engine(slots=1)],
        outages=down(Kind.MOVED, 1, 20, 1000),
    )
    assert table(served, "transfers") == [(0, 20, 41, 32)]
    assert rows(served).ended_ns["a"] == 61
    assert summary(served.logs, service_log=served.service_log)["tokens"]["recomputed"] == 0


def test_requests_that_are_lost_with_the_kv_they_wait_for_are_tried_again():
    served = fetched(
        [job("a", 3, prompt=32)],
        prefill=[engine(slots=1), engine(slots=1)],
        outages=down(Kind.INTERRUPTED, 0, 20, 1000),
        retry=Retry(2, lambda request, attempts: 5),
    )
    assert (rows(served).attempts["a"], rows(served).ended_ns["a"]) == (2, 25 + 51)


def test_slots_that_wait_for_kv_are_held():
    # a decodes from 31 to 61. b is fetched from 41 to 62; in the steps from 41 and 51 its slot is held.
    served = fetched([job("a", 4, prompt=32), job("b", 2, prompt=32, arrival=31)])
    assert booked(summary(served.logs, service_log=served.service_log))["held"] == 2


def test_the_summary_says_what_each_pool_waited_for():
    # As above, to 133 ns with four slots each. The prefill replica works in two steps of 10: in the first c waits for
    # pages. a decodes for 20 while the slot of no other waits; the same for b and c: idle otherwise.
    requests = [job(name, 3, prompt=32) for name in "abc"]
    served = fetched(requests, prefill=[engine(slots=4, pages=4)], decode=[engine(slots=4, pages=3)])
    found = summary(served.logs, service_log=served.service_log)
    prefill, decode = (pool["slot_seconds"] for pool in found["pools"])
    assert (prefill["prefill"], prefill["no_memory"]) == pytest.approx((30e-9, 10e-9))
    assert prefill["idle"] == pytest.approx(4 * 113e-9)
    assert (decode["decode"], decode["held"]) == pytest.approx((60e-9, 0))
    assert decode["idle"] == pytest.approx(4 * 73e-9)
    # KV was kept for 21, 62 and 72 ns, of which 21 were for each transfer.
    assert found["pools"][0]["kept_positions"] == pytest.approx(32 * (21 + 62 + 72) / 133)
    assert found["service"]["room_wait_s"]["mean"] == pytest.approx((0 + 41 + 51) / 3 * 1e-9)
