"""What a scenario may say, what it means, and the one line for everything it may not."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

import slotstep
from policies import registry as policies
from slotstep.runs.policy import predictor
from slotstep.runs.workload import requests
from slotstep.scenario import document
from slotstep.scenario.schema import Scenario
from traces.errors import BadInput

PLAIN: dict[str, Any] = {"workload": {"requests": [{"output": 1}]}, "cost": {"unit": "1ms"}, "policy": "fcfs"}
FILES = sorted((ROOT / "examples").glob("*.yaml"))
EXAMPLES = [file for file in FILES if "\nworkload:" in "\n" + file.read_text()]
TINY_TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n" + "".join(
    f"2023-11-16 18:15:{second:02}.5000000,{10 + second},{second + 1}\r\n" for second in range(0, 50, 10)
)


def scenario(*settings: str, **context: Any) -> Scenario:
    """The plain scenario with overrides."""
    mapping = deepcopy(PLAIN)
    document.override(mapping, settings)
    return slotstep.parse(mapping, source="chat.yaml", **context)


def test_everything_but_workload_and_cost_has_a_default() -> None:
    mapping = {"workload": {"requests": [{"output": 3}]}, "cost": {"unit": "1ms"}}
    assert slotstep.resolved(slotstep.parse(mapping, name="chat")) == {
        "name": "chat",
        "workload": {
            "requests": [{"arrival": "0ns", "prompt": 1, "output": 3, "tenant": "default", "priority": 0}],
            "scale_rate": 1.0,
            "ignore_eos": False,
        },
        "limits": {},
        "cluster": {"replicas": 1, "router": "round_robin"},
        "engine": {
            "slots": 64,
            "token_budget": 2048,
            "page_size": 16,
            "pages": 8192,
            "batching": "continuous",
            "evict": "before",
            "harvest": "step",
            "memory": "paged",
            "admission": "optimistic",
            "chunked": True,
            "admit_every": 1,
            "chunk_limit": 0,
            "chunk_limit_adapts": False,
            "async_scheduling": False,
            "preempt_for_slot": False,
            "preemption": "recompute",
            "reserve_full_prompt": True,
            "watermark": 0.0,
            "prefix_cache": False,
            "macro": True,
        },
        "cost": {"unit": "1ms"},
        "policy": "fcfs",
        "objectives": {"from": "wanted"},
        "seed": 0,
        "allow_large": False,
    }


def test_the_name_is_the_files_unless_it_has_one(tmp_path: Path) -> None:
    file = tmp_path / "evening.yaml"
    file.write_text(document.dump(PLAIN))
    assert slotstep.load(file).name == "evening"
    assert slotstep.load(file, ["name=chat"]).name == "chat"


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_a_resolved_example_reads_back_as_itself(file: Path) -> None:
    loaded = slotstep.load(file)
    assert slotstep.resolved(
        slotstep.parse(document.parse(document.dump(slotstep.resolved(loaded))))
    ) == slotstep.resolved(loaded)


@pytest.mark.parametrize(
    "settings",
    [
        ["cost={affine: {base: 5ms, per_context_token: 0.32ns, host: 1.25us}}"],
        ["cost={roofline: {weight_pass: 10.31ms, per_token: 44.3us, per_chunk_work: 3.2e-1ns}}"],
        ["policy={fair: {order: {sjf: {error: 0.3}}, max_wait: 30s}}", "objectives={ttft: 1s, itl: 80ms}"],
        ["engine={batching: static, memory: contiguous}"],
        ["engine={evict: after, harvest: next, chunked: false, macro: false}", "seed=7"],
        ["workload={trace: {azure: a.csv}, between: [0s, 10m], first: 100, scale_rate: 1.5, max_output: 20}"],
        ["workload.requests=[{id: no, arrival: 1.5s, prompt: 7, output: 3, tenant: '1e3', max_output: 4}]"],
    ],
)
def test_a_resolved_scenario_reads_back_as_itself_wherever_it_lies(settings: list[str], tmp_path: Path) -> None:
    original = scenario(*settings, folder=tmp_path)
    again = slotstep.parse(document.parse(document.dump(slotstep.resolved(original))), folder=tmp_path / "elsewhere")
    assert slotstep.resolved(again) == slotstep.resolved(original)


def test_static_batching_and_contiguous_memory_reserve_unless_told() -> None:
    assert scenario().engine.admission == "optimistic"
    assert scenario("engine.batching=static").engine.admission == "reserve"
    assert scenario("engine.memory=contiguous").engine.admission == "reserve"
    assert scenario("engine.admission=reserve").engine.admission == "reserve"


def test_numbers_may_be_written_with_an_exponent_or_as_text() -> None:
    assert scenario("engine.slots=1e3").engine.slots == 1000
    assert scenario("engine.slots='12'").engine.slots == 12
    assert scenario("workload.scale_rate='1e-1'").workload.scale_rate == 0.1
    assert scenario("workload.requests.0.id=7").workload.requests[0].id == "7"  # type: ignore[index]


UNITS = "(units: ns, us, ms, s, m, h)"


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("engine.slotz=8", "engine.slotz: unknown key; did you mean engine.slots?"),
        ("cost={affine: {bas: 5ms}}", "cost.affine.bas: unknown key; did you mean cost.affine.base?"),
        (
            "workload.requests.0.outputs=4",
            "workload.requests.0.outputs: unknown key; did you mean workload.requests.0.output?",
        ),
        (
            "workload={trace: {azur: x}}",
            "workload.trace.azur: unknown key; did you mean workload.trace.azure?",
        ),
        ("workloads={}", "workloads: unknown key; did you mean workload?"),
        (
            "zebra=3",
            "zebra: unknown key; known are name, workload, clients, limits, cluster, engine, cost, policy, "
            "objectives, measure, metrics, seed, allow_large",
        ),
        ("engine.slots=many", "engine.slots: found 'many'; expected a whole number of at least 1"),
        ("engine.slots=1.5", "engine.slots: found 1.5; expected a whole number of at least 1"),
        ("engine.slots=-3", "engine.slots: found -3; expected a whole number of at least 1"),
        ("engine.slots=", "engine.slots: found nothing; expected a whole number of at least 1"),
        ("engine.slots.x=3", "engine.slots: found {'x': 3}; expected a whole number of at least 1"),
        ("engine.slots=1e300", "engine.slots: found 1e+300; expected at most 1000000000000000"),
        ("engine.chunked=yes", "engine.chunked: found 'yes'; expected true or false"),
        ("engine.batching=dynamic", "engine.batching: found 'dynamic'; expected 'continuous' or 'static'"),
        ("engine=3", "engine: found 3; expected a mapping with keys such as slots"),
        ("engine.harvest=next", "engine: harvest: next needs evict: after"),
        (
            "engine={batching: static, evict: after}",
            "engine: evict: after needs batching: continuous (a static batch ends as one)",
        ),
        (
            "engine={batching: static, admission: optimistic}",
            "engine: batching: static needs admission: reserve",
        ),
        (
            "engine={memory: contiguous, admission: optimistic}",
            "engine: memory: contiguous needs admission: reserve",
        ),
        (
            "workload.requests.0.prompt=-4",
            "workload.requests.0.prompt: found -4; expected a whole number of at least 1",
        ),
        ("workload.requests=[]", "workload.requests: the list is empty; expected at least one request"),
        ("workload.requests=[{}]", "workload.requests.0.output: missing"),
        (
            "workload.requests=[{id: a, output: 1}, {id: a, output: 1}]",
            "workload.requests.1.id is 'a', which requests.0 has; expected a new one",
        ),
        (
            "workload.synthetic={}",
            "workload: found synthetic and requests; expected exactly one of trace, synthetic, requests and merge",
        ),
        ("workload={}", "workload: found none; expected exactly one of trace, synthetic, requests and merge"),
        (
            "workload={trace: x.csv}",
            "workload.trace: found 'x.csv'; expected a kind and a file, as in azure: FILE",
        ),
        ("workload={trace: {azure: 3}}", "workload.trace: found 3 as the file; expected its name"),
        ("workload.between=[5s, 1s]", "workload.between: ends at 1s; expected later than 5s"),
        ("workload.scale_rate=0", "workload.scale_rate: found 0; expected a number above 0"),
        (
            "workload={requests: [{id: a, output: 9}], max_output: 8}",
            "workload.max_output: request a: output is 9; expected at most its own limit 8",
        ),
        (
            "workload={synthetic: {requests: 3, output: 3, arrivals: {poisson: {rate: none}}}}",
            "workload.synthetic.arrivals.poisson.rate is 'none'; expected a number from 1e-09 to 1e+09",
        ),
        (
            "workload={synthetic: {duration: 60, output: 3, arrivals: {poisson: {rate: 1}}}}",
            f"workload.synthetic.duration: found 60, without a unit; expected a duration such as 5ms {UNITS}",
        ),
        ("cost={}", "cost: found none; expected one of unit, affine, roofline, profile, shape and form"),
        (
            "cost.affine.base=5ms",
            "cost: found unit and affine; expected one of unit, affine, roofline, profile, shape and form",
        ),
        ("cost={affine: {base: -5ms}}", "cost.affine.base: found '-5ms'; expected a duration of at least 0"),
        (
            "cost={affine: {base: 5}}",
            f"cost.affine.base: found 5, without a unit; expected a duration such as 5ms {UNITS}",
        ),
        ("cost={unit: 0}", "cost.unit is 0 ns; expected at least 1 ns"),
        ("cost={affine: {}}", "cost: every step takes 0 ns; expected a coefficient above 0"),
        ("cost={affine: {base: 0, raggedness: 0.5}}", "cost: every step takes 0 ns; expected a coefficient above 0"),
        ("cost={roofline: {graph_sizes: [1]}}", "cost: every step takes 0 ns; expected a coefficient above 0"),
        (
            "cost={affine: {per_swapped_token: 1us}}",
            "cost: every step takes 0 ns; expected a coefficient above 0",
        ),
        (
            "policy={sjf: {}, fair: {}}",
            "policy: found {'sjf': {}, 'fair': {}}; expected a policy, or one with its options",
        ),
        (
            "policy.fair.max_wait=30",
            f"policy: max_wait: found 30, without a unit; expected a duration such as 5ms {UNITS}",
        ),
        ("objectives.tfft=1s", "objectives.tfft: unknown key; did you mean objectives.ttft?"),
        ("seed=-1", "seed: found -1; expected a whole number of at least 0"),
        ("name=[]", "name: found []; expected text, in quotes if need be"),
    ],
)
def test_a_mistake_is_one_line_with_its_key_and_what_would_be_right(setting: str, complaint: str) -> None:
    with pytest.raises(BadInput) as caught:
        scenario(setting)
    assert str(caught.value) == f"chat.yaml: {complaint}"


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("policy=sfj", "'sfj' is unknown; did you mean sjf?"),
        ("policy=zebra", f"'zebra' is unknown; known are {', '.join(policies.names())}"),
        ("policy.fair.order=sfj", "'sfj' is unknown; did you mean sjf?"),
        ("policy.sjf.eror=1", "sjf.eror: unknown option; did you mean error?"),
        ("policy.fair.order.sjf.eror=1", "sjf.eror: unknown option; did you mean error?"),
        ("policy.fcfs.error=1", "fcfs.error: unknown option; fcfs has none"),
        ("policy.sjf.predict=exct", "predict is 'exct'; did you mean exact?"),
        ("policy.fair.order=[sjf]", "found ['sjf']; expected the name of a policy, or its name with its options"),
    ],
)
def test_a_policy_or_option_that_does_not_exist_is_refused_when_the_scenario_is_read(
    setting: str, complaint: str
) -> None:
    with pytest.raises(BadInput) as caught:
        scenario(setting)
    assert str(caught.value) == f"chat.yaml: policy: {complaint}"


def test_a_policy_keeps_the_scenarios_options_and_another_takes_its_defaults() -> None:
    original = scenario("policy={sjf: {error: 0.5}}")
    assert slotstep.resolved(slotstep.with_policy(original, "sjf"))["policy"] == {
        "sjf": {"predict": "exact", "error": 0.5}
    }
    assert slotstep.resolved(slotstep.with_policy(original, "fair"))["policy"] == {
        "fair": {"order": {"sjf": {"predict": "exact", "error": 0}}, "max_wait": "30s"}
    }
    assert slotstep.resolved(slotstep.with_policy(original, "fcfs"))["policy"] == "fcfs"
    assert [predictor(slotstep.with_policy(original, name)) for name in ("sjf", "fair", "fcfs")] == [
        "lognormal error 0.5",
        "exact",
        None,
    ]
    for unknown in ("sfj", ""):
        with pytest.raises(BadInput, match=r"^chat\.yaml: policy: "):
            slotstep.with_policy(original, unknown)


def test_a_trace_is_found_beside_its_scenario_and_sliced_thinned_and_limited_in_that_order(
    tmp_path: Path,
) -> None:
    (tmp_path / "tiny.csv").write_text(TINY_TRACE)
    (tmp_path / "chat.yaml").write_text(document.dump(PLAIN))
    workload = "workload={trace: {azure: tiny.csv}, between: [10s, 40s], first: 2, scale_rate: 2, max_output: 50}"
    found = requests(slotstep.load(tmp_path / "chat.yaml", [workload]))
    assert [(r.arrival, r.prompt, r.output, r.max_output) for r in found] == [
        (0, 20, 11, 50),
        (5_000_000_000, 30, 21, 50),
    ]


def test_the_limit_of_the_workload_is_for_requests_that_declare_none() -> None:
    lines = "workload={requests: [{id: a, output: 3}, {id: b, output: 3, max_output: 5}], max_output: 4}"
    assert [r.max_output for r in requests(scenario(lines))] == [4, 5]


def test_a_trace_of_the_command_line_takes_the_place_of_any_source_and_keeps_the_slice(
    tmp_path: Path,
) -> None:
    (tmp_path / "tiny.csv").write_text(TINY_TRACE)
    (tmp_path / "chat.yaml").write_text(document.dump(PLAIN))
    loaded = slotstep.load(tmp_path / "chat.yaml", ["workload.first=3"], trace=tmp_path / "tiny.csv")
    assert [r.prompt for r in requests(loaded)] == [10, 20, 30]


def test_a_synthetic_workload_hears_of_times_in_nanoseconds_and_draws_by_the_seed() -> None:
    workload = "workload={synthetic: {duration: 2s, output: 3, arrivals: {poisson: {rate: 1e2}}}}"
    found = requests(scenario(workload))
    assert 0 < found[-1].arrival < 2_000_000_000
    assert found == requests(scenario(workload, "seed=0"))
    assert found != requests(scenario(workload, "seed=1"))
