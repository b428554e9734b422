"""What each format says, and its quirks, in small files whose right reading is known beforehand."""

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import trace_miniatures as mini

import traces
from sim.request import Request
from traces import BadInput
from traces.reading.report import NO_ARRIVALS

SECOND = 10**9


@pytest.fixture
def read(tmp_path):
    """Reads bytes as a trace, its format detected."""

    def load(content, kind=None, name="trace", **options):
        path = tmp_path / name
        path.write_bytes(content)
        return traces.load(path, kind, **options)

    return load


def rows(frame, *names):
    return list(frame[list(names)].astype(object).where(frame[list(names)].notna(), None).itertuples(False, None))


@pytest.mark.parametrize(
    ("name", "content"), [(name, file) for name, files in mini.MINIATURES.items() for file in files]
)
def test_every_format_is_told_by_its_content_and_accounts_for_every_row(read, name, content):
    trace = read(content)
    assert trace.report.format == name
    if trace.workload is not None:
        assert trace.report.rows == len(trace.workload) + sum(trace.report.dropped.values())
    assert read(content, name).report.lines() == trace.report.lines()
    assert f"{name}, {trace.report.rows} rows read, {trace.report.kept} in the workload" in trace.report.lines()[0]


@pytest.mark.parametrize(
    ("name", "content"), [(name, file) for name, files in mini.MINIATURES.items() for file in files]
)
def test_gzip_and_zstd_change_nothing(read, name, content):
    plain = read(content)
    for packed in (gzip.compress(content), pa.compress(content, "zstd", asbytes=True)):
        again = read(packed)
        assert again.kind == plain.kind
        for one, other in ((plain.workload, again.workload), (plain.measurements, again.measurements)):
            assert (one is None) == (other is None)
            if one is not None:
                pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize(
    ("name", "content"), [(name, file) for name, files in mini.MINIATURES.items() for file in files]
)
def test_pieces_hold_what_the_whole_holds(read, tmp_path, name, content):
    whole = read(content)
    pieces = list(traces.chunks(tmp_path / "trace"))
    assert {piece.report.format for piece in pieces} == {name}
    assert sum(piece.report.rows for piece in pieces) == whole.report.rows
    assert sum(piece.report.kept for piece in pieces) == whole.report.kept
    if whole.workload is not None:
        ids = [key for piece in pieces if piece.workload is not None for key in piece.workload["id"]]
        assert sorted(ids) == sorted(whole.workload["id"])


def test_azure_of_2024_mixes_times_with_and_without_a_fraction(read):
    assert rows(read(mini.AZURE_2024).workload, "id", "arrival_ns", "prompt", "output") == [
        ("1", 0, 2162, 5),
        ("2", SECOND - 9_930_000, 2399, 6),
    ]


def test_azure_of_2025_counts_images(read):
    assert rows(read(mini.AZURE_2025).workload, "arrival_ns", "prompt", "images") == [
        (0, 2162, 3),
        (731_000_000, 20, 0),
    ]


def test_azure_lengths_of_zero_are_dropped_by_reason(read):
    trace = read(mini.AZURE + b"2023-11-16 18:16:00.0,5,0\r\n2023-11-16 18:16:01.0,0,5\r\n2023-11-16 18:16:02.0,0,0")
    assert trace.report.dropped == {
        "GeneratedTokens is 0": 1,
        "ContextTokens is 0": 1,
        "ContextTokens and GeneratedTokens are 0": 1,
    }
    assert (trace.report.rows, trace.report.kept) == (5, 2)
    assert trace.requests()[1] == Request("2", 4_314_579_000, 396, 109)


def test_burstgpt_is_read_by_name_though_two_columns_are_inserted(read):
    trace = read(mini.BURSTGPT_3)
    assert rows(trace.workload, "arrival_ns", "prompt", "output", "model", "session") == [
        (0, 906, 446, "GPT-4", "s-1"),
        (51 * SECOND, 36, 29, "ChatGPT", None),
        (82 * SECOND, 1400, 123, "GPT-4", "s-1"),
    ]
    assert trace.measurements["e2e_s"].tolist() == [43, 2, 0]


def test_burstgpt_failures_are_measured_and_not_replayed(read):
    trace = read(mini.BURSTGPT)
    assert rows(trace.workload, "id", "arrival_ns") == [("1", 0), ("3", 40 * SECOND)]
    assert rows(trace.measurements, "id", "status", "output") == [
        ("1", "ok", 18),
        ("2", "failed", None),
        ("3", "ok", 276),
    ]
    assert trace.report.lines()[1:] == ["dropped 1: Response tokens is 0: the request failed"]


