"""Retries, unequal replicas, failures and pools in a scenario file."""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

import slotstep
from sim.request import SECOND, Request
from slotstep.runs.failures import backoff, drawn
from slotstep.runs.result import Result
from slotstep.runs.workload import LoadedWorkload
from slotstep.scenario import document
from slotstep.scenario.clients import Retry
from traces.errors import BadInput

THREE: dict[str, Any] = {
    "workload": {"requests": [{"id": name, "output": 3, "prompt": 32} for name in "abc"]},
    "engine": {"slots": 4},
    "cost": {"unit": "10ms"},
}


def scenario(*settings: str) -> slotstep.Scenario:
    """Three requests of three tokens at 0, steps of 10 ms, with overrides."""
    mapping = deepcopy(THREE)
    document.override(mapping, settings)
    return slotstep.parse(mapping, source="chat.yaml")


def run(*settings: str) -> Result:
    """A run of it, and of the scenario that it resolves to, which must be the same."""
    given = scenario(*settings)
    result = slotstep.run(given)
    again = slotstep.parse(slotstep.resolved(given))
    assert slotstep.resolved(again) == slotstep.resolved(given)
    assert slotstep.run(again).summary["log_sha256"] == result.summary["log_sha256"]
    return result


def ends(result: Result) -> dict[str, float]:
    """When each request ended, in ms."""
    return {name: ended / 1e6 for name, ended in zip(result.requests.id, result.requests.ended_ns, strict=True)}


def test_clients_try_again_after_their_pauses() -> None:
    # One slot and one place to wait: b and c come together; c is turned away at 5 and at 15, and taken at 35, when b
    # runs (30 to 60).
    later = ("workload.requests.1.arrival=5ms", "workload.requests.2.arrival=5ms")
    narrow = ("engine.slots=1", "limits.queue=1")
    result = run("clients.retry={attempts: 4, initial: 10ms}", *later, *narrow)
    assert ends(result) == {"a": 30, "b": 60, "c": 90}
    assert result.requests.attempts.tolist() == [1, 1, 3]
    assert result.summary["service"]["attempts"] == 5
    once = run("clients.retry={attempts: 4, after: [timed_out]}", *later, *narrow)
    assert once.summary["rejections"] == {"queue is full": 1}


def test_pauses_grow_up_to_the_longest_and_jitter_only_shortens_them() -> None:
    settled = Retry.model_validate({"attempts": 9, "initial": "1s", "factor": 3, "max": "20s"})
    request = Request("a", 0, 1, 1)
    pause = backoff(settled, 0)
    assert [pause(request, tried) for tried in (1, 2, 3, 4, 5000)] == [
        SECOND,
        3 * SECOND,
        9 * SECOND,
        20 * SECOND,
        20 * SECOND,
    ]
    drawn_pauses = [backoff(settled.model_copy(update={"jitter": 0.5}), seed)(request, 1) for seed in range(200)]
    assert 0.5 * SECOND < min(drawn_pauses) < 0.52 * SECOND
    assert 0.98 * SECOND < max(drawn_pauses) <= SECOND


def test_outages_by_lot_have_the_means_asked_for_and_never_overlap() -> None:
    # 2,000 exponential times of mean 100: their mean has a standard deviation of 2.24; 5 of them to each side.
    outages = list(islice(drawn(100, 20, Random(1)), 2000))
    ups = [outages[0][0]] + [start - (before + lasted) for (before, lasted), (start, _) in pairwise(outages)]
    assert min(ups) > 0
    assert sum(ups) / 2000 == pytest.approx(100, abs=5 * 2.24)
    assert sum(lasted for _, lasted in outages) / 2000 == pytest.approx(20, abs=5 * 0.45)


def test_groups_of_replicas_have_engines_and_costs_of_their_own() -> None:
    groups = "[{count: 2, engine: {slots: 1}}, {engine: {pages: 50}, cost: {unit: 5ms}}]"
    result = run(f"cluster.replicas={groups}")
    assert ends(result) == {"a": 30, "b": 30, "c": 15}
    assert [(each["slots"], each["pages"]) for each in result.summary["replicas"]] == [(1, 8192), (1, 8192), (4, 50)]
    assert sorted(result.slots.slot) == [0, 1, 2]
    assert result.summary["slot_seconds"]["bought"] == pytest.approx(6 * 0.03)


@pytest.mark.parametrize(
    "cluster",
    [
        "{replicas: [{}, {engine: {macro: false}}]}",
        "{prefill: {replicas: [{engine: {macro: false}}]}, decode: {}, transfer: {}}",
    ],
)
def test_a_group_that_wants_no_macro_steps_has_none_and_the_same_log(cluster: str) -> None:
    stepped, whole = (
        run(f"cluster={each}", "workload.requests.0.output=30")
        for each in (cluster, cluster.replace("false", "true"))
    )
    assert stepped.summary["log_sha256"] == whole.summary["log_sha256"]
    assert [len(log.run_table()["steps"]) for log in stepped.logs] == [log.steps for log in stepped.logs]
    assert any(len(log.run_table()["steps"]) < log.steps for log in whole.logs)


