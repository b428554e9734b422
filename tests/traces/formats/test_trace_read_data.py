"""Every public file reads as what it is, with the row counts, spans and percentiles that its description gives."""

import numpy as np
import pytest

import traces
from traces import BadInput

LMBENCH = "gt_h100_lmbench_llama70b/lmbench_h100_llama70b_2replicas.csv.gz"
TENANTS = "gt_h100_vllm023_tenants/"
PERF = "gt_h100_inference_perf/20260"
SERVED = "gt_llmservingsim_vllm019/"
SLORA = "gt_a10g_slora_vtc/"
SAMPLES = "format_samples/"

FILES = {
    "azure_2023/AzureLLMInferenceTrace_code.csv.gz": ("azure", "workload", 8819),
    "azure_2023/AzureLLMInferenceTrace_conv.csv.gz": ("azure", "workload", 19366),
    "burstgpt/burstgpt_1_first400.csv": ("burstgpt", "workload", 400),
    "burstgpt/burstgpt_3_first118.csv": ("burstgpt", "workload", 118),
    "etalon/bwb_stats_llama2_tokenizer_filtered_v2.csv.gz": ("lengths", "lengths", 33768),
    "etalon/sharegpt_8k_filtered_stats_llama2_tokenizer.csv.gz": ("lengths", "lengths", 30731),
    "vidur/arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv.gz": ("lengths", "lengths", 28257),
    "vidur/splitwise_code.csv.gz": ("vidur", "workload", 8819),
    "vidur/splitwise_conv.csv.gz": ("vidur", "workload", 19366),
    "mooncake/conversation_trace.jsonl.gz": ("mooncake", "workload", 12031),
    "mooncake/synthetic_trace.jsonl.gz": ("mooncake", "workload", 3993),
    SAMPLES + "aiperf_qwen_concurrency1_profile_export.jsonl": ("aiperf", "workload", 10),
    SAMPLES + "aiperf_qwen_concurrency2_profile_export.jsonl": ("aiperf", "workload", 10),
    SAMPLES + "litellm_agentic_log_no_text.jsonl": ("litellm", "workload", 72),
    SAMPLES + "llmperf_individual_responses_vllm_yi34b_4xa10g_c1.json": ("llmperf", "lengths", 80),
    SAMPLES + "llmperf_individual_responses_vllm_yi34b_4xa10g_c16.json": ("llmperf", "lengths", 112),
    SAMPLES + "llmperf_individual_responses_vllm_yi34b_4xa10g_c64.json": ("llmperf", "lengths", 128),
    SAMPLES + "sglang_bench_serving_h200_llama33_70b_online.jsonl": ("sglang-bench", "measurements", 0),
    SLORA + "on_off_overload_FCFS.jsonl.gz": ("slora", "workload", 2400),
    SLORA + "on_off_overload_VTC.jsonl.gz": ("slora", "workload", 2400),
    SLORA + "real_FCFS.jsonl.gz": ("slora", "workload", 1500),
    SLORA + "real_LCF.jsonl.gz": ("slora", "workload", 1500),
    SLORA + "real_LShare_rpm20.jsonl.gz": ("slora", "workload", 1500),
    SLORA + "real_LShare_rpm5.jsonl.gz": ("slora", "workload", 1500),
    SLORA + "real_VTC.jsonl.gz": ("slora", "workload", 1500),
    SLORA + "real_VTC_oracle.jsonl.gz": ("slora", "workload", 1500),
    PERF + "217-155451-llama-2-7b-tp1-codegen.csv.gz": ("inference-perf", "workload", 9000),
    PERF + "217-170634-llama-2-7b-tp1-reasoning.csv.gz": ("inference-perf", "workload", 4800),
    PERF + "217-202857-llama-2-70b-tp4-general.csv.gz": ("inference-perf", "workload", 16800),
    PERF + "217-203421-llama-2-70b-hf-tp4-codegen.csv.gz": ("inference-perf", "workload", 9000),
    PERF + "217-231439-llama-2-7b-tp1-general.csv.gz": ("inference-perf", "workload", 16800),
    PERF + "218-065057-llama-2-70b-hf-tp4-reasoning.csv.gz": ("inference-perf", "workload", 4800),
    PERF + "218-084319-llama-2-70b-tp4-roleplay.csv.gz": ("inference-perf", "workload", 7200),
    PERF + "218-120914-mixtral-8x7b-v0-1-tp2-codegen.csv.gz": ("inference-perf", "workload", 9000),
    PERF + "218-130541-mixtral-8x7b-v0-1-tp2-general.csv.gz": ("inference-perf", "workload", 16800),
    PERF + "218-135247-mixtral-8x7b-v0-1-tp2-reasoning.csv.gz": ("inference-perf", "workload", 4800),
    PERF + "218-141024-mixtral-8x7b-v0-1-tp2-roleplay.csv.gz": ("inference-perf", "workload", 7200),
    LMBENCH: ("lmbench", "workload", 28174),
    TENANTS + "sweep_rate__agg_2rps__vanilla.trace.csv.gz": ("tracev2", "workload", 1212),
    TENANTS + "sweep_rate__agg_2rps__vanilla.trace.itl.csv.gz": ("tracev2-chunks", "measurements", 157560),
    TENANTS + "sweep_rate__agg_4rps__vanilla.trace.csv.gz": ("tracev2", "workload", 2363),
    TENANTS + "sweep_rate__agg_8rps__patched.trace.csv.gz": ("tracev2", "workload", 4830),
    TENANTS + "sweep_rate__agg_8rps__vanilla.trace.csv.gz": ("tracev2", "workload", 4830),
    TENANTS + "sweep_tenants__1T_agg_2rps__vanilla.trace.csv.gz": ("tracev2", "workload", 1181),
    TENANTS + "sweep_tenants__2T_agg_4rps__vanilla.trace.csv.gz": ("tracev2", "workload", 2363),
    TENANTS + "sweep_tenants__4T_agg_8rps__vanilla.trace.csv.gz": ("tracev2", "workload", 4817),
    TENANTS + "sweep_tenants__5T_agg_10rps__vanilla.trace.csv.gz": ("tracev2", "workload", 6016),
    TENANTS + "w5_sweep__agg6.trace.csv.gz": ("tracev2", "workload", 3587),
    TENANTS + "w5_sweep__agg12.trace.csv.gz": ("tracev2", "workload", 7207),
    TENANTS + "w5_sweep__agg24.trace.csv.gz": ("tracev2", "workload", 14449),
    TENANTS + "w5_sweep__agg30.trace.csv.gz": ("tracev2", "workload", 17959),
    TENANTS + "w7_sweep__agg6.trace.csv.gz": ("tracev2", "workload", 3623),
    TENANTS + "w7_sweep__agg12.trace.csv.gz": ("tracev2", "workload", 7213),
    TENANTS + "w7_sweep__agg24.trace.csv.gz": ("tracev2", "workload", 14355),
    SERVED + "RTX4090__Llama-3.1-8B/requests.jsonl": ("llmservingsim-log", "workload", 300),
    SERVED + "RTXPRO6000__Llama-3.1-8B/requests.jsonl": ("llmservingsim-log", "workload", 300),
    SERVED + "RTXPRO6000__Qwen3-30B-A3B-Instruct-2507/requests.jsonl": ("llmservingsim-log", "workload", 300),
    SERVED + "example_trace.jsonl": ("llmservingsim", "workload", 10),
    SERVED + "workload_sharegpt-llama-3.1-8b-300-sps10.jsonl.gz": ("llmservingsim", "workload", 300),
    "servegen/deepseek-r1_client_rates.csv.gz": ("servegen-rates", "rates", 10512),
    "servegen/m-small_client_rates.csv.gz": ("servegen-rates", "rates", 86688),
    "servegen/mm-image_client_rates.csv.gz": ("servegen-rates", "rates", 5040),
    "servegen/deepseek-r1_length_histograms.jsonl.gz": ("servegen-lengths", "lengths", 73),
    "servegen/m-small_length_histograms.jsonl.gz": ("servegen-lengths", "lengths", 4),
    "servegen/mm-image_length_histograms.jsonl.gz": ("servegen-lengths", "lengths", 35),
    "gt_vllm_cpu/small2.json.gz": ("engine-log", "workload", 300),
    "gt_vllm_cpu/small_pcmem.json.gz": ("engine-log", "workload", 100),
}
NOT_TRACES = {
    "README.md",
    "SHA256SUMS",
    PERF.rpartition("/")[0] + "/experiments.json",
    TENANTS + "server_config.json",
    TENANTS + "summaries.json",
    "gt_vllm_cpu/README.md",
    "gt_vllm_cpu/small2.steps.jsonl.gz",
    "gt_vllm_cpu/small_pcmem.steps.jsonl.gz",
    *(
        f"{SERVED}{run}/{name}"
        for run in ("RTX4090__Llama-3.1-8B", "RTXPRO6000__Llama-3.1-8B", "RTXPRO6000__Qwen3-30B-A3B-Instruct-2507")
        for name in ("meta.json", "timeseries.csv")
    ),
}


