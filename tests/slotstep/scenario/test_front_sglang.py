"""The preset of SGLang in a scenario: its names, its defaults, and what it refuses."""

from __future__ import annotations

import pytest

import slotstep
from traces.errors import BadInput

FEW = [{"output": 8, "prompt": 30}, {"output": 8, "prompt": 30}]


def scenario(engine, requests=FEW, **others):
    return slotstep.parse(
        {
            "workload": {"requests": requests},
            "cost": {"unit": "1ms"},
            "engine": {"preset": "sglang", **engine},
            **others,
        }
    )


def test_defaults_are_those_of_the_server():
    engine = scenario({"max_total_tokens": 400_000, "context_length": 8192}).engine
    assert (engine.page_size, engine.pages, engine.slots, engine.version) == (1, 400_000, 4096, "0.5.23")
    assert (engine.async_scheduling, engine.radix.eviction) == (True, "lru")
    apart = engine.apart
    assert (apart.max_prefill_tokens, apart.chunked_prefill_size, apart.mixed) == (16384, 8192, False)
    assert (apart.initial_ratio, apart.minimum_ratio) == pytest.approx((0.7, 0.098))


@pytest.mark.parametrize(("memory", "chunk"), [("16GiB", 2048), ("24GiB", 4096), ("80GiB", 8192), ("192GiB", 16384)])
def test_the_chunk_follows_from_the_memory_of_the_gpu(memory, chunk):
    assert scenario({"device_memory": memory, "pages": 9999}).engine.apart.chunked_prefill_size == chunk


@pytest.mark.parametrize(
    ("tokens", "context", "slots"),
    [(1000, 1000, 500), (40_000, 10_000, 2048), (40_000, 8192, 2500), (10**6, 8192, 4096)],
)
def test_the_requests_at_once_follow_from_the_cache(tokens, context, slots):
    assert scenario({"max_total_tokens": tokens, "context_length": context}).engine.slots == slots


def test_the_arguments_of_the_engine_are_our_keys():
    made = scenario(
        {
            "max_running_requests": 9,
            "max_total_tokens": 330,
            "page_size": 16,
            "chunked_prefill_size": 64,
            "enable_mixed_chunk": True,
            "max_prefill_tokens": 99,
            "schedule_conservativeness": 0.5,
            "disable_radix_cache": True,
            "disable_overlap_schedule": True,
            "prefill_decode_interval": 3,
            "enable_priority_scheduling": True,
            "retraction_policy": "priority",
            "schedule_policy": "lof",
        }
    )
    engine, apart = made.engine, made.engine.apart
    assert (engine.slots, engine.pages, engine.prefix_cache, engine.async_scheduling) == (9, 20, False, False)
    assert (apart.chunked_prefill_size, apart.mixed, apart.max_prefill_tokens) == (64, True, 99)
    assert (apart.initial_ratio, apart.minimum_ratio) == pytest.approx((0.35, 0.049))
    assert (apart.prefill_interval, apart.preempt_by, apart.retraction) == (3, 10, "priority")
    assert (made.policy.name, made.policy.options) == ("lof", {"by_priority": True})


def test_a_policy_that_needs_the_cache_is_fcfs_without_it():
    assert scenario({"schedule_policy": "lpm", "pages": 999}).policy.name == "lpm"
    assert scenario({"schedule_policy": "lpm", "pages": 999, "disable_radix_cache": True}).policy.name == "requeue"


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ({"schedule_policy": "sjf"}, "schedule_policy: found 'sjf'; expected fcfs, lof"),
        ({"schedule_policy": "shortest-prefill-first", "disable_radix_cache": True}, "needs the prefix cache"),
        ({"max_running_requests": 3, "slots": 4}, "max_running_requests and slots are one setting"),
        ({"chunked_prefill_size": 64, "apart": {"chunked_prefill_size": 32}}, "are one setting"),
        ({"token_budget": 512}, "token_budget does not apply"),
        ({"max_num_seqs": 4}, "unknown key"),
        ({"priority_scheduling_preemption_threshold": 3}, "needs enable_priority_scheduling"),
        ({"page_size": 16, "chunked_prefill_size": 24}, "whole pages of 16"),
        ({"version": "0.4.0"}, "engine.version: found '0.4.0'; expected '0.5.23'"),
    ],
)
def test_what_the_engine_does_not_take_is_refused(engine, message):
    with pytest.raises(BadInput, match=message):
        scenario({"pages": 999, **engine})