def test_a_preset_of_groups_is_that_of_the_run_if_all_have_it() -> None:
    assert run("cluster.replicas=[{engine: {preset: vllm}}]").summary["preset"] == "vllm 0.32.0"
    assert run("cluster.replicas=[{engine: {preset: vllm}}, {}]").summary["preset"] is None


def test_a_group_may_say_pages_where_the_others_have_as_many_as_fit() -> None:
    settings = ("cost={profile: h100-llama-3.1-8b}", "cluster.replicas=[{engine: {pages: 100}}, {}]")
    few, fitting = run("engine.fit=0.9", *settings).summary["replicas"]
    assert few["pages"] == 100 < fitting["pages"]
    own = run("engine.pages=100", settings[0], "cluster.replicas=[{engine: {fit: 0.9}}, {}]").summary["replicas"]
    assert [each["pages"] for each in own] == [fitting["pages"], 100]


def test_a_weighted_router_sends_by_the_weights_of_unequal_replicas() -> None:
    result = run(
        "cluster={replicas: [{engine: {slots: 1}}, {engine: {slots: 2}}], router: {weighted: {weights: [1, 2]}}}"
    )
    assert [each["requests"]["injected"] for each in result.summary["replicas"]] == [1, 2]


def test_a_planned_outage() -> None:
    lost = "cluster.failures={outages: [{replica: 0, at: 15ms, lasts: 10ms}], work: lost}"
    result = run(lost)
    assert result.summary["rejections"] == {"its replica failed": 3}
    assert result.summary["slot_seconds"]["wasted"] == pytest.approx(3 * 0.01)
    kept = run(lost.replace("lost", "resumed"))
    # The first token at 10; from 25 on the other two.
    assert ends(kept) == {"a": 45, "b": 45, "c": 45}
    assert kept.summary["replicas"][0]["down_s"] == pytest.approx(0.015)


def test_failures_by_lot_are_the_same_every_time_and_others_with_another_seed() -> None:
    failing = "cluster={replicas: 2, failures: {mtbf: 40ms, mttr: 5ms, work: moved}}"
    again = "clients.retry={attempts: 2}"
    first, second = (run(failing, again, "workload.requests.0.output=50") for _ in range(2))
    assert first.summary == second.summary
    assert first.summary["service"]["outages"] > 0
    other = run(failing, again, "workload.requests.0.output=50", "seed=1")
    assert other.summary["log_sha256"] != first.summary["log_sha256"]


def test_pools_hand_over() -> None:
    pools = "{prefill: {}, decode: {replicas: [{engine: {slots: 2}}]}, transfer: {latency: 1ms, per_token: 125us}}"
    result = run(f"cluster={pools}")
    # All prompts to 10; 32 positions take 4 ms each, one after the other: 15, 19 and 23. a decodes from 15 and b from
    # 25 (the step at 15 goes on to 25, as does the one at 25 to 35, when a has ended and c goes in).
    assert ends(result) == {"a": 35, "b": 45, "c": 55}
    assert result.summary["service"]["transfers"] == 3
    assert result.requests.transfer_s.tolist() == pytest.approx([0.005, 0.009, 0.013])


@pytest.mark.slow
def test_a_run_of_a_service_is_saved_with_everything(tmp_path: Any) -> None:
    result = run("cluster={replicas: 2, failures: {outages: [{replica: 1, at: 15ms, lasts: 10ms}], work: moved}}")
    result.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {
        "summary.json",
        "requests.parquet",
        "ledger.png",
        "timeline.png",
    }


