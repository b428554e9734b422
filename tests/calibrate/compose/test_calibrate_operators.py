"""Operator tables of both layouts, made here of a known law: the composed step is that law's."""

from __future__ import annotations

import dataclasses
import gzip
from itertools import product
from pathlib import Path

import pandas as pd
import pytest

from calibrate.compose.compose import EVEN, compose, composed_profile, unsplit_from
from calibrate.compose.operators import ALL_REDUCE, read
from calibrate.compose.step_sums import compose_sums
from calibrate.models.architecture import Architecture
from calibrate.models.registry import architecture
from sim.cost.shape import Shape
from sim.cost.table import Table, table

MODEL = Architecture(
    "four", layers=4, hidden=64, intermediate=128, heads=4, kv_heads=2, head_size=16, vocabulary=1000
)
TOKENS = (1, 2, 4, 8, 16, 32, 64)
CONTEXTS = (16, 64, 256, 1024)


def dense_us(tokens: int) -> float:
    """Of one dense operator, once."""
    return 10.0 + 0.5 * tokens


def decode_us(decodes: int, context: int) -> float:
    """Attention of one layer."""
    return 5.0 + 0.25 * decodes + 0.01 * decodes * context


def chunk_us(chunk: int, start: int) -> float:
    """The same of a chunk."""
    return 4.0 + 0.02 * chunk + 0.005 * chunk * start


def beside_us(chunk: int, start: int, decodes: int, context: int) -> float:
    """The same of both in one launch, where the decodes read twice as slowly."""
    return chunk_us(chunk, start) + 0.5 * decodes + 0.02 * decodes * context + 0.001 * decodes * chunk


def write(folder: Path, name: str, frame: pd.DataFrame) -> None:
    """A table, gzipped."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.csv.gz").write_bytes(gzip.compress(frame.to_csv(index=False).encode()))


def llmservingsim(folder: Path, without: str = "") -> Path:
    """Tables in LLMServingSim's layout."""
    operators = ["embedding", "layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj", "act_fn", "down_proj"]
    rows = [(name, n, dense_us(n)) for name in [*operators, "final_layernorm"] for n in TOKENS if name != without]
    write(folder, "dense", pd.DataFrame(rows, columns=["layer", "tokens", "time_us"]))
    heads = [(name, n, 3.0 + n) for name in ("lm_head", "sampler") for n in TOKENS]
    write(folder, "per_sequence", pd.DataFrame(heads, columns=["layer", "sequences", "time_us"]))
    attention = [(0, 0, b, c, decode_us(b, c)) for b, c in product(TOKENS, CONTEXTS)]
    attention += [(n, s, 0, 0, chunk_us(n, s)) for n, s in product(TOKENS[3:], (0, *CONTEXTS))]
    attention += [
        (n, s, b, c, beside_us(n, s, b, c)) for n, s, b, c in product(TOKENS[3:], (0, 64), TOKENS[:4], CONTEXTS)
    ]
    columns = ["prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"]
    write(folder, "attention", pd.DataFrame(attention, columns=columns))
    return folder


def vidur_attention(folder: Path, devices: int = 2) -> None:
    """Attention in Vidur's columns."""
    decode = [(devices, b, 0, c, False, None, decode_us(b, c) / 1e3) for b, c in product(TOKENS, CONTEXTS)]
    chunks = [(devices, 1, n, s, True, chunk_us(n, s) / 1e3, None) for n, s in product(TOKENS[3:], (0, *CONTEXTS))]
    columns = ["num_tensor_parallel_workers", "batch_size", "prefill_chunk_size", "kv_cache_size", "is_prefill"]
    stages = ["time_stats.attn_prefill.median", "time_stats.attn_decode.median"]
    write(folder, "attention", pd.DataFrame(decode + chunks, columns=[*columns, *stages]))


def shape(decodes: int = 0, context: int = 0, chunks: tuple[tuple[int, int], ...] = ()) -> Shape:
    batch = Shape()
    batch.decodes, batch.context = decodes, decodes * context
    for start, tokens in chunks:
        batch.add_chunk(start, tokens)
    return batch


def composed(folder: Path, model: Architecture = MODEL, devices: int = 1, attention: Path | None = None) -> Table:
    return table(compose(read(folder, model, devices, attention)).content)