def test_mooncake_blocks_are_of_512_tokens_and_the_last_is_partial(read):
    trace = read(mini.MOONCAKE)
    assert trace.block_size == 512
    assert trace.requests() == [
        Request("1", 0, 513, 5, blocks=(0, 1), block_size=512),
        Request("2", 3 * SECOND, 1024, 1, blocks=(0, 2), block_size=512),
        Request("3", 3 * SECOND, 8, 2, blocks=(3,), block_size=512),
    ]
    assert trace.report.notes == ["arrivals at the same instant as the one before: 1; they keep the file's order"]


def test_blocks_that_do_not_cover_the_prompt_are_left_out_and_booked(read):
    trace = read(mini.MOONCAKE.replace(b"[0, 2]", b"[0, 2, 9]"))
    assert [request.blocks for request in trace.requests()] == [(0, 1), (), (3,)]
    assert trace.report.changed == {"hash_ids are not one for every 512 tokens of the prompt: blocks left out": 1}


def test_coarse_ticks_are_noted_with_their_distance(read):
    batches = [
        {"timestamp": 3000 * (n // 10), "input_length": 8, "output_length": 2, "hash_ids": [n]} for n in range(40)
    ]
    trace = read(mini.lines(*batches))
    assert trace.tick_ns == 3 * SECOND
    assert "arrivals are snapped to 4 instants, about 3 s apart" in trace.report.notes[1]
    even = read(mini.lines(*({**row, "timestamp": 3000 * n} for n, row in enumerate(batches))))
    assert (even.tick_ns, even.report.notes) == (0, [])


def test_the_aiperf_dialect_has_sessions_whose_turns_wait(read):
    trace = read(mini.AIPERF_TRACE)
    assert rows(trace.workload, "id", "arrival_ns", "session", "turn", "parent", "think_ns") == [
        ("2", 0, None, None, None, None),
        ("1", SECOND // 2, "a", 0, None, None),
        ("3", SECOND // 2 + 250_000_000, "a", 1, "1", 250_000_000),
    ]
    assert trace.report.changed["arrives a delay after the turn before: its earliest possible time is kept"] == 1
    assert trace.report.dropped == {"has no input_length: text and messages have no token count here": 1}


def test_the_aiperf_dialect_without_times_is_lengths_only(read):
    timeless = mini.lines(
        {"input_length": 9, "output_length": 2, "hash_ids": [1]}, {"input_length": 8, "output_length": 3}
    )
    trace = read(timeless)
    assert (trace.kind, trace.workload["prompt"].tolist()) == ("lengths", [9, 8])
    half = mini.lines(
        {"timestamp": 1, "input_length": 9, "output_length": 2}, {"input_length": 8, "output_length": 3}
    )
    with pytest.raises(BadInput, match=r"row 2: timestamp is missing; expected milliseconds"):
        read(half)


def test_ids_local_to_a_conversation_are_made_its_own(read):
    other = mini.WEKA.replace(b'"conv"', b'"other"')
    trace = read(mini.WEKA + other)
    assert trace.local_blocks
    assert {request.blocks[0] for request in trace.requests()} == {"conv/1", "conv/3", "other/1", "other/3"}
    assert rows(trace.run("conv").workload if trace.runs else trace.workload, "prompt", "output")[0] == (100, 9)
    assert not read(mini.WEKA.replace(b'"local"', b'"global"')).local_blocks


def test_bailian_sessions_follow_parents_to_their_root(read):
    trace = read(mini.BAILIAN)
    assert trace.block_size == 16
    assert rows(trace.workload, "id", "arrival_ns", "session", "turn", "parent") == [
        ("159", 0, "159", 0, None),
        ("160", 1_386_000_000, "159", 1, "159"),
        ("161", 1_886_000_000, "7", 2, "7"),
    ]
    assert trace.report.changed == {"parent_chat_id is not in an earlier row: its session starts here": 1}
    assert [request.blocks for request in trace.requests()] == [(11, 12), (11, 13, 14), (15,)]


def test_vidur_seconds_are_exact(read):
    assert rows(read(mini.VIDUR).workload, "arrival_ns", "prompt", "output") == [
        (0, 374, 44),
        (4_314_579_000, 396, 109),
    ]


def test_lengths_without_arrivals_cannot_be_replayed(read):
    trace = read(mini.LENGTHS)
    assert (trace.kind, rows(trace.workload, "prompt", "output")) == ("lengths", [(1047, 1368), (74, 918)])
    with pytest.raises(BadInput, match=r"no arrival times in this file \(lengths\); it cannot be replayed$"):
        trace.requests()


def test_requests_and_agent_sessions_are_told_apart_in_one_file(read):
    trace = read(mini.LLMSERVINGSIM)
    assert rows(trace.workload, "id", "arrival_ns", "prompt", "session", "turn", "parent", "think_ns") == [
        ("1", 0, 3, None, None, None, None),
        ("2", 53, 10, "agent", 0, None, None),
        ("5", 73, 4, None, None, None, None),
        ("3", 83, 20, "agent", 1, "2", 30),
        ("4", 153, 40, "agent", 2, "3", 70),
    ]
    assert trace.report.changed["arrives when the sub-request before ends: its earliest possible time is kept"] == 2
    assert trace.requests()[0] == Request("1", 0, 3, 2, tokens=(5, 6, 7))
    assert trace.workload["output_tokens"].iloc[0] == (8, 9)


def test_token_ids_of_another_length_are_left_out(read):
    trace = read(mini.LLMSERVINGSIM.replace(b"[5, 6, 7]", b"[5, 6]"))
    assert trace.requests()[0].tokens is None
    assert trace.report.changed["input_tok_ids is not as long as stated: ids left out"] == 1


def test_epoch_and_monotonic_clocks_in_one_row_are_never_mixed(read):
    trace = read(mini.LLMSERVINGSIM_LOG)
    assert rows(trace.measurements, "status", "arrival_ns", "queued_ns", "scheduled_ns", "first_ns", "last_ns") == [
        ("ok", 0, 0, SECOND // 4, SECOND, 6 * SECOND),
        ("failed", SECOND, SECOND, None, None, None),
    ]
    first = trace.measurements.iloc[0]
    assert (first["wait_s"], first["ttft_s"], first["e2e_s"], first["tpot_s"]) == (0.25, 1, 6, 0.5)
    assert trace.measurements.iloc[1][["wait_s", "ttft_s", "e2e_s", "tpot_s"]].isna().all()


def test_servegen_windows_without_traffic_have_no_process(read):
    trace = read(mini.SERVEGEN_RATES)
    assert trace.kind == "rates"
    assert rows(trace.tables["rates"], "client", "start_s", "rate", "process", "shape", "scale_s") == [
        ("0", 0, 0, None, 0, 0),
        ("0", 600, 0.5, "Gamma", 0.64, 3.125),
        ("7", 600, 2, "Weibull", 2.1, 0.56),
    ]


def test_servegens_own_files_have_no_header_and_name_their_client(read):
    table = read(mini.SERVEGEN_CHUNK, name="chunk-12-trace.csv").tables["rates"]
    assert rows(table, "client", "start_s", "rate") == [("chunk-12-trace", 0, 0), ("chunk-12-trace", 600, 0.5)]
    windows = json.loads(mini.SERVEGEN_LENGTHS)["windows"]
    pretty = json.dumps(windows, indent=1).encode()
    histograms = read(pretty, name="chunk-12-dataset.json").tables["histograms"]
    assert set(histograms["client"]) == {"chunk-12-dataset"}
    assert len(histograms) == 6


def test_servegen_histograms_are_text_of_python_dictionaries(read):
    trace = read(mini.SERVEGEN_LENGTHS)
    assert rows(trace.tables["histograms"], "client", "start_s", "field", "value", "probability") == [
        ("3", 0, "input_tokens", 45, 0.25),
        ("3", 0, "input_tokens", 46, 0.75),
        ("3", 21600, "input_tokens", 7, 1),
        ("3", 21600, "reason_ratio", 0.5, 0.4),
        ("3", 21600, "reason_ratio", 0.75, 0.6),
        ("3", 21600, "output_tokens", 1, 1),
    ]
    assert trace.report.dropped == {"output_tokens: an empty histogram": 1}
    with pytest.raises(BadInput, match=r"row 1: input_tokens of window 0 is .\{45: __import__"):
        read(mini.SERVEGEN_LENGTHS.replace(b"{45: 0.25,", b"{45: __import__('os'),"))


def test_tracev2_takes_the_servers_count_and_adds_a_shared_prefix(read):
    trace = read(mini.TRACEV2)
    assert rows(
        trace.workload, "id", "arrival_ns", "prompt", "tenant", "session", "turn", "prefix_group", "prefix"
    ) == [
        ("0", 0, 124, "A", "s", 0, "g", 100),
        ("1", 400_000_000, 1010, "A", "s", 1, None, None),
        ("2", 450_000_000, 256, "B", None, None, None, None),
    ]
    assert trace.workload["deadline_ns"].tolist()[0] == 200_000_000


def test_tracev2_measures_from_sending_and_has_two_clocks(read):
    measured = read(mini.TRACEV2).measurements
    assert rows(measured, "id", "status", "arrival_ns", "sent_ns", "first_ns") == [
        ("0", "timed_out", 0, 0, None),
        ("1", "ok", 400_000_000, 400_000_000, 500_000_000),
        ("2", "failed", 450_000_000, 500_000_000, None),
    ]
    done = measured.iloc[1]
    assert (done["ttft_s"], done["e2e_s"], done["tpot_s"]) == pytest.approx((0.1, 1.37, 0.01))
    assert measured["error"].iloc[2] == "broken,\npipe"


def test_the_yaml_header_beside_tracev2_is_noted(read, tmp_path):
    header = "trace_version: 2\ntime_unit: microseconds\nmode: real\nwarm_up_requests: 7\n"
    (tmp_path / "trace.yaml").write_text(header)
    notes = read(mini.TRACEV2, name="trace.csv.gz").report.notes
    assert notes[:2] == [
        "header trace.yaml: trace version 2, mode real",
        "header trace.yaml: the first 7 requests are warm-up",
    ]
    (tmp_path / "trace.yaml").write_text(header.replace("microseconds", "ticks"))
    with pytest.raises(BadInput, match=r"trace.yaml: time_unit is 'ticks'; expected microseconds$"):
        read(mini.TRACEV2, name="trace.csv")


def test_vllm_failures_have_no_output_and_no_latency(read):
    trace = read(mini.VLLM)
    assert rows(trace.workload, "id", "arrival_ns", "prompt", "output") == [
        ("2", 0, 20, 1),
        ("1", 1_500_000_000, 10, 3),
    ]
    assert rows(trace.measurements, "id", "status", "error") == [
        ("2", "ok", None),
        ("3", "failed", "Traceback"),
        ("1", "ok", None),
    ]
    last = trace.measurements.iloc[2]
    assert (last["ttft_s"], last["e2e_s"], last["tpot_s"]) == pytest.approx((0.1, 0.22, 0.06))
    assert last["itl_s"].tolist() == [0.05, 0.07]
    assert trace.tables["runs"]["request_rate"].tolist() == ["inf"]


def test_vllm_without_start_times_or_details_says_so(read):
    older = json.loads(mini.VLLM)
    del older["start_times"]
    trace = read(mini.lines(older))
    assert (trace.kind, len(trace.measurements)) == ("lengths", 3)
    assert rows(trace.workload, "id", "prompt", "output") == [("1", 10, 3), ("2", 20, 1)]
    assert trace.report.notes == [NO_ARRIVALS]
    mixed = read(mini.lines(older, json.loads(mini.VLLM)))
    assert set(mixed.workload["run"]) == {"2"}
    assert mixed.report.dropped["no start times, as other runs of the file have: measurements only"] == 2
    bare = {name: value for name, value in older.items() if not isinstance(value, list)}
    both = read(mini.lines(older, bare))
    assert both.report.notes == [NO_ARRIVALS, "run 2 has no details of its requests, only aggregates"]
    assert set(both.measurements["run"]) == {"1"}
    older["ttfts"] = older["ttfts"][:2]
    with pytest.raises(BadInput, match=r"run 1: ttfts has 2 entries; expected 3, as input_lens has$"):
        read(mini.lines(older))


def test_sglang_runs_are_appended_line_by_line(read):
    trace = read(mini.SGLANG)
    assert rows(trace.measurements, "run", "status", "ttft_s", "e2e_s") == [
        ("1", "ok", 0.25, 0.75),
        ("1", "failed", None, None),
    ]
    assert trace.tables["runs"]["completed"].tolist() == [1, 300]


def test_guidellm_outcomes_become_statuses(read):
    trace = read(mini.GUIDELLM)
    assert rows(trace.measurements, "id", "status", "arrival_ns", "sent_ns", "prompt") == [
        ("a", "ok", 0, 0, 12),
        ("b", "cancelled", SECOND, 750_000_000, 9),
        ("c", "timed_out", 1_500_000_000, None, None),
    ]
    done = trace.measurements.iloc[0]
    assert (done["ttft_s"], done["e2e_s"], done["tpot_s"]) == (0.25, 2.5, 0.5)
    assert rows(trace.workload, "id", "prompt", "output") == [("a", 12, 5)]


def test_aiperf_new_and_old_and_cancelled(read):
    trace = read(mini.AIPERF)
    assert rows(trace.measurements, "id", "status", "arrival_ns", "output") == [
        ("r1", "ok", 0, 3),
        ("r2", "cancelled", 100_000_000, None),
    ]
    done = trace.measurements.iloc[0]
    assert (done["ttft_s"], done["e2e_s"], done["tpot_s"]) == pytest.approx((0.0315, 0.0715, 0.02))
    assert done["itl_s"].tolist() == pytest.approx([0.018, 0.022])
    old = read(mini.AIPERF_OLD).measurements.iloc[0]
    assert (old["id"], old["ttft_s"], old["e2e_s"]) == ("1", 0.5, 1.5)
    warm = read(mini.AIPERF.replace(b'"profiling"', b'"warmup"', 1))
    assert warm.report.dropped["benchmark_phase is warmup"] == 1
    assert warm.measurements["id"].tolist() == ["r2"]


def test_inference_perf_never_trusts_the_clients_output_count(read, tmp_path):
    trace = read(mini.INFERENCE_PERF, name="run-a.csv.gz")
    assert trace.kind == "measurements"
    assert rows(trace.measurements, "id", "status", "output") == [
        ("0", "ok", None),
        ("1", "timed_out", None),
        ("2", "ok", None),
        ("3", "failed", None),
    ]
    with pytest.raises(BadInput, match=r"no output lengths in this file \(inference-perf\); it cannot be replayed$"):
        trace.requests()
    profile = {"client_profile": {"data": {"shared_prefix": {"output_len": 19}}}}
    (tmp_path / "experiments.json").write_text(
        json.dumps([{"experiment": "other"}, {"experiment": "run-a", **profile}])
    )
    known = read(mini.INFERENCE_PERF, name="run-a.csv.gz")
    assert rows(known.workload, "id", "prompt", "output") == [("0", 591, 19), ("2", 600, 19)]
    assert known.measurements["tpot_s"].iloc[0] == pytest.approx((1.943 - 0.125) / 18)
    assert known.report.dropped == {"timed out at the client: no lengths": 1, "failed: no lengths": 1}


@pytest.mark.parametrize("nested", [False, True])
def test_inference_perfs_own_report_has_token_times(read, nested):
    entries = json.loads(mini.INFERENCE_PERF_REPORT)
    if nested:
        for entry in entries:
            times = {name: entry["info"].pop(name) for name in ("output_tokens", "output_token_times")}
            entry["info"]["response_metrics"] = times
    trace = read(json.dumps(entries).encode())
    done = trace.measurements.iloc[0]
    assert (done["ttft_s"], done["e2e_s"], done["itl_s"].tolist()) == (0.25, 2, [0.5, 1])
    assert trace.measurements["status"].tolist() == ["ok", "failed"]
    assert len(trace.workload) == 1


def test_llmperf_is_a_closed_loop_without_start_times(read):
    trace = read(mini.LLMPERF)
    assert rows(trace.workload, "id", "prompt", "output") == [("1", 550, 5)]
    assert rows(trace.measurements, "status", "ttft_s", "e2e_s", "tpot_s") == [
        ("ok", 0.5, 2.5, 0.5),
        ("failed", None, None, None),
    ]


def test_lmbench_counts_are_floats_and_runs_have_their_own_zero(read):
    trace = read(mini.LMBENCH)
    assert trace.runs == ["vllm/short/4.0", "vllm/short/8.0"]
    assert rows(trace.workload, "run", "arrival_ns", "prompt", "session") == [
        ("vllm/short/4.0", 0, 75, None),
        ("vllm/short/4.0", SECOND // 2, 76, "3"),
        ("vllm/short/8.0", 0, 75, None),
    ]
    assert [request.arrival for request in trace.requests("vllm/short/4.0")] == [0, SECOND // 2]
    with pytest.raises(BadInput, match=r"no run 'vllm/short/5'; did you mean vllm/short/"):
        trace.run("vllm/short/5")


def test_a_run_with_fewer_rows_than_its_fellows_lost_some(read):
    header, *_, row = mini.LMBENCH.decode().splitlines()
    runs = [row.replace("8.0", rate, 1) for rate in ("1", "2", "3", "4") for _ in range(1 if rate == "3" else 2)]
    notes = read(mini.table(header, *runs)).report.notes
    assert notes[-1] == ("arrivals at the same instant as the one before: 3; they keep the file's order")
    assert notes[0] == "run vllm/short/3 has 1 rows where its scenario has 2: the others were lost without a row"


def test_throttled_requests_are_coded_as_minus_one(read):
    trace = read(mini.SLORA)
    assert rows(trace.measurements, "tenant", "status", "ttft_s", "e2e_s") == [
        ("t-2", "throttled", None, None),
        ("t-1", "ok", 0.5, 2.5),
    ]
    assert [(request.tenant, request.arrival) for request in trace.requests()] == [("t-2", 0), ("t-1", SECOND // 4)]
    assert trace.report.changed["latencies are -1: throttled, without times"] == 1
    assert "num_abort is 0 though requests were throttled" in trace.report.notes


def test_the_gateways_time_is_the_completion(read):
    trace = read(mini.LITELLM)
    assert rows(trace.workload, "arrival_ns", "prompt", "model", "session") == [
        (0, 8, "m-4", "s1"),
    ]
    assert trace.report.changed == {
        "timestamp is the completion: used as arrival, which is not logged": 3,
        "the provider's prefix is removed from the model's name": 1,
    }
    assert trace.report.dropped["replies from the gateway's cache: no engine time"] == 1
    assert trace.report.notes == ["sessions that begin with a probe of 1 output token: 1"]
    assert trace.measurements["status"].tolist() == ["ok", "ok", "failed"]


def test_an_answer_from_the_gateways_cache_is_measured_and_no_row_of_the_workload(read):
    row = mini.LITELLM_PAYLOAD.decode().strip()
    trace = read("\n".join([row, row.replace('"cache_hit": false', '"cache_hit": true')]).encode())
    assert (len(trace.workload), len(trace.measurements)) == (1, 2)
    assert trace.report.dropped == {"replies from the gateway's cache: no engine time": 1}


def test_the_gateways_standard_payload_has_starts_and_ends(read):
    done = read(mini.LITELLM_PAYLOAD).measurements.iloc[0]
    assert (done["ttft_s"], done["e2e_s"], done["tpot_s"]) == (0.5, 2.5, 1)


def test_the_engine_log_has_tokens_and_token_times(read):
    trace = read(mini.ENGINE_LOG)
    assert trace.requests() == [Request("a", 0, 3, 3, declared=4, tokens=(4, 5, 6))]
    assert rows(trace.measurements, "id", "status", "ttft_s", "e2e_s") == [
        ("a", "ok", 0.375, 1),
        ("b", "failed", None, None),
    ]
    assert trace.measurements["itl_s"].iloc[0].tolist() == [0.25, 0.375]


def test_any_table_is_read_by_a_map_of_its_columns(read):
    table = mini.table("when,who,in,out,rank", "1.5,ann,10,3,-1", "1.25,bob,11,4,2", "2,ann,12,0,0")
    roles = {"arrival": "when:ms", "tenant": "who", "prompt": "in", "output": "out", "priority": "rank"}
    trace = read(table, columns=roles)
    assert trace.requests() == [
        Request("2", 0, 11, 4, tenant="bob", priority=2),
        Request("1", 250_000, 10, 3, tenant="ann", priority=-1),
    ]
    assert trace.report.dropped == {"out is 0": 1}
    lines = mini.lines(
        {"ts": "2024-05-10T00:00:00Z", "p": 3, "o": 1}, {"ts": "2024-05-10T00:00:01.5+00:00", "p": 4, "o": 2}
    )
    again = read(lines, columns={"arrival": "ts:iso", "prompt": "p", "output": "o"})
    assert rows(again.workload, "arrival_ns", "prompt") == [(0, 3), (1_500_000_000, 4)]


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ({"arival": "a:s", "prompt": "p", "output": "o"}, "columns.arival: unknown role; did you mean arrival?"),
        (
            {"arrival": "a", "prompt": "p", "output": "o"},
            "columns.arrival is 'a'; expected a column and its unit, as in a:ms",
        ),
        ({"arrival": "b:s", "prompt": "p", "output": "o"}, ", row 1: column b is missing; found 'a,p,o'"),
        ({"prompt": "p"}, ": no column for output; name it, as in output=COLUMN"),
    ],
)
def test_a_wrong_map_is_named(read, roles, expected):
    with pytest.raises(BadInput) as caught:
        read(mini.table("a,p,o", "1,2,3"), columns=roles)
    assert str(caught.value).endswith(expected)


def test_a_parquet_table_is_read_by_its_columns(read, tmp_path):
    whole = read(mini.AIPERF_TRACE)
    frame = whole.workload.assign(blocks=[list(blocks) for blocks in whole.workload["blocks"]])
    pa.parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "table.parquet")
    again = traces.load(tmp_path / "table.parquet")
    names = ["id", "arrival_ns", "prompt", "output", "session", "turn", "parent", "think_ns"]
    pd.testing.assert_frame_equal(again.workload[names], whole.workload[names])
    assert again.report.format == "columns"
    assert again.report.notes == ["blocks without a block size: left out"]
    roles = {"id": "id", "arrival": "arrival_ns:ns", "prompt": "prompt", "output": "output", "blocks": "blocks:512"}
    roles |= {"session": "session", "turn": "turn", "think": "think_ns:ns"}
    assert traces.load(tmp_path / "table.parquet", columns=roles).requests() == whole.requests()
    with pytest.raises(
        BadInput, match=r"^columns.blocks is 'blocks'; expected a column and tokens, as in hash_ids:512$"
    ):
        traces.load(tmp_path / "table.parquet", columns={**roles, "blocks": "blocks"})


def test_a_gateways_error_codes_tell_throttled_and_cancelled_requests(read):
    row = mini.LITELLM_PAYLOAD.decode().strip()
    failures = [
        row.replace('"success"', f'"failure", "error_information": {{"error_code": "{code}"}}')
        for code in (429, 499, 500, 503)
    ]
    statuses = read("\n".join([row, *failures]).encode()).measurements["status"].tolist()
    assert statuses == ["ok", "throttled", "cancelled", "failed", "failed"]


def test_a_table_of_status_codes_tells_throttled_and_cancelled_requests(read):
    table = "arrival_ns,prompt,output,status\n" + "".join(
        f"{k},10,{output},{code}\n"
        for k, (output, code) in enumerate(((5, 200), (0, 429), (3, 499), (0, 500), (0, 503)))
    )
    trace = read(table.encode())
    assert trace.measurements["status"].tolist() == ["ok", "throttled", "cancelled", "failed", "failed"]
    assert rows(trace.workload, "arrival_ns", "output") == [(0, 5), (2, 3)]


def test_a_file_of_no_known_format_says_what_to_do(read):
    for content in (b"a,b\n1,2\n", b"hello", b'{"x": 1}', b"[1, 2]", b"\x00\x01\x02"):
        with pytest.raises(BadInput, match=r": no known trace format; name one with --format, or its columns$"):
            read(content)
    with pytest.raises(BadInput, match=r": the file is empty; expected a trace$"):
        read(b"\n\n")


def test_the_list_of_requests_says_its_tenant_and_its_format_may_be_misspelt(read, tmp_path):
    read(mini.SLORA)
    assert [request.tenant for request in traces.read("slora", tmp_path / "trace", "x")] == ["t-2", "t-1"]
    read(mini.VIDUR)
    assert {request.tenant for request in traces.read("vidur", tmp_path / "trace", "x")} == {"x"}
    with pytest.raises(BadInput, match=r"^moncake: unknown trace format; did you mean mooncake\?$"):
        traces.load(tmp_path / "trace", "moncake")


def test_measurements_are_typed(read):
    measured = read(mini.TRACEV2).measurements
    assert {
        name: str(kind) for name, kind in measured.dtypes.items() if name in ("status", "sent_ns", "output", "ttft_s")
    } == {
        "status": "string",
        "sent_ns": "Int64",
        "output": "Int64",
        "ttft_s": "float64",
    }
    workload = read(mini.LLMSERVINGSIM).workload
    assert str(workload["arrival_ns"].dtype) == str(workload["prompt"].dtype) == "int64"
    assert np.dtype(object) == workload["tokens"].dtype