def test_sessions_stay_with_their_replica() -> None:
    turns = [
        {"id": f"{session}{turn}", "output": 2, "session": session, "think": "1ms", "arrival": f"{turn}ms"}
        for turn in range(3)
        for session in "xyz"
    ]
    mapping = {
        **deepcopy(THREE),
        "workload": {"requests": turns},
        "clients": {"sessions": {}},
        "cluster": {"replicas": 3, "router": {"sticky": {"by": "session"}}},
    }
    frame = slotstep.run(slotstep.parse(mapping)).requests
    homes = frame.groupby(frame.id.str[0]).replica.unique()
    assert sorted(len(home) for home in homes) == [1, 1, 1]
    assert sorted(home[0] for home in homes) == [0, 1, 2]


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("clients.retry={}", "clients.retry.attempts: missing"),
        ("clients.retry={attempts: 1}", "clients.retry.attempts: found 1; expected at least 2"),
        (
            "clients.retry={attempts: 2, factor: 0.5}",
            "clients.retry.factor: found 0.5; expected a number of at least 1",
        ),
        ("clients.retry={attempts: 2, jitter: 2}", "clients.retry.jitter: found 2; expected a number from 0 to 1"),
        ("clients.retry={attempts: 2, after: [bored]}", "clients.retry.after.0: found 'bored'; expected"),
        ("clients.retry={attempts: 2, after: []}", "after: the list is empty"),
        ("cluster.replicas=[]", "cluster.replicas: found an empty list"),
        ("cluster.replicas=[3]", "cluster.replicas: found 3; expected groups such as"),
        (
            "cluster.replicas=[{engine: {slotz: 1}}]",
            "cluster.replicas: 0.engine.slotz: unknown key; did you mean engine.slots?",
        ),
        ("cluster.replicas=[{cuont: 1}]", "cuont: unknown key; did you mean count?"),
        ("cluster={prefill: {}}", "cluster: found prefill; expected prefill, decode and transfer together"),
        ("cluster={prefill: {}, decode: {}, transfer: {}, replicas: 2}", "found replicas or router beside pools"),
        ("cluster.failures={work: lost}", "cluster.failures: found no failure; expected outages, or mtbf and mttr"),
        ("cluster.failures={mtbf: 1s, work: lost}", "cluster.failures: found one of mtbf and mttr"),
        ("cluster.failures={mtbf: 1s, mttr: 1s}", "cluster.failures.work: missing"),
        (
            "cluster.failures={work: lost, outages: [{replica: 1, at: 0s, lasts: 1s}]}",
            "failures.outages.0.replica: found 1; replicas are 0 to 0",
        ),
        (
            "cluster={prefill: {}, decode: {replicas: [{engine: {batching: static}}]}, transfer: {}}",
            "engine.batching: found static; pools of prefill and decode need continuous",
        ),
        ("cluster={replicas: 2, router: {sticky: {by: id}}}", "by is 'id'; expected tenant or session"),
        ("cluster={router: nearest}", "cluster.router: 'nearest' is unknown"),
    ],
)
def test_what_makes_no_sense_is_refused(setting: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=r"chat\.yaml: ") as error:
        scenario(setting)
    assert complaint in str(error.value)


def test_the_sessions_of_a_public_format_wait_for_their_answers(tmp_path: Path) -> None:
    # Turns as LLMServingSim writes them: a tool runs for 5 ms between the first and the second. Prompts are what is
    # new in a turn here, so the history is put before them: 40 + 3 + 10 tokens.
    turns = [
        {"input_toks": 40, "output_toks": 3, "tool_duration_ns": 5_000_000},
        {"input_toks": 10, "output_toks": 2, "tool_duration_ns": 0},
    ]
    line = {"session_id": "s", "arrival_time_ns": 1_000_000, "sub_requests": turns}
    (tmp_path / "agents.jsonl").write_text(f"{json.dumps(line)}\n")
    mapping = {
        **deepcopy(THREE),
        "workload": {"trace": {"llmservingsim": "agents.jsonl"}},
        "engine": {"prefix_cache": True},
        "clients": {"sessions": {"history": "added"}},
    }
    result = slotstep.run(slotstep.parse(mapping, folder=tmp_path))
    assert result.requests.prompt.tolist() == [40, 53]
    assert (result.requests.ended_ns - result.requests.queued_ns).tolist() == [30_000_000, 20_000_000]
    assert result.requests.queued_ns.diff().tolist()[1] == 35_000_000
    # The first turn computes 40 + 3 - 1 positions: two full pages of 16, and both are found.
    assert result.summary["cache"]["hit_tokens"] == 32


def test_who_is_over_a_quota_may_try_again_when_the_window_has_passed() -> None:
    quota = "policy={tenant_quota: {requests: 2, window: 1s}}"
    assert run(quota).summary["rejections"] == {"tenant is over its quota": 1}
    result = run(quota, "clients.retry={attempts: 2, initial: 1s}")
    assert ends(result) == {"a": 30, "b": 30, "c": 1030}
    assert result.summary["rejections"] == {}


def test_sessions_on_engines_with_other_pages() -> None:
    turns = [
        {"id": f"x{turn}", "prompt": 50 * (turn + 1), "output": 5, "session": "x", "think": 0} for turn in range(2)
    ]
    mapping = {
        **deepcopy(THREE),
        "workload": {"requests": turns},
        "engine": {"prefix_cache": True, "page_size": 16},
        "clients": {"sessions": {}},
        "cluster": {"replicas": [{"engine": {"page_size": 24}}]},
    }
    # 50 + 5 - 1 positions are computed in the first turn: two full pages of 24.
    assert slotstep.run(slotstep.parse(mapping)).summary["cache"]["hit_tokens"] == 48


def test_the_routers_of_two_pools_draw_apart() -> None:
    # 256 draws among 16 pairs: 16 of each are expected.
    given = scenario(
        "cluster={prefill: {replicas: 4, router: random}, decode: {replicas: 4, router: random}, transfer: {}}"
    )
    sent = [Request(str(n), 0, 8, 2) for n in range(256)]
    service_log = slotstep.run(given, workload=LoadedWorkload(sent)).service_log
    assert service_log is not None
    to = {(request, replica // 4): replica % 4 for request, _, replica, _ in service_log.table("legs").tolist()}
    assert {(to[n, 0], to[n, 1]) for n in range(256)} == {(a, b) for a in range(4) for b in range(4)}