@pytest.fixture(scope="module")
def folder(data):
    return data / "traces"


def test_every_file_of_the_folder_is_a_trace_or_known_to_be_none(folder):
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == FILES.keys() | NOT_TRACES


@pytest.mark.parametrize("name", FILES)
def test_a_file_reads_as_what_it_is(folder, name):
    trace = traces.load(folder / name)
    assert (trace.report.format, trace.kind, trace.report.rows) == FILES[name]
    if trace.workload is not None:
        dropped = sum(trace.report.dropped.values())
        assert len(trace.workload) == trace.report.kept == trace.report.rows - dropped
        assert (trace.workload["prompt"] >= 1).all()
        assert trace.workload["id"].is_unique or trace.runs
    if trace.kind == "workload":
        assert trace.workload["arrival_ns"].min() == 0


@pytest.mark.parametrize("name", sorted(NOT_TRACES - {"README.md", "SHA256SUMS"}))
def test_configurations_and_time_series_are_no_traces(folder, name):
    with pytest.raises(BadInput, match="no known trace format"):
        traces.load(folder / name)


def figures(counts):
    return (
        round(counts.mean()),
        round(float(np.percentile(counts, 50))),
        round(float(np.percentile(counts, 99))),
        counts.max(),
    )


def cv(arrivals):
    gaps = np.diff(arrivals)
    return round(float(gaps.std() / gaps.mean()), 2)


