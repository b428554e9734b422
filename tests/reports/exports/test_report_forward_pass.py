"""Forward-pass metrics of a run: a record a step, whose sums are those of the log and add up to the waiting."""

from __future__ import annotations

import json
from typing import Any

import pytest

import slotstep
from calibrate.fit.step_log import of_log
from reports.exports.forward_pass import lines, records
from sim.accounting.ledger import waiting_by_step
from sim.accounting.requests import RequestRecords
from slotstep.runs.result import Result

BUSY: dict[str, Any] = {
    "workload": {
        "synthetic": {
            "requests": 300,
            "arrivals": {"poisson": {"rate": 40}},
            "prompt": {"lognormal": {"mean": 300, "cv": 1}},
            "output": {"lognormal": {"mean": 80, "cv": 1}},
        }
    },
    "engine": {"slots": 16, "pages": 300, "token_budget": 512},
    "cost": {"affine": {"base": "5ms", "per_prefill_token": "20us"}},
}
ENGINES: dict[str, dict[str, Any]] = {
    "preemptions": {},
    "asynchronous": {"preset": "vllm", "slots": 16, "pages": 300, "token_budget": 512},
    "prefix cache": {"slots": 16, "pages": 300, "token_budget": 512, "prefix_cache": True},
    "static": {"slots": 8, "pages": 600, "token_budget": 4096, "batching": "static"},
}


def run(**changes: Any) -> Result:
    return slotstep.run(slotstep.parse({**BUSY, **changes}))


def test_two_requests_step_by_step() -> None:
    requests = [{"prompt": 6, "output": 3}, {"prompt": 3, "output": 1, "arrival": "2ms"}]
    result = run(
        workload={"requests": requests},
        engine={"slots": 1, "token_budget": 4, "pages": 10},
        cost={"unit": "2ms"},
    )
    found = list(records(result.log, "7"))
    scheduled = [each["scheduled_requests"] for each in found]
    # Of six prompt tokens four, then two; two decodes; then the other prompt.
    assert [each["sum_prefill_tokens"] for each in scheduled] == [4, 2, 0, 0, 3]
    assert [each["sum_prefill_kv_tokens"] for each in scheduled] == [0, 4, 0, 0, 0]
    assert [each["num_decode_requests"] for each in scheduled] == [0, 0, 1, 1, 0]
    assert [each["sum_decode_kv_tokens"] for each in scheduled] == [0, 0, 6, 7, 0]
    assert [each["queued_requests"]["sum_prefill_tokens"] for each in found] == [0, 3, 3, 3, 0]
    assert [each["counter_id"] for each in found] == [0, 1, 2, 3, 4]
    assert {(each["wall_time"], each["worker_id"]) for each in found} == {(0.002, "7")}


def test_variances_are_those_of_the_population() -> None:
    requests = [{"prompt": 10, "output": 3}, {"prompt": 30, "output": 3}]
    result = run(workload={"requests": requests}, engine={"slots": 2, "token_budget": 64, "pages": 10})
    first, second, third = (each["scheduled_requests"] for each in records(result.log, "0"))
    assert first["var_prefill_length"] == 100
    assert second["var_decode_kv_tokens"] == third["var_decode_kv_tokens"] == 100
    assert (first["var_decode_kv_tokens"], second["var_prefill_length"]) == (0, 0)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_the_sums_are_those_of_the_log(engine: dict[str, Any]) -> None:
    result = run(**({"engine": engine} if engine else {}))
    steps = of_log(result.log)
    found = [each["scheduled_requests"] for each in records(result.log, "0")]
    assert [each["num_prefill_requests"] for each in found] == steps["chunks"].tolist()
    assert [each["sum_prefill_tokens"] for each in found] == steps["chunk_tokens"].tolist()
    assert [each["num_decode_requests"] for each in found] == steps["decodes"].tolist()
    assert [each["sum_decode_kv_tokens"] for each in found] == steps["context"].tolist()
    queues = [each["queued_requests"] for each in records(result.log, "0")]
    waiting = [each["num_prefill_requests"] + each["num_decode_requests"] for each in queues]
    assert waiting == waiting_by_step(RequestRecords(result.log)).tolist()
    if not engine:
        assert result.summary["preemptions"]
        assert any(each["num_decode_requests"] for each in queues)


def test_replicas_are_workers_whose_records_come_in_the_order_of_their_ends() -> None:
    result = run(cluster={"replicas": 3})
    found = [json.loads(line) for piece in lines(result.logs) for line in piece.splitlines()]
    assert len(found) == sum(log.steps for log in result.logs)
    for worker, log in enumerate(result.logs):
        mine = [each for each in found if each["worker_id"] == str(worker)]
        assert [each["counter_id"] for each in mine] == list(range(log.steps))
    ends = [RequestRecords(log).step_ends for log in result.logs]
    order = [ends[int(each["worker_id"])][each["counter_id"]] for each in found]
    assert order == sorted(order)


def test_macro_steps_give_the_same_records() -> None:
    every, stepped = run(), run(engine={**BUSY["engine"], "macro": False})
    assert "".join(lines(every.logs)) == "".join(lines(stepped.logs))
