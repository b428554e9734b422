"""Round trips: our parquet keeps everything, the others say what they cannot hold."""

import dataclasses
import gzip

import numpy as np
import pandas as pd
import pytest

from sim.request import SECOND, Patience, Request
from traces import BadInput, load, writers
from traces.reading.pieces import STRING, nullable, objects, text
from traces.reading.report import Report
from traces.reading.table import Trace
from traces.reading.tabulate import tabulate
from traces.synthetic import Geometric, Poisson, Prefixes, Sessions, Synthetic, generate, sessions
from traces.writers.mooncake import joined


def same(one, other):
    """Whether two frames have the same columns, types and values, missing ones included."""
    assert list(one.columns) == list(other.columns)
    assert list(one.dtypes) == list(other.dtypes)
    for name in one:
        for a, b in zip(one[name], other[name], strict=True):
            if isinstance(a, np.ndarray):
                assert np.array_equal(a, b)
            else:
                assert type(a) is type(b)
                assert a is b or a == b or (pd.isna(a) and pd.isna(b))


def kept_whole(trace, path):
    """That the trace comes back from our parquet as it was, but for the name of the file."""
    assert writers.write(trace, path) == []
    found = load(path)
    for frame in dataclasses.fields(Trace):
        one, other = getattr(trace, frame.name), getattr(found, frame.name)
        if frame.name == "report":
            assert dataclasses.replace(other, file=one.file) == one
        elif frame.name == "tables":
            assert list(one) == list(other)
            for name in one:
                same(one[name], other[name])
        elif isinstance(one, pd.DataFrame):
            same(one, other)
        else:
            assert one == other


def everything():
    """A trace with a column of each kind, some of them with gaps."""
    workload = pd.DataFrame(
        {
            "id": text(["a", "b", "c"]),
            "arrival_ns": np.array([0, 1_000_000_001, 2_999_999_999]),
            "prompt": np.array([5, 9, 4]),
            "output": np.array([1, 2, 3]),
            "max_output": nullable([9, 0, 3], [False, True, False]),
            "tenant": text(["x", None, "y"]),
            "session": text(["s", None, "s"]),
            "turn": nullable([0, 0, 1], [False, True, False]),
            "priority": nullable([-1, 0, 2], [False] * 3),
            "deadline_ns": nullable([5000, 0, 0], [False, True, True]),
            "blocks": objects([(1, "two"), (), (1,)]),
            "tokens": objects([(1, 2, 3, 4, 5), None, (7, 8, 9, 10)]),
        }
    )
    measurements = pd.DataFrame(
        {
            "id": text(["a", "z"]),
            "status": text(["ok", "failed"]),
            "ttft_s": [0.5, np.nan],
            "itl_s": objects([np.array([0.1, 0.2]), None]),
        }
    )
    report = Report("x.csv", "generic", rows=4, kept=3, notes=["a note"])
    report.drop("failed", 1)
    tables = {"runs": pd.DataFrame({"run": ["r"], "rate": ["inf"], "n": [3]})}
    return Trace("workload", report, workload, measurements, tables, block_size=8, local_blocks=True)


def test_our_parquet_loses_nothing(tmp_path):
    kept_whole(everything(), tmp_path / "x.parquet")


@pytest.mark.parametrize(
    "name",
    [
        "azure_2023/AzureLLMInferenceTrace_code.csv.gz",
        "burstgpt/burstgpt_3_first118.csv",
        "mooncake/synthetic_trace.jsonl.gz",
        "gt_llmservingsim_vllm019/workload_sharegpt-llama-3.1-8b-300-sps10.jsonl.gz",
        "gt_h100_vllm023_tenants/w5_sweep__agg6.trace.csv.gz",
        "gt_a10g_slora_vtc/real_VTC.jsonl.gz",
        "servegen/mm-image_client_rates.csv.gz",
        "format_samples/sglang_bench_serving_h200_llama33_70b_online.jsonl",
    ],
)
def test_public_files_survive_our_parquet(data, name, tmp_path):
    kept_whole(load(data / "traces" / name), tmp_path / "x.parquet")


