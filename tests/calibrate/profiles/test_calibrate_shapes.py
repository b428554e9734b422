"""Costs and memory from shapes alone: by hand, against measured tables, and against what engines said that fits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slotstep
from benchmarks.fidelity import shapes as of_profiles
from calibrate.fit.initial import prior
from calibrate.hardware.attained import KERNEL_S, SKEW, Efficiency, attained
from calibrate.hardware.devices import DEVICES, GIB, Device, device
from calibrate.hardware.memory_plan import capacity
from calibrate.models.architecture import BYTES, Architecture
from calibrate.models.registry import MODELS, architecture
from calibrate.profiles.analytic import from_shapes, roofline, table
from calibrate.profiles.host_time import host_time
from calibrate.profiles.profile import named
from calibrate.profiles.shapes import shapes
from sim.cost.forms import Roofline
from sim.cost.shape import Shape
from sim.cost.table import Table
from sim.cost.table import table as laid_out
from slotstep import BadInput

TINY = 1e-12
PERFECT = Efficiency(
    1, 1, 1, 1, 1, all_reduce_s=1e-9, product_s=TINY, attention_s=TINY, block_s=TINY * 1e-3, overlap=4
)
DTYPES = ("bfloat16", "fp8")
ROUND = Device("round", memory=100 * GIB, bandwidth=1e12, rate=1e14, rate8=2e14, link=1e11)
SMALL = Architecture("small", 10, 1000, 4000, heads=10, kv_heads=2, head_size=100, vocabulary=50000, dtype="bfloat16")


def shape(decodes: int = 0, context: int = 0, chunks: tuple[tuple[int, int], ...] = ()) -> Shape:
    batch = Shape()
    batch.decodes, batch.context = decodes, decodes * context
    for start, tokens in chunks:
        batch.add_chunk(start, tokens)
    return batch


def line(model: Architecture, device: Device, efficiency: Efficiency = PERFECT, **settings: Any) -> Roofline:
    return roofline(shapes(model, device, efficiency=efficiency, **settings))


def tabled(model: Architecture, device: Device, efficiency: Efficiency = PERFECT, **settings: Any) -> Table:
    return laid_out(table(shapes(model, device, efficiency=efficiency, **settings)))


def kernels(model: Architecture) -> float:
    """Nanoseconds of the four small kernels of each layer."""
    return model.layers * 4 * KERNEL_S * 1e9


def between(model: Architecture, devices: int = 1) -> float:
    """Nanoseconds of a token between the products, at 16 bits and 1 TB/s: eight vectors, and three of the middle."""
    return model.layers * (8 * model.hidden + 3 * model.activated / devices) * 2 / 1e12 * 1e9


def test_a_roofline_by_hand() -> None:
    made = line(SMALL, ROUND)
    # A layer: 1000 x 100 x 2 x (10 + 2) + 3 x 1000 x 4000 = 14.4 M parameters; ten of them, and a head of 50 M.
    assert made.weight_pass == pytest.approx((144e6 + 50e6) * 2 / 1e12 * 1e9)
    assert made.per_token == pytest.approx(2 * 144e6 / 1e14 * 1e9)
    assert made.per_sequence == pytest.approx(2 * 50e6 / 1e14 * 1e9, rel=1e-3)
    assert made.host == pytest.approx(kernels(SMALL), rel=1e-3)
    assert made.per_context_token == pytest.approx(2 * 10 * 2 * 100 * 2 / 1e12 * 1e9)
    assert made.per_chunk_work == pytest.approx(4 * 10 * 10 * 100 / 1e14 * 1e9)


def test_efficiencies_and_dtypes_scale_what_they_name() -> None:
    whole = line(SMALL, ROUND)
    half = line(SMALL, ROUND, Efficiency(0.5, 0.25, 0.2, 0.1, 1, 1e-9))
    assert half.weight_pass == pytest.approx(2 * whole.weight_pass)
    assert half.per_context_token == pytest.approx(4 * whole.per_context_token)
    assert half.per_token == pytest.approx(5 * whole.per_token)
    assert half.per_chunk_work == pytest.approx(10 * whole.per_chunk_work)
    eight = line(SMALL, ROUND, dtype="fp8")
    assert (eight.weight_pass, eight.per_token) == pytest.approx((whole.weight_pass / 2, whole.per_token / 2))
    assert eight.per_context_token == whole.per_context_token  # weights of 8 bits do not make a cache of 8 bits
    mixed = line(SMALL, ROUND, kv_dtype="fp8")
    assert (mixed.weight_pass, mixed.per_context_token) == (whole.weight_pass, whole.per_context_token / 2)


def test_several_devices_share_the_work_and_add_it_up() -> None:
    alone, made = line(SMALL, ROUND), tabled(SMALL, ROUND, tensor_parallel=2)
    # Two all-reduces in ten layers of one token: 1000 x 2 bytes, each device sends as much as it has, 2 x 1/2.
    reduces = 2 * 10 * (1e-9 + 2000 / 1e11) * 1e9
    rest = kernels(SMALL) + between(SMALL, 2)
    assert made.dense(1) == pytest.approx(alone.weight_pass / 2 + reduces + rest, rel=1e-4)
    assert made.per_context_token == pytest.approx(alone.per_context_token / 2)
    with pytest.raises(ValueError, match="device bare: its link is not known"):
        shapes(SMALL, Device("bare", 1e11, 1e12, 1e14), tensor_parallel=2)


def test_a_mixture_reads_the_experts_that_its_tokens_touch() -> None:
    mixture = architecture("mixtral-8x7b")
    made = tabled(mixture, ROUND)
    for tokens, products in (
        (1, mixture.read(1) * 2 / 1e12 * 1e9),
        (4, mixture.read(4) * 2 / 1e12 * 1e9),
        (16384, 16384 * 2 * mixture.multiplied / 1e14 * 1e9),
    ):
        rest = kernels(mixture) + tokens * between(mixture)
        assert made.dense(tokens) == pytest.approx(products + rest, rel=0.01 if tokens > 4 else 1e-3)


def test_kernels_take_their_time_whatever_their_bytes() -> None:
    """Four matrix products and an attention in each of ten layers, and a block of it for each head and sequence."""
    slow = replace(PERFECT, product_s=3e-6, attention_s=11e-6, block_s=1e-6)
    made = tabled(SMALL, ROUND, slow)
    assert made.dense(1) - tabled(SMALL, ROUND).dense(1) == pytest.approx(10 * 4 * 3000, rel=1e-3)
    assert made.decode.base(1) == pytest.approx(10 * 11000)
    assert made.per_sequence - tabled(SMALL, ROUND).per_sequence == pytest.approx(10 * 2 * 1000, rel=1e-3)
    assert line(SMALL, ROUND, slow).host == pytest.approx(10 * (4 * 3000 + 11000) + kernels(SMALL))


def test_an_all_reduce_over_pcie_takes_several_times_its_bytes() -> None:
    nvlink = attained(DEVICES["h100-sxm"], 4)
    assert (nvlink.link, nvlink.all_reduce_s) == (Efficiency.link, Efficiency.all_reduce_s)
    pair, four, eight = (attained(DEVICES["l40s"], devices) for devices in (2, 4, 8))
    assert 1 > pair.link > four.link > eight.link
    assert 1 / four.link == 5
    assert SKEW < pair.all_reduce_s < four.all_reduce_s < eight.all_reduce_s
    assert attained(DEVICES["l40s"]) == replace(four, link=Efficiency.link, all_reduce_s=Efficiency.all_reduce_s)
    assert attained(DEVICES["l40s"], 3).link == four.link
    assert attained(DEVICES["l40s"], 4, link=0.9).link == 0.9


def test_eight_bits_attain_a_smaller_share_of_twice_the_rate() -> None:
    wide, narrow = (attained(DEVICES["h100-sxm"], dtype=dtype) for dtype in DTYPES)
    assert narrow.arithmetic == pytest.approx(0.75 * wide.arithmetic)
    assert narrow.product_s > wide.product_s
    assert narrow.cache == wide.cache > attained(DEVICES["h100-sxm"], cache="fp8").cache


@pytest.mark.parametrize(
    ("model", "devices", "profile"),
    [("llama-3.1-8b", 1, "rtxpro6000-llama-3.1-8b"), ("qwen3-32b", 2, "rtxpro6000-qwen3-32b-tp2")],
)
def test_uneven_contexts_cost_as_the_tables_of_the_device_say(model: str, devices: int, profile: str) -> None:
    """The kernel's rule is the same, by heads of keys and values on a device; a position alone is within 10%."""
    made = from_shapes(architecture(model), DEVICES["rtx-pro-6000"], date="today", tensor_parallel=devices).cost()
    table_of = named(profile).cost()
    assert made.unsplit == table_of.unsplit
    assert made.per_tail_token == pytest.approx(table_of.per_tail_token, rel=0.1)