def dispersion(arrivals):
    """Variance over mean of the arrivals in bins of one second."""
    counts = np.bincount(arrivals // 10**9)
    return round(float(counts.var() / counts.mean()), 2)


WORKLOADS = {
    "azure_2023/AzureLLMInferenceTrace_code.csv.gz": (
        (3436, 2.57, 13.15, 13.18),
        (2048, 1469, 7436, 7437),
        (28, 13, 251, 1899),
    ),
    "azure_2023/AzureLLMInferenceTrace_conv.csv.gz": (
        (3502, 5.53, 1.09, 1.39),
        (1155, 1020, 4142, 14050),
        (211, 129, 601, 1000),
    ),
    "mooncake/conversation_trace.jsonl.gz": (
        (3537, 3.40, 3.03, 7.89),
        (12035, 6909, 85400, 126195),
        (343, 350, 1119, 2000),
    ),
    "mooncake/synthetic_trace.jsonl.gz": (
        (1022, 3.91, 1.01, 1.09),
        (15325, 11587, 66456, 191378),
        (149, 69, 768, 893),
    ),
    SLORA + "real_FCFS.jsonl.gz": ((600, 2.50, 1.10, 1.39), (136, 40, 902, 1021), (256, 211, 785, 977)),
    SERVED + "workload_sharegpt-llama-3.1-8b-300-sps10.jsonl.gz": (
        (29, 10.3, 0.94, None),  # its bins depend on the first arrival, 47 ms after the file's zero
        (857, 732, 2765, 3998),
        (653, 632, 784, 1021),
    ),
    SAMPLES + "litellm_agentic_log_no_text.jsonl": (
        # Without the 30 replies from the gateway's cache: counted in the file's rows.
        (542, 0.08, 2.4, None),
        (78597, 92881, 101270, 101759),
        (472, 166, 5139, 6063),
    ),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_has_its_published_figures(folder, name):
    (span, rate, gaps_cv, binned), prompts, outputs = WORKLOADS[name]
    frame = traces.load(folder / name).workload
    arrivals = frame["arrival_ns"].to_numpy()
    assert int(arrivals[-1] / 1e9 + 0.5) == span
    assert len(frame) / (arrivals[-1] / 1e9) == pytest.approx(rate, abs=0.051 if rate > 10 else 0.0051)
    assert cv(arrivals) == gaps_cv
    assert binned is None or dispersion(arrivals) == pytest.approx(binned, abs=0.011)
    assert figures(frame["prompt"]) == prompts
    assert figures(frame["output"]) == outputs


@pytest.mark.parametrize(
    ("name", "prompts", "outputs"),
    [
        (
            "etalon/sharegpt_8k_filtered_stats_llama2_tokenizer.csv.gz",
            (2340, 1730, 7434, 8141),
            (439, 415, 998, 1024),
        ),
        (
            "vidur/arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv.gz",
            (2588, 2730, 3933, 4054),
            (291, 167, 3271, 4056),
        ),
        ("etalon/bwb_stats_llama2_tokenizer_filtered_v2.csv.gz", (1067, 1037, 1800, 3504), (1613, 1601, 2533, 2858)),
    ],
)
def test_lengths_have_their_published_figures_and_cannot_be_replayed(folder, name, prompts, outputs):
    trace = traces.load(folder / name)
    assert figures(trace.workload["prompt"]) == prompts
    assert figures(trace.workload["output"]) == outputs
    with pytest.raises(BadInput, match=r"no arrival times in this file \(lengths\); it cannot be replayed"):
        trace.requests()


@pytest.mark.parametrize(
    ("name", "span", "failed", "prompts", "outputs"),
    [
        ("burstgpt_1_first400.csv", 37_269, 17, (520, 314, 1958, 2126), (277, 230, 1421, 2019)),
        ("burstgpt_3_first118.csv", 33_676, 1, (1066, 336, 13012, 25085), (193, 102, 858, 879)),
    ],
)
def test_burstgpt_counts_failures_as_measurements(folder, name, span, failed, prompts, outputs):
    """The published figures count the failed rows, with lengths of 0."""
    trace = traces.load(folder / "burstgpt" / name)
    measured = trace.measurements
    assert measured["arrival_ns"].max() / 1e9 == pytest.approx(span, abs=0.5)
    assert figures(measured["prompt"].fillna(0).to_numpy(np.int64)) == prompts
    assert figures(measured["output"].fillna(0).to_numpy(np.int64)) == outputs
    assert trace.report.dropped == {"Response tokens is 0: the request failed": failed}
    assert (measured["status"] == "failed").sum() == failed


def test_the_two_azure_files_share_a_clock_with_vidurs_copies(folder):
    for part in ("code", "conv"):
        azure = traces.load(folder / f"azure_2023/AzureLLMInferenceTrace_{part}.csv.gz").workload
        vidur = traces.load(folder / f"vidur/splitwise_{part}.csv.gz").workload
        assert azure["prompt"].tolist() == vidur["prompt"].tolist()
        assert azure["output"].tolist() == vidur["output"].tolist()
        assert (azure["arrival_ns"] - vidur["arrival_ns"]).abs().max() <= 1000


def test_mooncake_arrives_in_ticks_and_every_prompt_is_covered_by_blocks(folder):
    trace = traces.load(folder / "mooncake/conversation_trace.jsonl.gz")
    frame = trace.workload
    assert trace.block_size == 512
    assert trace.tick_ns == 3_000_000_000
    assert frame["arrival_ns"].nunique() == 1180
    assert any("1,180 instants, about 3 s apart" in note for note in trace.report.notes)
    assert [len(blocks) for blocks in frame["blocks"]] == (-(-frame["prompt"] // 512)).tolist()
    assert sum(map(len, frame["blocks"])) == 288_500
    assert len({block for blocks in frame["blocks"] for block in blocks}) == 182_790
    assert all(blocks[0] == 0 for blocks in frame["blocks"])
    assert (frame["output"] <= 3).sum() == 334
    request = trace.requests()[0]
    assert (request.prompt, len(request.blocks), request.block_size) == (6758, 14, 512)


@pytest.mark.parametrize(
    ("name", "clients", "days", "mean", "windows", "empty"),
    [
        ("deepseek-r1", 73, 1, 16.0, 10_512, None),
        ("mm-image", 35, 1, 9.5, 5_040, None),
        ("m-small", 43, 14, 1174, 86_688, 46_593),
    ],
)
def test_servegen_windows_have_their_published_rates(folder, name, clients, days, mean, windows, empty):
    trace = traces.load(folder / f"servegen/{name}_client_rates.csv.gz")
    rates = trace.tables["rates"]
    assert rates["client"].nunique() == clients
    assert len(rates) == windows == clients * days * 144
    assert rates["start_s"].max() + 600 == days * 86_400
    assert rates["rate"].sum() / (days * 144) == pytest.approx(mean, abs=0.5 if mean > 100 else 0.05)
    assert empty is None or (rates["process"].isna().sum()) == empty
    assert set(rates["process"].dropna()) == {"Gamma", "Weibull"}
    assert (rates["process"].isna() == (rates["rate"] == 0)).all()
    with pytest.raises(BadInput, match="cannot be replayed"):
        trace.requests()


def test_servegen_histograms_are_distributions(folder):
    table = traces.load(folder / "servegen/deepseek-r1_length_histograms.jsonl.gz").tables["histograms"]
    assert set(table["field"]) == {"input_tokens", "output_tokens", "reason_ratio"}
    assert table["client"].nunique() == 73
    sums = table.groupby(["client", "start_s", "field"])["probability"].sum()
    np.testing.assert_allclose(sums, 1, rtol=1e-6)
    assert table[table["field"] == "output_tokens"]["value"].max() == 32_768
    assert table[table["field"] == "reason_ratio"]["value"].max() <= 1
    assert set(table["start_s"] % 21_600) == {0.0}


def milliseconds(values, *shares):
    return tuple(round(float(np.nanpercentile(values, share)) * 1000) for share in shares)


@pytest.mark.parametrize(
    ("cell", "ttft", "e2e"),
    [
        ("sweep_rate__agg_2rps__vanilla", (65, 107), (1625, 1853)),
        ("sweep_rate__agg_4rps__vanilla", (67, 142), (1785, 2105)),
        ("sweep_rate__agg_8rps__vanilla", (74, 214), (2275, 3019)),
        ("sweep_tenants__1T_agg_2rps__vanilla", (64, 109), (1626, 1808)),
        ("sweep_tenants__5T_agg_10rps__vanilla", (91, 254), (2646, 3878)),
        ("w5_sweep__agg6", (71, 168), (1995, 2468)),
        ("w5_sweep__agg12", (115, 332), (3438, 5148)),
        ("w5_sweep__agg24", (1046, 1213), (14709, 14779)),
        ("w5_sweep__agg30", (1056, 1482), (14638, 15018)),
        ("w7_sweep__agg6", (215, 951), (4042, 8346)),
        ("w7_sweep__agg12", (15761, 18350), (30565, 33393)),
        ("w7_sweep__agg24", (15944, 19001), (30812, 34109)),
    ],
)
def test_tenant_cells_have_their_published_latencies(folder, cell, ttft, e2e):
    measured = traces.load(folder / TENANTS / f"{cell}.trace.csv.gz").measurements
    assert milliseconds(measured["ttft_s"], 50, 99) == pytest.approx(ttft, abs=1, rel=0.002)
    assert milliseconds(measured["e2e_s"], 50, 99) == pytest.approx(e2e, abs=1, rel=0.002)
    assert set(measured["status"]) == {"ok"}


def test_tenant_cells_take_the_servers_prompt_and_sort_by_arrival(folder):
    trace = traces.load(folder / TENANTS / "w7_sweep__agg12.trace.csv.gz")
    reasons = list(trace.report.changed.items())
    assert reasons[-1] == ("arrives before the row above it: rows sorted by arrival, ties in the file's order", 2510)
    assert trace.workload["arrival_ns"].is_monotonic_increasing
    assert trace.workload["id"].astype(int).is_monotonic_increasing
    assert set(trace.workload["tenant"]) == {"tenantA", "tenantB"}
    asked_for_1024 = traces.load(folder / TENANTS / "w5_sweep__agg24.trace.csv.gz").workload["prompt"]
    assert (asked_for_1024.min(), asked_for_1024.max()) == (929, 1047)
    behind = traces.load(folder / TENANTS / "w7_sweep__agg24.trace.csv.gz").measurements
    assert (
        (behind["sent_ns"] - behind["arrival_ns"]).max() - (behind["sent_ns"] - behind["arrival_ns"]).min()
    ) / 1e9 == (pytest.approx(1101, abs=1))


def test_stream_chunks_have_their_published_gaps(folder):
    table = traces.load(folder / TENANTS / "sweep_rate__agg_2rps__vanilla.trace.itl.csv.gz").tables["chunks"]
    gaps = table.groupby("id")["at_ns"].diff().dropna() / 1e6
    assert round(float(gaps.median()), 1) == 11.5
    assert round(float((gaps < 0.1).mean()), 3) == 0.015


@pytest.mark.parametrize(
    ("run", "prompt", "output", "ttft", "e2e", "timeouts"),
    [
        ("217-170634-llama-2-7b-tp1-reasoning", 1081, 1448, (91288, 246507), (156.4, 289.8), 4068),
        ("218-065057-llama-2-70b-hf-tp4-reasoning", 1083, 1448, (109886, 253549), (153.2, 297.2), 1600),
        ("218-084319-llama-2-70b-tp4-roleplay", 787, 251, (53, 96), (4.54, 5.93), 0),
        ("218-135247-mixtral-8x7b-v0-1-tp2-reasoning", 1075, 1448, (97843, 239396), (152.0, 297.9), 3294),
        ("218-141024-mixtral-8x7b-v0-1-tp2-roleplay", 782, 251, (55, 85), (4.65, 5.30), 0),
    ],
)
def test_inference_perf_runs_have_their_published_latencies(folder, run, prompt, output, ttft, e2e, timeouts):
    trace = traces.load(folder / f"{PERF}{run}.csv.gz")
    assert round(trace.workload["prompt"].mean()) == pytest.approx(prompt, abs=1)
    assert set(trace.workload["output"]) == {output}
    measured = trace.measurements
    assert (measured["status"] == "timed_out").sum() == timeouts
    assert milliseconds(measured["ttft_s"], 50, 99) == pytest.approx(ttft, abs=1)
    assert (np.nanpercentile(measured["e2e_s"], 50), np.nanpercentile(measured["e2e_s"], 99)) == pytest.approx(
        e2e, rel=0.002
    )


@pytest.mark.parametrize(
    ("run", "ttft", "wait", "e2e"),
    [
        ("RTX4090__Llama-3.1-8B", (60.1, 137.4), 60.0, (83.4, 153.6)),
        ("RTXPRO6000__Llama-3.1-8B", (9.4, 19.8), 9.3, (29.6, 37.6)),
        ("RTXPRO6000__Qwen3-30B-A3B-Instruct-2507", (0.14, 9.6), 0.0, (31.5, 43.9)),
    ],
)
def test_measured_engines_have_their_published_latencies(folder, run, ttft, wait, e2e):
    """Times of the two clocks are not mixed: a TTFT is seconds, not years."""
    measured = traces.load(folder / SERVED / run / "requests.jsonl").measurements
    assert np.percentile(measured["ttft_s"], [50, 99]) == pytest.approx(ttft, abs=0.051)
    assert np.percentile(measured["e2e_s"], [50, 99]) == pytest.approx(e2e, abs=0.051)
    assert np.percentile(measured["wait_s"], 50) == pytest.approx(wait, abs=0.051)


@pytest.mark.parametrize(
    ("policy", "ttft", "throttled"),
    [
        ("FCFS", (39.1, 136.9), 0),
        ("VTC", (4.9, 211.5), 0),
        ("LCF", (3.2, 230.6), 0),
        ("VTC_oracle", (7.0, 211.2), 0),
        ("LShare_rpm20", None, 342),
        ("LShare_rpm5", None, 919),
    ],
)
def test_fair_schedulers_have_their_published_latencies(folder, policy, ttft, throttled):
    trace = traces.load(folder / SLORA / f"real_{policy}.jsonl.gz")
    measured = trace.measurements
    assert trace.workload["tenant"].nunique() == 27
    assert (measured["status"] == "throttled").sum() == throttled
    assert measured["ttft_s"].isna().sum() == throttled
    if ttft:
        assert np.percentile(measured["ttft_s"], [50, 99]) == pytest.approx(ttft, abs=0.051)


def test_lmbench_runs_are_told_apart_and_their_losses_noted(folder):
    trace = traces.load(folder / LMBENCH)
    assert len(trace.runs) == 70
    lost = [note for note in trace.report.notes if "lost without a row" in note]
    assert any(note.startswith("run llm-d-70b-2replicas-H100/sharegpt_output/4 has 203 rows") for note in lost)
    run = trace.run("llm-d-70b-2replicas-H100-no-router/sharegpt_output/4")
    arrivals = run.workload["arrival_ns"].to_numpy()
    assert len(arrivals) == 252
    assert round(arrivals[-1] / 1e9) == 63
    assert cv(arrivals) <= 0.1
    assert figures(run.workload["prompt"]) == (1148, 1152, 1952, 2019)
    assert run.measurements["session"].isna().all()
    with pytest.raises(BadInput, match="has 70 runs; expected the name of one"):
        trace.requests()
    assert len(trace.requests("llm-d-70b-2replicas-H100-no-router/sharegpt_output/4")) == 252


def test_the_gateway_log_knows_its_caches_and_probes(folder):
    trace = traces.load(folder / SAMPLES / "litellm_agentic_log_no_text.jsonl")
    assert trace.workload["session"].nunique() == 7
    assert "sessions that begin with a probe of 1 output token: 7" in trace.report.notes
    assert set(trace.workload["model"]) == {"claude-haiku-4-5"}


def test_the_instrumented_engine_has_a_run_per_rate(folder):
    trace = traces.load(folder / "gt_vllm_cpu/small2.json.gz")
    assert trace.runs == ["2:60:31", "4:120:32", "8:120:33"]
    requests = trace.requests("2:60:31")
    assert len(requests) == 60
    assert len(requests[0].tokens) == requests[0].prompt == 347
    first = trace.run("2:60:31").measurements.iloc[0]
    assert first["ttft_s"] == pytest.approx(0.233842, abs=1e-6)
    assert len(first["itl_s"]) == first["output"] - 1
