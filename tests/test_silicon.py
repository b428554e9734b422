"""The benchmark on InferenceX's rows: which rows, what is simulated of them, and how errors are summed up."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from benchmarks.silicon import pools
from benchmarks.silicon.__main__ import main, table
from benchmarks.silicon.constants import Constants, constants, with_constants
from benchmarks.silicon.loop import lengths, simulated
from benchmarks.silicon.pools import pool_row
from benchmarks.silicon.rows import Row, aggregated, is_open, quantisation, some
from benchmarks.silicon.servers import decisions_of_vllm, engine, steps_held
from calibrate.profiles.profile import named, profile
from sim.cost.shape import Shape

ROW = Row(
    id="a",
    model="meta-llama/Llama-3.1-70B",
    system="h100_sxm",
    backend="vllm",
    precision="fp8",
    gemm="fp8",
    moe="fp8",
    prompt=1000,
    output=100,
    clients=4,
    tensor_parallel=4,
    pipeline_parallel=1,
    data_parallel=1,
    moe_tensor_parallel=4,
    expert_parallel=1,
    ttft_s=0.1,
    tpot_s=0.01,
)


def test_lengths_are_uniform_from_four_fifths_of_the_nominal_one_ten_for_each_client() -> None:
    drawn = lengths(ROW)
    assert len(drawn) == 40
    assert all(800 <= each["prompt"] <= 1000 and 80 <= each["output"] <= 100 for each in drawn)
    assert sum(each["prompt"] for each in drawn) / 40 == pytest.approx(900, abs=4 * 58 / 40**0.5)
    assert drawn == lengths(ROW)


def test_tensorrt_llm_has_tokens_for_one_prompt_beside_all_clients() -> None:
    trtllm = Row(**{**vars(ROW), "backend": "trtllm"})
    # (4 + 1000 + 64 + 63) // 64 x 64
    assert engine(trtllm)["max_num_tokens"] == 1088


def test_servers_hold_prompts_back_as_their_launch_scripts_say() -> None:
    trtllm = {**vars(ROW), "backend": "trtllm", "prompt": 1024, "output": 1024}
    assert steps_held(Row(**trtllm)) == 20
    assert steps_held(Row(**{**trtllm, "tensor_parallel": 8})) == 0
    assert steps_held(Row(**{**trtllm, "output": 8192})) == 0
    sglang = {**vars(ROW), "backend": "sglang", "system": "b200_sxm"}
    # Looks after 10 passes, from 16 clients on after 30: half of that on average.
    assert [steps_held(Row(**{**sglang, "clients": clients})) for clients in (4, 16)] == [5, 15]
    assert steps_held(Row(**{**sglang, "system": "h200_sxm"})) == 0
    assert steps_held(ROW) == 0


def test_a_prompt_that_is_held_back_has_its_first_token_so_much_later() -> None:
    held = Row(**{**vars(ROW), "backend": "sglang", "system": "b200_sxm"})
    cost = {"shape": {"model": "llama-3.1-70b", "device": "h100-sxm", "tensor_parallel": 4}}
    (ttft, tpot), (plain, same) = simulated(held, cost), simulated(held, cost, engine(held))
    assert ttft == pytest.approx(plain + 5 * tpot)
    assert tpot == same
    assert simulated(held, cost, decisions_of_vllm())[0] != plain


def test_a_loop_of_a_fixed_step_has_its_time_per_token() -> None:
    shape = {"shape": {"model": "llama-3.1-70b", "device": "h100-sxm", "tensor_parallel": 4}}
    _, tpot = simulated(ROW, {**shape, "host": "1s"})
    assert tpot == pytest.approx(1.0, rel=0.03)


def test_a_table_has_the_medians_and_how_often_the_simulation_is_nearer() -> None:
    found = pd.DataFrame(
        {
            "system": ["x", "x", "y"],
            "measured_ttft": [1.0, 1.0, 1.0],
            "measured_tpot": [1.0, 1.0, 1.0],
            "simulated_ttft": [1.1, 0.7, 1.2],
            "simulated_tpot": [1.0, 1.0, 1.0],
            "estimate_ttft": [1.2, 1.1, 1.5],
            "estimate_tpot": [1.1, 1.1, 1.1],
            "shapes_ttft": [None, 0.5, None],
            "shapes_tpot": [None, 0.5, None],
        }
    )
    last = table(found, ["system"]).splitlines()[-1]
    assert last == "| all | 3 | 20.0% | 0.0% | 20.0% | 10.0% | 50.0% | 50.0% | 67% | 100% |"


def test_so_many_rows_are_drawn_by_a_seed() -> None:
    rows = [Row(**{**vars(ROW), "id": str(number)}) for number in range(20)]
    assert [row.id for row in some(rows, 5)] == [row.id for row in some(rows, 5)]
    assert len(some(rows, 5)) == 5
    assert some(rows, None) == rows


def test_open_rows_have_an_even_digest() -> None:
    pytest.importorskip("aiconfigurator_core", reason="the optional package aiconfigurator-core is not installed")
    rows = aggregated()
    assert all(is_open(row.id) for row in rows)
    # 441 dense rows in all, about half of them open.
    assert 180 < sum(row.dense for row in rows) < 260
    assert not any(is_open(row.id) for row in aggregated(held=True))


def test_constants_are_fitted_to_open_rows_alone(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("aiconfigurator_core", reason="the optional package aiconfigurator-core is not installed")
    with pytest.raises(SystemExit) as caught:
        main(["--fit", "--held"])
    assert caught.value.code == 2
    assert "open rows alone" in capsys.readouterr().err


def test_the_quantisation_is_that_of_the_checkpoint() -> None:
    others = {"backend": "trtllm", "gemm": "nvfp4", "moe": "nvfp4", "precision": "fp4"}
    assert quantisation(ROW) == ("fp8_static", None)
    assert quantisation(Row(**{**vars(ROW), **others, "model": "openai/gpt-oss-120b"})) == (None, None)
    assert quantisation(Row(**{**vars(ROW), "model": "deepseek-ai/DeepSeek-R1"})) == (None, None)
    assert quantisation(Row(**{**vars(ROW), **others, "model": "deepseek-ai/DeepSeek-R1"})) == ("nvfp4", "nvfp4")


def test_a_rank_of_attention_is_a_replica_of_its_pool() -> None:
    sizes = {"num_workers": 2, "tp_size": 1, "pp_size": 1, "attention_dp_size": 4, "moe_tp_size": 1, "moe_ep_size": 4}
    record: dict[str, Any] = {
        f"{pool}_{key}": float(size) for pool in ("prefill", "decode") for key, size in sizes.items()
    }
    record |= {"prefill_batch_size": 1.0, "decode_batch_size": 8.0}
    record |= {"id": "a", "model_path": "deepseek-ai/DeepSeek-R1", "system": "gb200", "backend": "trtllm"}
    record |= {"precision": "fp4", "gemm_quant_mode": "nvfp4", "moe_quant_mode": "nvfp4", "isl": 1024, "osl": 1024}
    record |= {"silicon_data_source": "silicon_concurrency=64; x", "silicon_ttft_ms": 200.0, "silicon_tpot_ms": 8.0}
    row = pool_row(record)
    assert row.ranks("prefill") == 8
    assert row.request("decode").devices == 4
    assert (row.row.clients, row.row.ttft_s) == (64, 0.2)


def test_constants_of_pools_come_from_the_first_rows_and_are_applied_to_the_others() -> None:
    simulated_ = {"simulated_ttft": [0.1] * 6, "simulated_tpot": [0.02] * 6}
    found = pd.DataFrame({"ttft": [0.3] * 5 + [0.5], "tpot": [0.01] * 5 + [0.04], **simulated_})
    rest, delay, factor = pools.with_constants(found)
    assert (delay, factor) == pytest.approx((0.2, 0.5))
    assert rest[["simulated_ttft", "simulated_tpot"]].to_numpy().tolist() == [pytest.approx([0.3, 0.01])]


def test_a_step_with_a_prompt_lasts_at_least_as_long_as_its_launches() -> None:
    content = {"dense": {"at": [1, 10], "ns": [100.0, 200.0]}, "launch": 0.0}
    content |= {"decode": {"at": [1], "along": [0, 10], "ns": [[5.0, 15.0]]}}
    content |= {"chunk": {"at": [1, 10], "along": [0, 10], "ns": [[10.0, 20.0], [20.0, 40.0]]}}
    about = {
        key: value for key, value in named("h100-llama-3.1-8b").content.items() if key not in ("format", "curve")
    }
    made = with_constants(profile({"table": content}, **about), Constants(prompts=1.5, least=1.0)).cost()
    decode, prompt = Shape(), Shape()
    decode.decodes, decode.context = 1, 10
    prompt.add_chunk(0, 10)
    # 1 ms for what depends on tokens, and 1.5 times the attention.
    assert (made.step(decode), made.step(prompt)) == (115, 1_000_030)


def test_the_least_is_of_the_models_that_it_was_fitted_to() -> None:
    b200 = Row(**{**vars(ROW), "system": "b200_sxm"})
    assert (constants(ROW).least, constants(b200).least) == (0, 75)
    sglang = {**vars(b200), "backend": "sglang"}
    assert constants(Row(**sglang)).least == 0
    assert constants(Row(**{**sglang, "model": "deepseek-ai/DeepSeek-R1"})).least == 300