def test_a_step_is_every_operator_as_often_as_it_runs(tmp_path: Path) -> None:
    made = composed(llmservingsim(tmp_path / "four"))
    # Of a layer: two norms and six others, four layers; embedding and last norm once; head and sampler by sequence.
    dense, heads = (4 * 8 + 2) * dense_us(8), 2 * (3.0 + 8)
    assert made.step(shape(8, 256)) == pytest.approx(1e3 * (dense + heads + 4 * decode_us(8, 256)), rel=1e-4)
    alone = 34 * dense_us(16) + 2 * 4.0 + 4 * chunk_us(16, 64)
    assert made.step(shape(chunks=((64, 16),))) == pytest.approx(1e3 * alone, rel=1e-4)


def test_decodes_beside_a_chunk_have_lines_of_their_own(tmp_path: Path) -> None:
    made = composed(llmservingsim(tmp_path / "four"))
    mixed = 34 * dense_us(24) + 2 * (3.0 + 9) + 4 * beside_us(16, 64, 8, 256)
    assert made.step(shape(8, 256, ((64, 16),))) == pytest.approx(1e3 * mixed, rel=1e-3)


def test_between_the_measured_sizes_the_law_is_met(tmp_path: Path) -> None:
    made = composed(llmservingsim(tmp_path / "four"))
    true = 34 * dense_us(24) + 2 * (3.0 + 24) + 4 * decode_us(24, 100)
    assert made.step(shape(24, 100)) == pytest.approx(1e3 * true, rel=0.01)


def test_experts_cost_as_many_as_the_tokens_touch(tmp_path: Path) -> None:
    mixture = Architecture("mix", 4, 64, 128, 4, 2, 16, 1000, experts=8, experts_per_token=2, expert_width=32)
    folder = llmservingsim(tmp_path / "mix")
    experts = [(n, e, 2.0 * e) for n in TOKENS for e in (2, 4, 8)]
    write(folder, "moe", pd.DataFrame(experts, columns=["tokens", "activated_experts", "time_us"]))
    # Two tokens touch 8 (1 - (6/8)^2) = 3.5 experts on average: 7 us a layer.
    more = composed(folder, mixture).dense(2) - 34 * 1e3 * dense_us(2)
    assert more == pytest.approx(4 * 7e3, rel=1e-4)
    with pytest.raises(ValueError, match=r"has moe\.csv, and four has no experts"):
        composed(folder)