def test_a_generated_workload_is_the_same_requests_after_the_file(tmp_path):
    spec = Synthetic(
        requests=300,
        arrivals=Poisson(2),
        prompt=Geometric(50),
        output=Geometric(20),
        sessions=Sessions(Geometric(3), SECOND),
        prefixes=Prefixes(3, Geometric(100)),
    )
    requests = generate(spec, 0)
    trace, lost = tabulate(requests, sessions(spec, requests))
    assert lost == []
    writers.write(trace, tmp_path / "x.parquet")
    assert load(tmp_path / "x.parquet").requests() == requests


def test_what_a_trace_does_not_hold_of_requests_is_said():
    one, other = (
        Request("a", 0, 4, 1, blocks=(1,), block_size=4),
        Request("b", 1, 4, 1, adapter="lora", patience=Patience(timeout=5)),
    )
    third = Request("c", 2, 4, 1, blocks=(1, 2), block_size=2)
    trace, lost = tabulate([one, other, third])
    assert lost == ["adapter: not in a trace", "timeout: not in a trace", "blocks of 2 sizes: a trace has one"]
    assert "blocks" not in trace.workload


def test_vidur_keeps_arrivals_to_the_nanosecond_and_lengths(tmp_path):
    trace = everything()
    lost = writers.write(trace, tmp_path / "x.csv", "vidur")
    found = load(tmp_path / "x.csv")
    assert found.report.format == "vidur"
    columns = ["arrival_ns", "prompt", "output"]
    same(found.workload[columns], trace.workload[columns])
    assert lost == [
        *(f"{name}: not in the format" for name in trace.workload.columns if name not in columns),
        "measurements of 2 requests: not in the format",
        "table runs of 1 rows: not in the format",
    ]


def test_mooncake_keeps_milliseconds_blocks_and_sessions(tmp_path):
    frame = pd.DataFrame(
        {
            "id": text(["1", "2", "3"]),
            "arrival_ns": np.array([0, 3_000_000_000, 3_000_400_000]),
            "prompt": np.array([1000, 1300, 512]),
            "output": np.array([1, 2, 3]),
            "session": text(["s", "s", None]),
            "turn": nullable([0, 1, 0], [False, False, True]),
            "blocks": objects([("a", "b"), ("a", "c", "d"), ("a",)]),
        }
    )
    lost = writers.write(Trace("workload", Report("x"), frame, block_size=512), tmp_path / "x.jsonl")
    found = load(tmp_path / "x.jsonl").workload
    assert lost == ["arrivals: 1 rounded down to whole milliseconds"]
    assert found["arrival_ns"].tolist() == [0, 3_000_000_000, 3_000_000_000]
    assert found["blocks"].tolist() == [(0, 1), (0, 2, 3), (0,)]
    for name in ("prompt", "output", "session", "turn"):
        same(found[[name]], frame[[name]])


def test_a_mooncake_file_comes_back_as_it_was(data, tmp_path):
    trace = load(data / "traces" / "mooncake" / "conversation_trace.jsonl.gz")
    assert writers.write(trace, tmp_path / "x.jsonl") == []
    same(load(tmp_path / "x.jsonl").workload, trace.workload)


def test_small_blocks_are_joined_and_odd_ones_left_out(tmp_path):
    assert joined((1, 2, 3, 4, 5), 2) == [2, 4, 5]
    assert joined((1, 2, 3, 4), 2) == [2, 4]
    frame = pd.DataFrame({"id": text(["1"]), "arrival_ns": [0], "prompt": [768], "output": [1]})
    quarters = frame.assign(blocks=objects([(1, 2, 3)]))
    lost = writers.write(Trace("workload", Report("x"), quarters, block_size=256), tmp_path / "x.jsonl")
    assert lost == ["blocks of 256 tokens joined to 512: shorter common beginnings are lost"]
    assert load(tmp_path / "x.jsonl").workload["blocks"].tolist() == [(2, 3)]
    odd = frame.assign(blocks=objects([(1, 2, 3)]))
    lost = writers.write(Trace("workload", Report("x"), odd, block_size=300), tmp_path / "y.jsonl")
    assert lost == ["blocks of 300 tokens: they do not make up blocks of 512", "blocks: not in the format"]
    assert "blocks" not in load(tmp_path / "y.jsonl").workload


