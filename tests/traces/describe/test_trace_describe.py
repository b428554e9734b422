"""What is in a trace: statistics by hand and from theory, and the public files against what is known of them."""

import math

import numpy as np
import pandas as pd
import pytest

from sim.accounting.rates import by_gaps, over_span
from sim.request import SECOND
from traces import load
from traces.describe import statistics
from traces.describe.describe import describe, workload
from traces.describe.prefix_sharing import chained, found, prefix_hits
from traces.reading.tabulate import tabulate
from traces.synthetic import Gamma, Geometric, Pareto, Poisson, Prefixes, Stream, Synthetic, generate
from traces.synthetic.arrivals import ArrivalTimes


def at(*seconds):
    return np.array([int(s * SECOND) for s in seconds], dtype=np.int64)


def test_dispersion_is_variance_over_mean_of_the_counts():
    assert statistics.dispersion(at(0, 0.5, 0.9, 1.5, 3.2)) == pytest.approx(np.var([3, 1, 0]) / (4 / 3))
    assert statistics.dispersion(at(0, 1, 2, 3)) == 0
    assert statistics.dispersion(at(0, 0.5, 1.5)) is None
    assert statistics.dispersion(at(0, 10**9)) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize(("law", "cv"), [(Poisson(50), 1.0), (Gamma(50, 3), 3.0)])
def test_the_rate_and_cv_of_a_renewal_process_are_found(law, cv):
    times = ArrivalTimes(law, 50, Stream(0, "test")).until(2000 * SECOND)
    assert over_span(times) == pytest.approx(50, rel=3.9 * cv / math.sqrt(len(times)))
    assert statistics.gap_cv(times) == pytest.approx(cv, rel=0.05)
    assert statistics.dispersion(times, 10 * SECOND) == pytest.approx(cv**2, rel=3.9 * math.sqrt(2 / 200))


def test_arrivals_without_time_between_them_have_no_rate():
    assert over_span(at(5, 5)) is None
    assert by_gaps(at(5, 5)) is None
    found = statistics.arrivals(at(0, 1, 2))
    assert (found["rate"], found["rate_by_gaps"]) == (1.5, 1.0)
    assert statistics.gap_cv(at(5, 5, 5)) is None
    assert over_span(at()) is None


@pytest.mark.parametrize("alpha", [1.2, 2.5])
def test_the_tail_index_of_a_pareto_law_is_found(alpha):
    values = Pareto(alpha, 10**4).sample(Stream(1, "test"), 100_000)
    assert statistics.tail_index(values) == pytest.approx(alpha, rel=3.9 / math.sqrt(5000))


def test_a_cap_has_no_tail():
    assert statistics.tail_index(np.full(1000, 7)) is None
    assert statistics.tail_index(np.arange(1, 8)) is None


def test_ticks_are_found_exactly_or_roughly():
    assert statistics.tick(at(*(k * 2 for k in range(20)), 43)) == (SECOND, True)
    rng = Stream(0, "test").generator()
    rough = np.repeat(np.arange(100) * 3 * SECOND + rng.integers(-(10**6), 10**6, 100), 5)
    step, exact = statistics.tick(np.sort(rough))
    assert not exact
    assert step == pytest.approx(3 * SECOND, rel=0.01)
    assert statistics.tick(ArrivalTimes(Poisson(5), 5, Stream(0, "x")).until(100 * SECOND)) is None


def test_the_busiest_windows():
    burst = statistics.busiest(at(0, 0.1, 0.2, 0.3, 5.5, 9.5), SECOND)
    assert burst == {
        "most": 4,
        "peak_over_mean": pytest.approx(4 / 0.6),
        "busiest_tenth": pytest.approx(4 / 6),
        "empty": pytest.approx(0.7),
    }


def test_only_leading_blocks_are_found():
    prompts = [((1, 2, 3), 12), ((1, 2, 4), 11), ((5, 2, 3), 12), ((1, 2, 4), 11)]
    assert found(prompts, None) == [0, 2, 0, 3]
    whole = prefix_hits(prompts, 4, capacities=(3,))
    assert (whole["blocks"], whole["unique"]) == (12, 5)
    assert whole["hit_blocks"] == 5 / 12
    assert whole["hit_tokens"] == (8 + 11) / 46


def test_a_small_cache_forgets_the_least_recently_used():
    prompts = [((1, 2), 8), ((3,), 4), ((1, 2), 8), ((3,), 4)]
    assert found(prompts, 3) == [0, 0, 2, 1]
    assert found(prompts, 2) == [0, 0, 0, 0]
    assert found([((1,), 4), ((2,), 4), ((1,), 4), ((3,), 4), ((1,), 4)], 2) == [0, 0, 1, 0, 1]


def test_blocks_of_tokens_stand_for_all_before_them():
    one, other = chained((1, 2, 3, 4, 5), 2), chained((1, 2, 9, 4, 5), 2)
    assert len(one) == 3
    assert [a == b for a, b in zip(one, other, strict=True)] == [True, False, False]