def test_beside_a_chunk_older_kernels_read_a_context_once_for_each_query_head() -> None:
    """Eight queries share a head of Llama-3.1-70B; FlashAttention 3 keeps them together, 2 reads 8 / 1.6 times."""
    model = architecture("llama-3.1-70b")
    old, new = (
        shapes(model, DEVICES[name], efficiency=PERFECT, tensor_parallel=4) for name in ("a100-sxm-80gb", "h100-sxm")
    )
    assert old.per_context_token + old.per_mixed_context_token == pytest.approx(old.per_context_token * 8 / 1.6)
    assert new.per_mixed_context_token == new.per_tail_token == 0
    assert "per_tail_token" not in table(new)


def test_a_prompt_step_lasts_as_long_as_its_launches() -> None:
    made = from_shapes(architecture("llama-3.2-1b"), DEVICES["h100-sxm"], date="today").cost()
    # 16 layers of 0.15 ms and the host's 0.4: a chunk of one token takes as long as its launches.
    assert made.step(shape(0, 0, ((0, 1),))) == 16 * 150_000 + 400_000
    assert made.step(shape(1, 0)) < 16 * 150_000


@pytest.mark.parametrize(
    ("engine", "version", "scheduling", "asynchronous"),
    [
        ("vllm", None, None, True),
        ("vllm", "0.14.0", None, True),
        ("vllm", "v0.13.1", None, False),
        ("vllm", "0.13.1", "asynchronous", True),
        ("sglang", "0.5.9", None, True),
        ("trtllm", "1.0.0rc3", None, True),
    ],
)
def test_the_host_time_of_an_engine(engine: str, version: str, scheduling: str, asynchronous: bool) -> None:
    found = host_time(engine, version, scheduling)
    assert found.low <= found.likely <= found.high
    assert found.engine.endswith(", asynchronous" if asynchronous else ", synchronous")
    assert (found.per_sequence == 0) is asynchronous