def test_token_ids_become_blocks(tmp_path):
    tokens = [tuple(range(600)), (*range(512), *range(9)), tuple(range(1, 513))]
    frame = pd.DataFrame(
        {
            "id": text(["1", "2", "3"]),
            "arrival_ns": [0, 0, 0],
            "prompt": [600, 521, 512],
            "output": [1, 1, 1],
            "tokens": objects(tokens),
        }
    )
    lost = writers.write(Trace("workload", Report("x"), frame), tmp_path / "x.jsonl")
    assert lost == ["token ids: only which blocks of 512 are equal"]
    assert load(tmp_path / "x.jsonl").workload["blocks"].tolist() == [(0, 1), (0, 2), (3,)]


def test_tracev2_keeps_who_when_how_long_and_how_urgent(tmp_path):
    trace = everything()
    lost = writers.write(trace, tmp_path / "x.csv", "tracev2")
    found = load(tmp_path / "x.csv")
    assert found.report.format == "tracev2"
    assert (tmp_path / "x.yaml").read_text().startswith("trace_version: 2\n")
    assert found.workload["arrival_ns"].tolist() == [0, 1_000_000_000, 2_999_999_000]
    for name in ("id", "prompt", "output", "tenant", "session", "priority"):
        same(found.workload[[name]], trace.workload[[name]])
    assert found.workload["turn"].dropna().tolist() == [0, 1]
    assert found.workload["deadline_ns"].fillna(0).tolist() == [5000, 0, 0]
    assert lost == [
        "arrivals: 2 rounded down to whole microseconds",
        "max_output: not in the format",
        "blocks: not in the format",
        "tokens: not in the format",
        "measurements of 2 requests: not in the format",
        "table runs of 1 rows: not in the format",
    ]


def test_a_tracev2_file_keeps_its_workload(data, tmp_path):
    trace = load(data / "traces" / "gt_h100_vllm023_tenants" / "w5_sweep__agg6.trace.csv.gz")
    lost = writers.write(trace, tmp_path / "x.csv", "tracev2")
    assert lost == [f"measurements of {len(trace.measurements):,} requests: not in the format"]
    found = load(tmp_path / "x.csv").workload
    for name in ("id", "arrival_ns", "prompt", "output", "tenant"):
        same(found[[name]], trace.workload[[name]])


def test_a_format_is_told_by_the_name_or_asked_for(tmp_path):
    with pytest.raises(
        BadInput, match=r"x\.csv: the format is not clear from the name; expected --to parquet, vidur"
    ):
        writers.write(everything(), tmp_path / "x.csv")
    with pytest.raises(BadInput, match=r"^vidr: unknown format to write; did you mean vidur\?$"):
        writers.write(everything(), tmp_path / "x.csv", "vidr")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_replayed_cannot_be_written_as_a_workload(data, tmp_path):
    rates = load(data / "traces" / "servegen" / "mm-image_client_rates.csv.gz")
    with pytest.raises(
        BadInput, match=r"has no arrivals, prompt lengths, output lengths; the vidur format needs them$"
    ):
        writers.write(rates, tmp_path / "x.csv", "vidur")


def test_a_file_that_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path):
    with pytest.raises(BadInput, match=r"x\.parquet: cannot be written: No such file or directory$"):
        writers.write(everything(), tmp_path / "no" / "x.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [100, -20])
def test_a_damaged_parquet_file_is_an_error(tmp_path, cut):
    writers.write(everything(), tmp_path / "x.parquet")
    whole = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(whole[:cut])
    with pytest.raises(BadInput, match=r"x\.parquet: "):
        load(tmp_path / "x.parquet", "slotstep")


def test_a_compressed_copy_is_no_parquet_file(tmp_path):
    writers.write(everything(), tmp_path / "x.parquet")
    (tmp_path / "x.gz").write_bytes(gzip.compress((tmp_path / "x.parquet").read_bytes()))
    with pytest.raises(BadInput, match=r"x\.gz: "):
        load(tmp_path / "x.gz")


def test_another_version_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("traces.writers.slotstep_trace.VERSION", 99)
    writers.write(everything(), tmp_path / "x.parquet")
    with pytest.raises(BadInput, match=r"x\.parquet: version 99 of slotstep's own format; expected 1$"):
        load(tmp_path / "x.parquet")


def test_texts_are_pandas_strings():
    trace, _ = tabulate([Request("1", 0, 1, 1)])
    assert trace.workload["id"].dtype == STRING