def frame(**columns):
    return pd.DataFrame({"arrival_ns": at(0, 1, 2, 3), "prompt": [5, 6, 7, 8], "output": [1, 1, 1, 1], **columns})


def test_tenants_sessions_and_what_looks_odd():
    told = workload(frame(tenant=["a", "b", "a", "a"], session=["s", None, "s", "t"]), 0, False)
    assert told["tenants"]["count"] == 2
    assert told["tenants"]["largest"][0] == {
        "tenant": "a",
        "requests": 3,
        "share": 0.75,
        "prompt_mean": pytest.approx(20 / 3),
        "output_mean": 1.0,
    }
    assert told["sessions"] == {"count": 2, "turns_mean": 1.5, "turns_max": 2}
    assert "every output is 1 token long" in told["anomalies"]
    assert told["rank_correlation"] is None


def test_ids_that_are_local_to_a_session_are_not_shared_between_sessions():
    two = frame(session=["s", "s", "t", "t"], blocks=[(1, 2), (1, 2), (1, 2), (1, 3)])
    assert workload(two, 4, local=True)["reuse"]["hit_blocks"] == 3 / 8
    assert workload(two, 4, local=False)["reuse"]["hit_blocks"] == 5 / 8


def test_a_workload_made_here_is_described_like_one_that_was_read():
    spec = Synthetic(requests=400, arrivals=Poisson(5), output=Geometric(9), prefixes=Prefixes(1, Geometric(400)))
    trace, lost = tabulate(generate(spec, 0))
    told = describe(trace)
    assert lost == []
    assert told["rows"] == 400
    shared = generate(spec, 0)[0].prompt - 1
    assert told["reuse"]["hit_tokens"] == pytest.approx(shared // 16 * 16 * 399 / (shared + 1) / 400)


def test_the_azure_conversations(data):
    told = describe(load(data / "traces" / "azure_2023" / "AzureLLMInferenceTrace_conv.csv.gz"))
    assert told["rows"] == 19_366
    assert round(told["span_s"]) == 3502
    assert round(told["arrivals"]["rate"], 2) == 5.53
    assert round(told["arrivals"]["cv"], 2) == 1.09
    assert round(told["arrivals"]["dispersion"]["1s"], 2) == 1.39
    assert [round(told["prompt"][key]) for key in ("mean", "p50", "p99", "max")] == [1155, 1020, 4142, 14050]
    assert [round(told["output"][key]) for key in ("mean", "p50", "p99", "max")] == [211, 129, 601, 1000]
    assert round(told["prompt"]["log_mean"], 2) == 6.63
    assert round(told["prompt"]["log_std"], 2) == 0.99


def test_the_azure_code_requests_show_their_cap_and_gap(data):
    told = describe(load(data / "traces" / "azure_2023" / "AzureLLMInferenceTrace_code.csv.gz"))
    assert round(told["arrivals"]["cv"], 2) == 13.15
    assert told["arrivals"]["dispersion"]["1s"] == pytest.approx(13.18, abs=0.01)
    assert any(line.startswith("no request for 217 s") for line in told["anomalies"])
    assert any("at or just below the longest, 7,437: a cap" in line for line in told["anomalies"])


@pytest.mark.parametrize(
    ("name", "tokens", "blocks", "unique", "total", "lru"),
    [
        ("conversation", 0.374, 0.366, 182_790, 288_500, [0.044, 0.110, 0.287, 0.355]),
        ("synthetic", 0.651, 0.640, 43_924, 121_877, [0.082, 0.279, 0.571, 0.640]),
    ],
)
def test_what_a_cache_finds_in_mooncake(data, name, tokens, blocks, unique, total, lru):
    told = describe(load(data / "traces" / "mooncake" / f"{name}_trace.jsonl.gz"))["reuse"]
    assert (round(told["hit_tokens"], 3), round(told["hit_blocks"], 3)) == (tokens, blocks)
    assert (told["unique"], told["blocks"]) == (unique, total)
    assert [round(share, 3) for share in told["lru"].values()] == lru


def test_what_a_cache_finds_in_token_ids(data):
    path = data / "traces" / "gt_llmservingsim_vllm019" / "workload_sharegpt-llama-3.1-8b-300-sps10.jsonl.gz"
    told = describe(load(path))["reuse"]
    assert told["block_size"] == 16
    assert round(told["hit_tokens"], 3) == 0.076


def test_every_public_file_can_be_described(data):
    for path in (
        "burstgpt/burstgpt_3_first118.csv",
        "servegen/mm-image_client_rates.csv.gz",
        "etalon/bwb_stats_llama2_tokenizer_filtered_v2.csv.gz",
    ):
        told = describe(load(data / "traces" / path))
        assert told["reading"]["rows"] > 0
        assert told["kind"] in ("workload", "rates", "lengths")