def test_older_engines_have_more_of_it() -> None:
    times = [host_time("vllm", version) for version in ("0.6.3", "0.12.0", "0.23.0")]
    assert [time.high for time in times] == sorted([time.high for time in times], reverse=True)
    assert times[0].high > 2e6


def test_a_window_needs_the_mean_context() -> None:
    windowed = architecture("mistral-7b")
    with pytest.raises(ValueError, match="layers with a window of 4096; expected the mean context in addition"):
        line(windowed, ROUND)
    whole = line(windowed, ROUND, context=4096).per_context_token
    assert line(windowed, ROUND, context=16384).per_context_token == pytest.approx(whole / 4)


def test_latent_attention_keeps_less_than_heads_would() -> None:
    made = line(architecture("deepseek-v3"), ROUND)
    assert made.per_context_token == pytest.approx(61 * 576 * 2 / 1e12 * 1e9)
    assert made.weight_pass == pytest.approx(
        architecture("deepseek-v3").parameters / 1e12 * 1e9, rel=0.01
    )  # published in fp8


def test_prompts_of_latent_attention_are_multiplied_by_whole_heads() -> None:
    """DeepSeek-V3: 128 heads of 128 + 64 for the scores and 128 for the values, two operations each: 640 a head."""
    made = line(architecture("deepseek-v3"), ROUND)
    assert made.per_chunk_work == pytest.approx(61 * 128 * 640 / 1e14 * 1e9)
    with pytest.raises(ValueError, match="value_size is 0; expected at least 1, as there is a kv_rank"):
        replace(architecture("deepseek-v3"), value_size=0)


