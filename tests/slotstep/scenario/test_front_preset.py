"""Engines as presets: their own names for our keys, their defaults, and what is refused."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

import slotstep
from policies.victims import FewestGenerated, LargestRemaining, LeastServed
from sim.engine.scheduler import Scheduler
from sim.memory.prefix import PrefixPool
from sim.policy.base import LastAdmitted, LeastUrgent, Optimistic
from sim.policy.quantile import Quantile
from sim.policy.ratio import FewestOutputs, Ratio
from slotstep.runs import build
from slotstep.scenario import document
from slotstep.scenario.schema import Scenario
from traces.errors import BadInput

PLAIN: dict[str, Any] = {"workload": {"requests": [{"output": 1}]}, "cost": {"unit": "1ms"}}


def scenario(*settings: str) -> Scenario:
    """The plain scenario with overrides."""
    mapping = deepcopy(PLAIN)
    document.override(mapping, settings)
    return slotstep.parse(mapping, source="chat.yaml")


def built(*settings: str) -> Scheduler:
    """The scheduler of the plain scenario with overrides."""
    return build.scheduler(scenario(*settings))


@pytest.mark.parametrize(
    ("setting", "slots", "budget"),
    [
        ("{preset: vllm}", 1024, 8192),
        ("{preset: vllm, device_memory: 70GiB}", 1024, 8192),
        ("{preset: vllm, device_memory: 141GB, device: NVIDIA H200}", 1024, 8192),
        ("{preset: vllm, device_memory: 69GiB}", 256, 2048),
        ("{preset: vllm, device_memory: 24GB}", 256, 2048),
        ("{preset: vllm, device_memory: 80GiB, device: NVIDIA A100-SXM4-80GB}", 256, 2048),
        ("{preset: vllm, max_num_seqs: 7}", 7, 8192),
        ("{preset: vllm, max_num_batched_tokens: 300}", 300, 300),
        ("{preset: vllm, max_num_batched_tokens: 4096}", 1024, 4096),
        ("{preset: vllm, max_model_len: 9000}", 1024, 8192),
    ],
)
def test_defaults_depend_on_the_memory_of_the_device(setting: str, slots: int, budget: int) -> None:
    made = built(f"engine={setting}")
    assert (made.config.slots, made.config.token_budget) == (slots, budget)
    assert (made.pool.page_size, made.pool.remembers, made.config.depth, made.config.chunked) == (16, True, 2, True)


@pytest.mark.parametrize(
    ("cost", "engine", "slots", "budget"),
    [
        ("{profile: a100-llama-3.1-8b}", "{preset: vllm}", 256, 2048),
        ("{profile: h100-llama-3.1-8b}", "{preset: vllm}", 1024, 8192),
        ("{shape: {model: llama-3.1-8b, device: l40s}}", "{preset: vllm}", 256, 2048),
        ("{shape: {model: llama-3.1-8b, device: a100-sxm-80gb}}", "{preset: vllm}", 256, 2048),
        ("{profile: a100-llama-3.1-8b}", "{preset: vllm, max_num_seqs: 99}", 99, 2048),
        ("{profile: a100-llama-3.1-8b}", "{preset: vllm, device_memory: 80GiB}", 1024, 8192),
    ],
)
def test_defaults_follow_the_device_of_the_cost(cost: str, engine: str, slots: int, budget: int) -> None:
    found = scenario("cost=null", f"cost={cost}", f"engine={engine}").engine
    assert (found.slots, found.token_budget) == (slots, budget)


def test_a_group_of_replicas_has_the_defaults_of_its_own_device() -> None:
    group = "{count: 1, cost: {profile: a100-llama-3.1-8b}}"
    cost = "cost={profile: h200-llama-3.1-8b}"
    found = scenario(cost, "engine={preset: vllm}", f"cluster={{replicas: [{group}, {{count: 1}}]}}")
    assert [each.slots for each in found.cluster.engines(found.engine)] == [256, 1024]


@pytest.mark.parametrize(("longest", "budget"), [(9000, 9000), (4000, 8192)])
def test_whole_prompts_have_a_budget_for_the_longest(longest: int, budget: int) -> None:
    made = built(f"engine={{preset: vllm, enable_chunked_prefill: false, max_model_len: {longest}}}")
    assert made.config.token_budget == budget


def test_a_cpu_has_large_blocks_and_no_asynchronous_scheduling() -> None:
    made = built("engine={preset: vllm, device: cpu}")
    assert (made.pool.page_size, made.config.depth, made.config.slots, made.config.token_budget) == (
        128,
        1,
        128,
        2048,
    )
    assert built("engine={preset: vllm, device: cpu, block_size: 32}").pool.page_size == 32
    found = scenario("engine={preset: vllm, device: cpu, max_num_seqs: 16}")
    assert slotstep.resolved(slotstep.parse(slotstep.resolved(found))) == slotstep.resolved(found)
    assert "device_memory" not in slotstep.resolved(found)["engine"]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            "max_num_seqs: 128, max_num_batched_tokens: 64",
            "preset: vllm: max_num_batched_tokens (64) must be greater than or equal to max_num_seqs (128)",
        ),
        (
            "slots: 9000",
            "preset: vllm: max_num_batched_tokens (8192) must be greater than or equal to max_num_seqs (9000)",
        ),
        (
            "max_num_batched_tokens: 2000, max_model_len: 3000, enable_chunked_prefill: false",
            "preset: vllm: max_num_batched_tokens (2000) is smaller than max_model_len (3000) without chunked "
            "prefill, which limits sequences to max_num_batched_tokens",
        ),
        ("device: cpu, async_scheduling: true", "device: cpu runs without async_scheduling"),
        (
            "device: CPU, device_memory: 64GiB",
            "device_memory decides the defaults of a GPU; expected none beside device: cpu",
        ),
    ],
)
def test_settings_with_which_the_engine_does_not_start_are_refused(settings: str, complaint: str) -> None:
    with pytest.raises(BadInput) as caught:
        scenario(f"engine={{preset: vllm, {settings}}}")
    assert str(caught.value) == f"chat.yaml: engine: {complaint}"


def test_every_name_of_the_engine_reaches_the_setting_it_stands_for() -> None:
    made = built(
        "engine={preset: vllm, max_num_seqs: 9, max_num_batched_tokens: 300, block_size: 8, num_gpu_blocks: 51,"
        " enable_chunked_prefill: false, enable_prefix_caching: false, long_prefill_token_threshold: 40,"
        " long_prefill_token_threshold_adaptive: true, scheduler_reserve_full_isl: false, watermark: 0.25,"
        " max_num_active_seqs: 5, async_scheduling: false, policy: priority, max_model_len: 77}"
    )
    config = made.config
    assert (config.slots, config.token_budget, made.pool.page_size, made.pool.pages) == (9, 300, 8, 50)
    assert (config.chunked, made.pool.remembers, config.depth) == (False, False, 1)
    assert (config.chunk_limit, config.chunk_limit_adapts, config.max_active, config.max_model_len) == (
        40,
        True,
        5,
        77,
    )
    assert made.policy.admission == Optimistic(whole=False, watermark=0.25)
    assert isinstance(made.policy.victim, LeastUrgent)
    assert isinstance(built("engine={preset: vllm, policy: fcfs}").policy.victim, LastAdmitted)


def test_the_same_axes_have_names_of_our_own_without_a_preset() -> None:
    made = built(
        "engine={prefix_cache: true, share: all, async_scheduling: true, chunk_limit: 4, chunk_limit_adapts: true,"
        " watermark: 0.1, reserve_full_prompt: false, max_active: 3, max_model_len: 50, preempt_for_slot: true}",
        "policy=priority",
    )
    assert isinstance(made.pool, PrefixPool)
    assert made.pool.share == "all"
    config = made.config
    assert (config.depth, config.chunk_limit, config.chunk_limit_adapts, config.max_active) == (2, 4, True, 3)
    assert (config.max_model_len, config.preempt_for_slot) == (50, True)
    assert made.policy.admission == Optimistic(False, 0.1)


def test_what_was_modelled_is_recorded() -> None:
    found = scenario("engine={preset: vllm, policy: priority}")
    resolved = slotstep.resolved(found)
    assert {key: resolved["engine"][key] for key in ("preset", "version", "device_memory", "slots", "share")} == {
        "preset": "vllm",
        "version": "0.32.0",
        "device_memory": "80GiB",
        "slots": 1024,
        "share": "tenant",
    }
    assert resolved["policy"] == "priority"
    assert slotstep.resolved(slotstep.parse(document.parse(document.dump(resolved)))) == slotstep.resolved(found)
    assert slotstep.run(found).summary["preset"] == "vllm 0.32.0"
    assert slotstep.run(scenario()).summary["preset"] is None


def test_an_output_ends_where_the_longest_sequence_does_and_a_prompt_without_room_is_rejected() -> None:
    lines = [{"id": name, "prompt": prompt, "output": 100} for name, prompt in (("a", 3), ("b", 9), ("c", 10))]
    mapping = {**PLAIN, "workload": {"requests": lines}, "engine": {"max_model_len": 10}}
    result = slotstep.run(slotstep.parse(mapping))
    assert result.requests[["id", "output", "tokens", "status"]].values.tolist() == [
        ["a", 100, 7, "finished"],
        ["b", 100, 1, "finished"],
        ["c", 100, 0, "rejected"],
    ]
    assert result.summary["rejections"] == {"prompt leaves no room for an output": 1}


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            ["engine={preset: tgi}"],
            "engine.preset: found 'tgi'; expected 'vllm', 'sglang', 'trtllm', 'vllm-v0' or 's-lora'",
        ),
        (
            ["engine={preset: vllm, max_num_seqs: 4, slots: 4}"],
            "engine: max_num_seqs and slots are one setting; expected one of them",
        ),
        (
            ["engine={max_num_seqs: 4}"],
            "engine: max_num_seqs is a name of preset: vllm; expected slots, or that preset",
        ),
        (
            ["engine={preset: vllm, max_num_seq: 4}"],
            "engine.max_num_seq: unknown key; did you mean engine.max_num_seqs?",
        ),
        (
            ["engine={preset: vllm, max_num_seqs: 0}"],
            "engine.max_num_seqs: found 0; expected a whole number of at least 1",
        ),
        (
            ["engine={preset: vllm, num_gpu_blocks: 1}"],
            "engine: num_gpu_blocks: found 1; expected a whole number of at least 2",
        ),
        (
            ["engine={preset: vllm, device_memory: 80}"],
            "engine: found 80; expected an amount of memory such as 80GiB (units: GiB, GB, MiB, MB)",
        ),
        (["engine={preset: vllm, version: 0.9.1}"], "engine.version: found '0.9.1'; expected '0.32.0'"),
        (["engine={device: h100}"], "engine: version, device and device_memory need a preset"),
        (["engine={preset: vllm, admission: reserve}"], "engine: preset: vllm needs admission: optimistic"),
        (["engine={preset: vllm, evict: after}"], "engine: preset: vllm needs evict: before"),
        (
            ["engine={preset: vllm, policy: priority}", "policy=fcfs"],
            "policy and engine.policy are one setting; expected one of them",
        ),
        (
            ["engine={preset: vllm, policy: sjf}"],
            "engine.policy: found 'sjf'; expected fcfs or priority (any other: policy)",
        ),
        (
            ["engine={policy: fcfs}"],
            "engine.policy is a name of preset: vllm; expected policy, or that preset",
        ),
        (
            ["engine={async_scheduling: true, evict: after}"],
            "engine: async_scheduling needs evict: before (it finds a finished request late enough)",
        ),
        (
            ["engine={prefix_cache: true, batching: static}"],
            "engine: prefix_cache needs batching: continuous",
        ),
        (
            ["engine={prefix_cache: true, memory: contiguous}"],
            "engine: prefix_cache needs memory: paged",
        ),
        (["engine={watermark: 0.1, memory: contiguous}"], "engine: watermark needs admission: optimistic"),
        (["engine={watermark: 1}"], "engine.watermark: found 1; expected a number from 0 to below 1"),
        (["engine={share: all}"], "engine: share needs prefix_cache: true"),
        (["engine={model: m}"], "engine: model needs prefix_cache: true"),
        (
            ["engine={prefix_cache: true, share: none, warm: c.json.gz}"],
            "engine: warm needs share: tenant or all (with none, no request finds pages of another)",
        ),
        (["engine={batching: static, chunk_limit: 5}"], "engine: chunk_limit needs batching: continuous"),
        (["engine={chunk_limit_adapts: true}"], "engine: chunk_limit_adapts needs a chunk_limit"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(settings: list[str], complaint: str) -> None:
    with pytest.raises(BadInput) as caught:
        scenario(*settings)
    assert str(caught.value) == f"chat.yaml: {complaint}"


@pytest.mark.parametrize(("engine", "first_wait"), [({}, 9.0), ({"preempt_for_slot": True}, 0.0)])
def test_priority_waits_for_a_slot_unless_it_may_preempt_for_one(engine: dict[str, Any], first_wait: float) -> None:
    """One slot, 10 ms a token: the urgent request comes when 900 of 1,000 tokens are still to be computed."""
    mapping = {
        "workload": {
            "requests": [
                {"id": "low", "output": 1000, "priority": 1},
                {"id": "high", "arrival": "1s", "output": 10, "priority": 0},
            ]
        },
        "engine": {"preset": "vllm", "max_num_seqs": 1, "policy": "priority", **engine},
        "cost": {"unit": "10ms"},
    }
    result = slotstep.run(slotstep.parse(mapping))
    waits = result.requests.set_index("id").wait_s
    assert waits["high"] == pytest.approx(first_wait, abs=0.02)  # and a step or two: a freed slot is seen one later
    assert result.summary["preemptions"] == (1 if engine else 0)
    assert result.summary["requests"]["finished"] == 2


def test_swapping_is_asked_for_and_paid_by_the_scenario() -> None:
    mapping = deepcopy(PLAIN) | {
        "workload": {"requests": [{"id": "a", "prompt": 2, "output": 4}, {"id": "b", "prompt": 2, "output": 3}]},
        "cost": {"affine": {"base": "10ms", "per_swapped_token": "1ms"}},
    }
    document.override(mapping, ["engine={slots: 2, pages: 3, page_size: 2, preemption: swap}"])
    result = slotstep.run(slotstep.parse(mapping))
    assert result.summary["preemptions"] == 1
    assert result.summary["tokens"]["recomputed"] == 0
    assert (result.steps.duration_ns / 1e6).tolist() == [10, 12, 10, 10, 12, 10]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (["engine.preempt_for_slot=true"], "chat.yaml: engine: preempt_for_slot needs an order by urgency"),
        (["engine={preemption: swap, admission: reserve}"], "preemption: swap needs admission: optimistic"),
        (["engine={preemption: swap, prefix_cache: true}"], "swap needs an engine without a prefix cache"),
    ],
)
def test_what_does_not_fit_together_is_refused(settings: list[str], complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        scenario(*settings)
    assert complaint in str(error.value)


def test_a_policy_that_does_not_fit_the_engine_is_refused_by_name() -> None:
    fits = scenario("engine.preempt_for_slot=true", "policy=priority")
    with pytest.raises(BadInput, match="engine: preempt_for_slot needs an order by urgency"):
        slotstep.with_policy(fits, "fcfs")


def test_the_ratio_rule_is_an_admission_with_options() -> None:
    made = built("engine.admission={ratio: {initial: 0.5, decay_steps: 9}}")
    assert isinstance(made.policy.admission, Ratio)
    assert (made.policy.admission.initial, made.policy.admission.minimum, made.policy.admission.decay_steps) == (
        0.5,
        0.098,
        9,
    )
    assert isinstance(made.policy.victim, FewestOutputs)
    assert built("engine.admission=ratio").policy.admission.initial == 0.7
    loaded = scenario("engine.admission={ratio: {initial: 0.5}}")
    assert slotstep.resolved(slotstep.parse(slotstep.resolved(loaded))) == slotstep.resolved(loaded)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        (
            "engine.admission={ratio: {inital: 0.5}}",
            "engine.ratio.inital: unknown key; did you mean engine.ratio.initial?",
        ),
        ("engine.admission={ratio: {initial: 0.05}}", "expected 0 <= minimum <= initial <= 1"),
        ("engine={ratio: {initial: 0.5}}", "ratio needs admission: ratio"),
        ("engine={admission: ratio, watermark: 0.1}", "watermark needs admission: optimistic"),
    ],
)
def test_a_ratio_that_makes_no_sense_is_refused(setting: str, complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        scenario(setting)
    assert complaint in str(error.value)


def test_the_quantile_rule_is_an_admission_with_options() -> None:
    made = built("engine.admission={quantile: {epsilon: 0.01, every: 3}}")
    assert isinstance(made.policy.admission, Quantile)
    assert (made.policy.admission.every, made.policy.admission.learns) == (3, True)
    assert isinstance(built("engine.admission=quantile").policy.admission, Quantile)
    loaded = scenario("engine.admission={quantile: {outputs: {uniform: {minimum: 1, maximum: 10}}}}")
    rule = build.scheduler(loaded).policy.admission
    assert isinstance(rule, Quantile)
    assert not rule.learns
    assert rule.outputs.longer.tolist() == [1000, 900, 800, 700, 600, 500, 400, 300, 200, 100, 0]
    assert slotstep.resolved(slotstep.parse(slotstep.resolved(loaded))) == slotstep.resolved(loaded)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("engine.admission={quantile: {epsilom: 0.5}}", "did you mean engine.quantile.epsilon?"),
        ("engine.admission={quantile: {epsilon: 1}}", "engine.quantile.epsilon: found 1; expected a number above 0"),
        (
            "engine.admission={quantile: {outputs: {normal: 3}}}",
            "engine.quantile.outputs: outputs.normal: unknown law",
        ),
        ("engine={quantile: {epsilon: 0.5}}", "quantile needs admission: quantile"),
        ("engine={admission: quantile, watermark: 0.1}", "watermark needs admission: optimistic"),
    ],
)
def test_a_quantile_that_makes_no_sense_is_refused(setting: str, complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        scenario(setting)
    assert complaint in str(error.value)


def test_the_victim_is_the_engines_choice_if_it_makes_one() -> None:
    assert isinstance(built().policy.victim, LastAdmitted)
    assert isinstance(built("engine.victim=fewest_generated").policy.victim, FewestGenerated)
    assert isinstance(built("engine.victim=least_served", "engine.admission=ratio").policy.victim, LeastServed)
    loaded = scenario("engine.victim={largest_remaining: {predict: prompt}}", "policy=priority")
    assert isinstance(build.scheduler(loaded).policy.victim, LargestRemaining)
    assert slotstep.resolved(slotstep.parse(slotstep.resolved(loaded))) == slotstep.resolved(loaded)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("engine.victim=oldest", "chat.yaml: engine.victim: 'oldest' is unknown; known are last_admitted"),
        ("engine.victim=[oldest]", "engine.victim: found ['oldest']; expected a name, or a name with its options"),
        ("engine={victim: least_served, admission: reserve}", "victim needs admission: optimistic"),
        ("engine={victim: least_served, preset: vllm}", "preset: vllm has a victim of its own"),
        ("engine={preemption: swap, preset: vllm}", "preset: vllm needs preemption: recompute"),
    ],
)
def test_a_victim_that_is_none_is_refused(setting: str, complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        scenario(setting)
    assert complaint in str(error.value)