def test_the_older_layout_and_vidurs_columns(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    layer = ["input_layernorm", "post_layernorm", "q_proj", "k_proj", "v_proj", "rope", "o_proj"]
    layer += ["gate_proj", "up_proj", "act_fn", "down_proj"]
    names = ["embedding", *layer, "final_layernorm", "attn", "lm_head"]
    rows = [(name, n, 0, 2, dense_us(n) * 1e3) for name in names for n in TOKENS]
    write(folder, "layers", pd.DataFrame(rows, columns=["layer_name", "input", "kv_cache", "tp_size", "latency(ns)"]))
    vidur_attention(folder)
    made = composed(folder, devices=2)
    true = (4 * 11 + 2) * dense_us(8) + dense_us(8) + 4 * decode_us(8, 256)
    assert made.step(shape(8, 256)) == pytest.approx(1e3 * true, rel=1e-3)
    assert read(folder, MODEL, 2).missing == ("sampling", ALL_REDUCE)
    with pytest.raises(ValueError, match="has tp_size 2; expected 1"):
        composed(folder)


def test_vidurs_layout(tmp_path: Path) -> None:
    folder = tmp_path / "vidur"
    names = ["emb", "input_layernorm", "attn_pre_proj", "attn_rope", "attn_post_proj", "post_attention_layernorm"]
    names += ["mlp_up_proj", "mlp_act", "mlp_down_proj", "add"]
    frame = pd.DataFrame({"num_tokens": TOKENS, "num_tensor_parallel_workers": 2})
    for name in names:
        frame[f"time_stats.{name}.median"] = [dense_us(n) / 1e3 for n in TOKENS]
    write(folder, "mlp", frame)
    with pytest.raises(ValueError, match=r"has no attention\.csv"):
        composed(folder, devices=2)
    vidur_attention(tmp_path / "elsewhere")
    made = composed(folder, devices=2, attention=tmp_path / "elsewhere" / "attention.csv.gz")
    # Eight operators and two additions a layer, and the embedding; no output head.
    true = (4 * 10 + 1) * dense_us(8) + 4 * decode_us(8, 256)
    assert made.step(shape(8, 256)) == pytest.approx(1e3 * true, rel=1e-3)


def test_what_cannot_be_composed_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = llmservingsim(tmp_path / "four")
    with pytest.raises(ValueError, match="no such folder"):
        read(tmp_path / "absent", MODEL)
    with pytest.raises(ValueError, match=r"found none of dense\.csv, layers\.csv and mlp\.csv"):
        read(tmp_path, MODEL)
    wrong = pd.DataFrame({"layer": ["qkv"], "tokens": [1], "time_us": [1.0]})
    write(folder, "dense", wrong)
    with pytest.raises(ValueError, match="qkv: unknown operator; the nearest known is qkv_proj"):
        read(folder, MODEL)
    write(folder, "dense", wrong.rename(columns={"time_us": "time"}))
    with pytest.raises(ValueError, match="has no column time_us"):
        read(folder, MODEL)
    write(folder, "dense", wrong.assign(layer="qkv_proj", time_us="fast"))
    with pytest.raises(ValueError, match="row 2: time_us is 'fast'; expected a number"):
        read(folder, MODEL)
    (folder / "dense.csv.gz").write_bytes(gzip.compress(b"layer,tokens,time_us\nqkv_proj,1,2\n" * 99)[:-9])
    with pytest.raises(ValueError, match=r"dense\.csv\.gz: cannot be read as CSV"):
        read(folder, MODEL)
    write(
        folder,
        "dense",
        pd.DataFrame({"layer": ["qkv_proj", "o_proj", "o_proj"], "tokens": [1, 1, 2], "time_us": 1.0}),
    )
    with pytest.raises(ValueError, match="tokens 2 has 1 of 2 operators"):
        read(folder, MODEL)


def test_the_profile_says_what_it_is_made_of(tmp_path: Path) -> None:
    about = {"device": "none", "dtype": "float32", "tensor_parallel": 1, "date": "2026-11-29", "source": "this test"}
    made = composed_profile(read(llmservingsim(tmp_path / "four"), MODEL), MODEL, **about)
    assert made.content["model"]["name"] == "four"
    assert made.range == {"sequences": 64, "context": 64 * 1024, "tokens": 64, "position": 64 + 1024}
    assert made.content["residuals"]["decode_worst"] < 1e-3
    assert "host time between steps" in made.content["not_included"]


def test_all_reduces_are_missing_or_said_to_be_modelled(tmp_path: Path) -> None:
    folder = llmservingsim(tmp_path / "four")
    about = {"device": "none", "dtype": "float32", "tensor_parallel": 2, "date": "2026-11-29", "source": "this test"}
    without = composed_profile(read(folder, MODEL, 2), MODEL, **about)
    assert ALL_REDUCE in without.content["not_included"]
    made = composed_profile(read(folder, MODEL, 2), MODEL, link=1e9, **about)
    assert ALL_REDUCE not in made.content["not_included"]
    assert "All-reduces are not measured" in made.content["method"]
    # Eight of them for 16 tokens of 64 numbers of 4 bytes, each sent once over 70% of 1 GB/s: 15 us + 5.85 us.
    more = made.cost().step(shape(16, 256)) - without.cost().step(shape(16, 256))
    assert more == pytest.approx(8 * (15e3 + 16 * 64 * 4 / 0.7), rel=1e-3)


def test_what_a_long_sequence_costs_is_that_of_one_beside_the_smallest_chunk(tmp_path: Path) -> None:
    folder = llmservingsim(tmp_path / "four")
    about = {"device": "none", "dtype": "float32", "tensor_parallel": 1, "date": "2026-11-29", "source": "this test"}
    without = composed_profile(read(folder, MODEL), MODEL, **about)
    assert EVEN in without.content["not_included"]
    made = composed_profile(read(folder, MODEL), MODEL, multiprocessors=10, **about)
    assert EVEN not in made.content["not_included"]
    assert "one of 10 multiprocessors" in made.content["method"]
    # 0.02 us a position and layer, four layers. Two KV heads: eight sequences are 16 blocks, 80% of two on each.
    curve = made.content["curve"]["table"]
    assert curve["per_tail_token"] == pytest.approx(4 * 20, rel=1e-3)
    assert curve["unsplit"] == 8
    uneven = shape(8, 256)
    uneven.longest = 256 + 1000
    more = made.cost().step(uneven) - without.cost().step(uneven)
    assert more == pytest.approx(1000 * 80 - 4 * 1e3 * decode_us(8, 0), rel=1e-3)


def test_when_flash_attention_no_longer_splits_a_context() -> None:
    # On 128 multiprocessors below 204.8 blocks, on 188 below 300.8; eight KV heads, or four on each of two devices.
    assert [unsplit_from(128, 8), unsplit_from(188, 8), unsplit_from(188, 4)] == [26, 38, 76]


def test_without_mixed_steps_no_table_says_what_a_long_sequence_costs(tmp_path: Path) -> None:
    folder = llmservingsim(tmp_path / "four")
    operators = read(folder, MODEL)
    alone = operators.attention[(operators.attention["chunk"] == 0) | (operators.attention["decodes"] == 0)]
    with pytest.raises(ValueError, match="no step of a chunk and one decode"):
        compose(dataclasses.replace(operators, attention=alone), 8)


def test_sums_by_class_of_operator_make_whole_steps() -> None:
    rows = []
    for batch, context in product((1, 8, 64), CONTEXTS):
        gemm, attention = 5.0 + 0.01 * batch, 0.5 + 1e-5 * batch * context
        rows.append(("decode", batch, context, 0, gemm + attention + 0.2, gemm, attention, 0.2))
    for tokens in (16, 32, 64, 128, 256, 512, 1024):
        gemm, attention = 5.0 + 0.01 * tokens, 0.5 + 1e-6 * tokens**2
        rows.append(("prefill", 1, 0, tokens, gemm + attention + 0.2, gemm, attention, 0.2))
    columns = ["kind", "batch", "context_len", "chunk_prefill_tokens", "step_ms", "gemm_ms", "attn_ms", "other_ms"]
    found = compose_sums(pd.DataFrame(rows, columns=columns))
    made = table(found.content)
    assert made.step(shape(8, 256)) == pytest.approx(1e6 * (5.28 + 0.5 + 1e-5 * 8 * 256), rel=0.01)
    assert made.step(shape(chunks=((0, 256),))) == pytest.approx(1e6 * (7.76 + 0.5 + 1e-6 * 256**2), rel=1e-3)
    # What comes before is read as the second half of a prompt of 512 reads the first: 2e-6 x 256 a position.
    later = made.step(shape(chunks=((256, 256),))) - made.step(shape(chunks=((0, 256),)))
    assert later == pytest.approx(1e6 * 2e-6 * 256 * 256, rel=0.02)
    assert found.residuals["decode_worst"] < 0.01
    with pytest.raises(ValueError, match="attn_ms: no such column"):
        compose_sums(pd.DataFrame(rows, columns=columns).drop(columns="attn_ms"))


def test_the_published_tables_are_read(data: Path) -> None:
    folder = data / "profiles"
    old = folder / "llmservingsim_v0" / "H100__Llama-3.1-70B__tp4"
    assert read(old, architecture("llama-3.1-70b"), 4).dense["tokens"].max() == 2048
    mixture = read(
        folder / "llmservingsim" / "RTXPRO6000__Qwen3-30B-A3B-Instruct-2507__tp1", architecture("qwen3-30b-a3b")
    )
    # 128 of 128 experts at 2,048 tokens: 1,066.6 us of each of 48 layers.
    assert mixture.dense["ns"].iloc[-1] > 48 * 1.0666e6
    with pytest.raises(ValueError, match=r"H100__Llama-3\.1-8B__tp1: has no attention\.csv"):
        read(folder / "llmservingsim_v0" / "H100__Llama-3.1-8B__tp1", architecture("llama-3.1-8b"))
    vidur = read(folder / "vidur" / "h100__Llama-2-70b-hf", architecture("llama-2-70b"), 4, old / "attention.csv.gz")
    assert vidur.missing == ("output head", "sampling", ALL_REDUCE)