def test_attention_is_multiplied_at_the_rate_of_the_cache() -> None:
    """The device multiplies twice as fast in 8 bits: so it does the weights, but not a cache of 16 bits."""
    plain = line(SMALL, ROUND)
    weights = line(SMALL, ROUND, dtype="fp8")
    both = line(SMALL, ROUND, dtype="fp8", kv_dtype="fp8")
    assert weights.per_token == both.per_token == pytest.approx(plain.per_token / 2)
    assert weights.per_chunk_work == plain.per_chunk_work == pytest.approx(2 * both.per_chunk_work)


def test_what_passes_between_layers_has_16_bits_where_the_weights_have_8() -> None:
    tables = [[tabled(SMALL, ROUND, dtype=dtype, tensor_parallel=n).dense(1) for n in (1, 2)] for dtype in DTYPES]
    # Beside half of the products of one device: the same all-reduces, and the same between the products.
    alone = [line(SMALL, ROUND, dtype=dtype).weight_pass for dtype in DTYPES]
    rest = [two - one / 2 for (_, two), one in zip(tables, alone, strict=True)]
    assert rest[0] == pytest.approx(rest[1], rel=1e-3)
    held = [capacity(SMALL, 2 * GIB, dtype=dtype).activations for dtype in DTYPES]
    assert held[0] == held[1]


@pytest.mark.parametrize(
    ("name", "devices", "complaint"),
    [
        ("llama-3.1-8b", 3, "tensor_parallel is 3; expected a divisor of 32 heads"),
        ("qwen2.5-7b", 7, "tensor_parallel is 7; expected a divisor or a multiple of 4 heads of keys and values"),
        ("deepseek-v3", 3, "tensor_parallel is 3; expected a divisor of 128 heads"),
    ],
)
def test_heads_that_cannot_be_dealt_out_are_refused(name: str, devices: int, complaint: str) -> None:
    model, sheet = architecture(name), DEVICES["mi300x"]
    for ask in (
        lambda: capacity(model, 8 * sheet.memory, tensor_parallel=devices),
        lambda: shapes(model, sheet, tensor_parallel=devices),
        lambda: from_shapes(model, sheet, date="today", tensor_parallel=devices),
        lambda: prior(model, sheet, tensor_parallel=devices),
    ):
        with pytest.raises(ValueError, match=complaint):
            ask()


def test_a_head_of_keys_may_be_copied() -> None:
    shared, copied = (capacity(architecture("qwen3-30b-a3b"), 80 * GIB, tensor_parallel=each) for each in (4, 8))
    assert shared.page_bytes == copied.page_bytes


@pytest.mark.parametrize(("profile", "of"), of_profiles.PROFILES.items())
def test_the_stated_efficiencies_are_near_the_measured_tables(profile: str, of: str) -> None:
    """Decodes of 8 to 256 sequences of 512 to 4,096 positions, prompts of 512 to 2,048: within 25% on average."""
    errors = [error for each in of_profiles.errors(profile, of).values() for error in each]
    assert len(errors) == 15
    assert sum(abs(error) for error in errors) / len(errors) < 0.25
    assert max(abs(error) for error in errors) < 0.5


@pytest.mark.parametrize("name", MODELS)
def test_every_named_model_has_a_cost_or_does_not_fit(name: str) -> None:
    model = architecture(name)
    size = BYTES[model.dtype]
    devices = next(n for n in (1, 2, 4, 8, 16) if model.parameters * size / n < 0.8 * DEVICES["h100-sxm"].memory)
    made = from_shapes(model, DEVICES["h100-sxm"], date="today", tensor_parallel=devices, context=2000)
    assert made.kind == "table"
    steps = [made.cost().step(shape(decodes, 2000)) for decodes in (1, 16, 256)]
    assert steps == sorted(steps)
    if devices > 1:
        with pytest.raises(ValueError, match="does not fit"):
            from_shapes(model, DEVICES["h100-sxm"], date="today", context=2000)


def test_pages_by_hand() -> None:
    found = capacity(SMALL, 2 * GIB, utilization=0.5, page_size=16, token_budget=100, slots=10, graphs=1e6, other=2e6)
    weights = (144e6 + 2 * 50e6) * 2
    activations = 100 * (2 * 1000 + 3 * 4000) * 2 + 10 * 50000 * 4
    assert (found.weights, found.activations) == (weights, activations)
    assert found.page_bytes == 16 * 2 * 10 * 2 * 100 * 2
    assert found.pages == int((GIB - weights - activations - 1e6 - 2e6) // found.page_bytes)


def test_a_model_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"llama-3\.1-70b in bfloat16 does not fit: .* at least 2 such devices"):
        capacity(architecture("llama-3.1-70b"), 80 * GIB)
    assert capacity(architecture("llama-3.1-70b"), 80 * GIB, tensor_parallel=2).pages > 0
    assert capacity(architecture("llama-3.1-70b"), 80 * GIB, dtype="fp8", utilization=0.95).pages > 0
    with pytest.raises(ValueError, match=r"utilization is 1\.5"):
        capacity(SMALL, GIB, utilization=1.5)