def test_its_names_need_the_preset():
    with pytest.raises(BadInput, match="max_total_tokens is a name of preset: sglang; expected pages"):
        slotstep.parse({"workload": {"requests": FEW}, "cost": {"unit": "1ms"}, "engine": {"max_total_tokens": 9}})


def test_a_resolved_scenario_reads_back():
    made = scenario({"max_total_tokens": 500, "schedule_policy": "hrrn", "chunked_prefill_size": -1})
    again = slotstep.parse(slotstep.resolved(made))
    assert again.engine == made.engine
    assert slotstep.run(again).log.sha256() == slotstep.run(made).log.sha256()


def test_its_axes_are_there_without_the_preset():
    made = slotstep.parse(
        {
            "workload": {"requests": FEW},
            "cost": {"unit": "1ms"},
            "engine": {"slots": 2, "pages": 50, "apart": {"chunked_prefill_size": 16, "mixed": True}},
        }
    )
    assert slotstep.run(made).summary["requests"]["finished"] == 2


def test_a_prefill_goes_before_decodes_and_they_stand_still():
    """Two requests 3 ms apart: the second's prefill takes a pass in which the first gets no token."""
    requests = [{"output": 8, "prompt": 30}, {"output": 8, "prompt": 30, "arrival": "3ms"}]
    summary = slotstep.run(scenario({"max_total_tokens": 500, "disable_overlap_schedule": True}, requests)).summary
    assert summary["steps"] == 1 + 2 + 1 + 5 + 2
    assert summary["slot_steps"]["prefill"] == 2
    assert summary["slot_steps"]["no_budget"] == 1


def test_an_engine_that_dies_ends_the_run_with_request_and_pass():
    """The fourth prompt goes on in chunks whatever its need, until the memory is full."""
    requests = [
        {"id": "a", "output": 60, "prompt": 5},
        {"id": "b", "output": 60, "prompt": 5},
        {"id": "c", "output": 30, "prompt": 5, "arrival": "3ms"},
        {"id": "d", "output": 1, "prompt": 120, "arrival": "12ms"},
    ]
    engine = {"max_total_tokens": 200, "chunked_prefill_size": 8, "enable_mixed_chunk": True}
    engine |= {"schedule_conservativeness": 0.0, "disable_overlap_schedule": True, "max_running_requests": 32}
    with pytest.raises(BadInput, match=r"engine: request d: .* does not fit into the memory in pass 32"):
        slotstep.run(scenario(engine, requests))


def test_requests_of_known_length_reserve_all_of_it():
    """Without a cache, memory for one of two at a time: their ends are known, so the second waits."""
    engine = {"max_total_tokens": 100, "disable_radix_cache": True, "schedule_conservativeness": 0.2}
    workload = {"requests": [{"output": 50, "prompt": 20}, {"output": 50, "prompt": 20}]}
    base = {"cost": {"unit": "1ms"}, "engine": {"preset": "sglang", **engine}}
    guess = slotstep.run(slotstep.parse({"workload": workload, **base})).summary
    known = slotstep.run(slotstep.parse({"workload": workload | {"ignore_eos": True}, **base})).summary
    assert guess["preemptions"] > 0
    assert known["preemptions"] == 0


def test_its_replicas_fail_and_start_again():
    """A prefill to 1 ms and tokens to 8 ms; the failure at 4.5 ms costs the pass it cuts and a second prefill."""
    outage = {"replica": 0, "at": "4500us", "lasts": "500us"}
    cluster = {"failures": {"work": "resumed", "outages": [outage]}}
    found = slotstep.run(scenario({"max_total_tokens": 1000}, FEW[:1], cluster=cluster))
    assert found.summary["e2e_s"]["max"] == pytest.approx(0.009)
    assert found.summary["service"]["outages"] == 1


def test_pools_that_hand_over_are_refused():
    pools = {"prefill": {}, "decode": {}, "transfer": {}}
    with pytest.raises(BadInput, match="pools of prefill and decode are modelled for engines that mix"):
        slotstep.run(scenario({"max_total_tokens": 1000}, cluster=pools))