@given(st.sampled_from(["llama-3.1-8b", "qwen3-14b"]), st.sampled_from([1, 2, 4, 8]), st.sampled_from([16, 32]))
def test_more_devices_or_smaller_numbers_never_leave_less_room(name: str, devices: int, page_size: int) -> None:
    def pages(**more: Any) -> int:
        return capacity(architecture(name), 80 * GIB, page_size=page_size, **more).pages

    if architecture(name).heads % (2 * devices) == 0:
        assert pages(tensor_parallel=2 * devices) >= pages(tensor_parallel=devices)
    assert pages(kv_dtype="fp8") >= pages() <= pages(dtype="fp8")
    assert pages(graphs=GIB) <= pages()


def test_pages_are_near_those_that_engines_found(data: Path) -> None:
    """vLLM on H100s logged how many it had; planned from sizes it is within 5%."""
    experiments = json.loads((data / "traces" / "gt_h100_inference_perf" / "experiments.json").read_text())
    names = {"llama-2-7b": "llama-2-7b", "llama-2-70b": "llama-2-70b", "mixtral": "mixtral-8x7b"}
    seen = set()
    for experiment in experiments:
        config = experiment["config"]
        ((short, name),) = ((key, ours) for key, ours in names.items() if experiment["model_short"].startswith(key))
        devices = config["tensor_parallelism"]
        found = capacity(architecture(name), 80 * GIB, tensor_parallel=devices, slots=config["max_num_seqs"])
        assert found.pages == pytest.approx(config["kv_blocks_total_gpu"], rel=0.05)
        seen.add(short)
    assert seen == set(names)
    server = json.loads((data / "traces" / "gt_h100_vllm023_tenants" / "server_config.json").read_text())
    found = capacity(architecture("qwen3-14b"), 80 * GIB, token_budget=8192)
    assert found.pages == pytest.approx(server["num_gpu_blocks"], rel=0.05)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("h100", r"device h100: unknown; did you mean h100-sxm\?"),
        ("memory=1e9,bandwith=1e12,rate=1e14", r"bandwith: unknown number; did you mean bandwidth\?"),
        ("memory=1e9,bandwidth=1e12", "device: rate is missing"),
        ("memory=1e9,bandwidth=fast,rate=1e14", "bandwidth is 'fast'; expected a number"),
        ("memory=1e9,bandwidth=0,rate=1e14", "bandwidth is 0; expected a number above 0"),
    ],
)
def test_an_unknown_device_is_refused(given: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        device(given)


def test_a_device_by_its_numbers() -> None:
    assert device("memory=1e9,bandwidth=1e12,rate=1e14,link=5e10").link == 5e10
    with pytest.raises(ValueError, match="its rate in fp8 is not known; expected bfloat16 or float16"):
        device("memory=1e9,bandwidth=1e12,rate=1e14").arithmetic("fp8")


def scenario(**cost: Any) -> slotstep.Scenario:
    return slotstep.parse({"workload": {"requests": [{"prompt": 100, "output": 3}]}, "cost": cost})


def test_a_scenario_costs_by_shapes() -> None:
    asked = {"model": "llama-3.1-8b", "device": "h100-sxm"}
    result = slotstep.run(scenario(shape=asked, host="1ms"))
    made = from_shapes(architecture("llama-3.1-8b"), DEVICES["h100-sxm"], date="computed when used")
    assert result.summary["profile"]["sha256"] == made.sha256
    assert result.summary["profile"]["extrapolated"] is None
    assert result.log.step_durations().tolist()[1:] == [
        made.cost(host=1e6).step(shape(1, context)) for context in (100, 101)
    ]
    again = slotstep.run(slotstep.parse(slotstep.resolved(result.scenario)))
    assert again.summary["log_sha256"] == result.summary["log_sha256"]


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"model": "llama-3.1-70b", "device": "h100-sxm"}, r"cost\.shape: llama-3\.1-70b in bfloat16 does not fit"),
        ({"model": "llama-4", "device": "h100-sxm"}, r"cost\.shape: model llama-4: unknown"),
        ({"model": "llama-3.1-8b", "device": "h1000"}, r"cost\.shape: device h1000: unknown; did you mean h100-"),
        ({"model": "llama-3.1-8b", "device": "l4", "dtype": "fp4"}, r"cost\.shape: dtype is 'fp4'; expected one of"),
        ({"model": "llama-3.1-8b", "device": "h100-sxm", "tensor_parallel": 3}, r"expected a divisor of 32 heads"),
        ({"model": "llama-3.1-8b", "device": "h100-sxm", "efficiency": {"weights": 2}}, r"efficiency\.weights is 2"),
        ({"model": "llama-3.1-8b", "device": "l4", "engine": "vlm"}, r"engine vlm: unknown; did you mean vllm\?"),
        ({"model": "llama-3.1-8b", "device": "l4", "version": "new"}, r"version is 'new'; expected numbers such as"),
        ({"model": "llama-3.1-8b"}, r"cost\.shape\.device: missing"),
    ],
)
def test_shapes_that_make_no_cost_are_refused(asked: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        scenario(shape=asked)


def test_as_many_pages_as_fit_beside_the_model() -> None:
    asked = {"requests": [{"prompt": 100, "output": 3}]}
    cost = {"shape": {"model": "qwen3-14b", "device": "h100-sxm"}}
    made = slotstep.parse(
        {"workload": asked, "cost": cost, "engine": {"fit": 0.8, "token_budget": 8192, "slots": 100}}
    )
    planned = capacity(architecture("qwen3-14b"), 80 * GIB, utilization=0.8, token_budget=8192, slots=100)
    assert made.engine.pages == planned.pages
    assert "fit" not in slotstep.resolved(made)["engine"]
    assert slotstep.resolved(slotstep.parse(slotstep.resolved(made))) == slotstep.resolved(made)


@pytest.mark.parametrize(
    ("engine", "cost", "complaint"),
    [
        ({"fit": 0.9}, {"unit": "1ms"}, r"engine\.fit: the memory of the device is not known"),
        ({"fit": 0.9, "pages": 5}, {"shape": {"model": "qwen3-14b", "device": "h100-sxm"}}, "found pages beside fit"),
        ({"fit": 0.3}, {"shape": {"model": "qwen3-14b", "device": "h100-sxm"}}, r"engine\.fit: qwen3-14b .* not fit"),
        ({"fit": 2}, {"shape": {"model": "qwen3-14b", "device": "h100-sxm"}}, r"engine\.fit: found 2"),
    ],
)
def test_a_fit_that_cannot_be_is_refused(engine: dict[str, Any], cost: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        slotstep.parse({"workload": {"requests": [{"output": 3}]}, "cost": cost, "engine": engine})


def test_unequal_replicas_have_profiles_and_pages_of_their_own() -> None:
    small, large = ({"shape": {"model": "llama-3.1-8b", "device": name}} for name in ("rtx-4090", "h100-sxm"))
    fleet = {"replicas": [{"count": 2, "engine": {"fit": 0.9}}, {"engine": {"fit": 0.5}, "cost": large}]}
    made = slotstep.parse(
        {"workload": {"requests": [{"prompt": 9, "output": 3}] * 4}, "cost": small, "cluster": fleet}
    )
    assert isinstance(made.cluster.replicas, tuple)
    little = capacity(architecture("llama-3.1-8b"), 24 * GIB, slots=64).pages
    much = capacity(architecture("llama-3.1-8b"), 80 * GIB, utilization=0.5, slots=64).pages
    assert [group.engine.pages for group in made.cluster.replicas] == [little, much]
    summary = slotstep.run(made).summary
    assert summary["profile"] is None
    assert [each["replicas"] for each in summary["profiles"]] == [[0, 1], [2]]
    assert summary["profiles"][1]["sha256"] == slotstep.resolved(made)["cluster"]["replicas"][1]["cost"]["sha256"]
