"""Numbers of a file that cannot be: zeros that were not measured, NaN among aggregates, planned starts and gaps."""

import json

import numpy as np
import pytest
import trace_miniatures as mini

import traces
from traces import BadInput
from traces.reading.plausibility import far_off
from traces.reading.report import Report

SECOND = 10**9
YEAR = 365 * 24 * 3600
WHOLE = {
    "input_lens": [10, 20],
    "output_lens": [3, 1],
    "itls": [[], []],
    "start_times": [1.0, 2.0],
    "errors": ["", ""],
}


@pytest.fixture
def read(tmp_path):
    """Reads bytes as a trace."""

    def load(content, kind=None, **options):
        path = tmp_path / "trace"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return traces.load(path, kind, **options)

    return load


def bench(**changes):
    return json.loads(mini.VLLM) | WHOLE | changes


def test_a_client_that_does_not_stream_has_measured_no_time_of_its_own(read):
    trace = read(bench(ttfts=[0.0, 0.0]))
    assert trace.measurements[["ttft_s", "tpot_s", "e2e_s"]].isna().all(axis=None)
    assert trace.report.changed == {"ttfts is 0 in every row: not measured": 2}
    assert len(trace.workload) == 2


def test_answers_that_came_whole_have_an_end_and_no_first_token(read):
    trace = read(bench(ttfts=[0.5, 0.25]))
    long, short = trace.measurements.to_dict("records")
    assert (long["e2e_s"], short["e2e_s"], short["ttft_s"]) == (0.5, 0.25, 0.25)
    assert np.isnan(long["ttft_s"])
    assert np.isnan(long["tpot_s"])
    assert trace.report.changed == {"tpot_s is 0 in every row: answers were not streamed, without TTFT and TPOT": 1}


def test_one_latency_of_zero_among_others_is_measured(read):
    assert read(bench(ttfts=[0.5, 0.0], itls=[[0.1, 0.1], []])).measurements["ttft_s"].tolist()[1] == 0.0


@pytest.mark.parametrize(("name", "other"), [("ttft_s", "e2e_s"), ("e2e_s", "ttft_s")])
def test_a_column_of_zeros_is_missing_in_any_format_and_run(read, name, other):
    table = f"run,prompt,output,{name},{other}\na,5,1,0,1\na,6,1,0.0,1\nb,5,1,2,1\n".encode()
    trace = read(table, "columns")
    assert np.array_equal(trace.measurements[name], [np.nan, np.nan, 2], equal_nan=True)
    assert trace.measurements[other].tolist() == [1, 1, 1]
    assert trace.report.changed == {f"{name} is 0 in every row: not measured": 2}


def test_gaps_of_zero_in_every_row_are_none(read):
    trace = read(bench(ttfts=[0.5, 0.25], itls=[[0.0, 0.0], []]))
    assert [len(gaps) for gaps in trace.measurements["itl_s"]] == [0, 0]


@pytest.mark.parametrize("odd", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("content", [mini.VLLM, mini.SGLANG, mini.SLORA, mini.GUIDELLM], ids=["v", "s", "l", "g"])
def test_what_is_no_number_among_the_aggregates_does_not_refuse_the_rows(read, content, odd):
    plain = read(content)
    found = read(content.replace(b"{", b'{"mean_e2el_ms": %s, ' % odd.encode(), 1))
    assert found.measurements.equals(plain.measurements)


def test_what_is_no_number_in_a_row_is_refused(read):
    with pytest.raises(BadInput, match="row 2: ttfts is nan; expected a number of at least 0"):
        read(bench(ttfts=[0.5, float("nan")]))
    with pytest.raises(BadInput, match=r"row 1: itls is .*inf.*; expected a list of seconds"):
        read(bench(ttfts=[0.5, 0.5], itls=[[float("inf")], []]))


def planned(*starts):
    """A GuideLLM report whose requests start a second apart, with these planned starts."""
    requests = [
        {
            "request_id": str(place),
            "prompt_tokens": 5,
            "output_tokens": 2,
            "info": {"timings": {"targeted_start": start, "request_start": 1.7e9 + place, "request_end": 1.7e9 + 99}},
        }
        for place, start in enumerate(starts)
    ]
    benchmark = {"requests": {"successful": requests, "incomplete": [], "errored": []}}
    return {"metadata": {"guidellm_version": "0.8.1"}, "benchmarks": [benchmark]}


def test_a_planned_start_on_another_clock_gives_way_to_the_real_one(read):
    trace = read(planned(-0.6515369578941533, 8.4, 1.7e9 + 1.5, 1.7e9 + 2.75))
    arrivals = dict(zip(trace.workload["id"], trace.workload["arrival_ns"], strict=True))
    assert arrivals == {"0": 0, "1": SECOND, "2": 1.5 * SECOND, "3": 2.75 * SECOND}
    assert trace.report.changed == {"targeted_start is on another clock than request_start, which is used": 2}
    assert not trace.report.warnings


def test_a_request_that_was_sent_late_keeps_its_planned_start(read):
    late = planned(*(1.7e9 - 80 + place for place in range(4)))
    assert read(late).workload["arrival_ns"].tolist() == [0, SECOND, 2 * SECOND, 3 * SECOND]
    assert not read(late).report.changed


def test_a_plan_is_not_judged_without_a_real_start():
    nobody = np.zeros(0, np.int64)
    assert not far_off(np.array([-5, 10**18]), nobody, nobody).any()


def test_a_real_report_of_guidellm_is_twenty_seconds_long(data):
    folder = data / "engine_vllm_cpu"
    if not folder.is_dir():
        pytest.skip("no reports of a live engine here")
    trace = traces.load(folder / "guidellm_0.8.1.json.gz")
    assert len(trace.workload) == 120
    assert 18 * SECOND < trace.workload["arrival_ns"].max() < 22 * SECOND
    assert trace.report.changed["targeted_start is on another clock than request_start, which is used"] == 40


def arrivals(*seconds):
    return b"arrival_ns,prompt,output\n" + b"".join(b"%d,5,5\n" % int(each * SECOND) for each in seconds)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ((0, 1, 2, 3, 4 + 1000), "a gap of 1,001 s, 1,001 times the median one, after 4 of 5 requests"),
        ((0, 57 * YEAR), "requests over 57.0 years, the longest gap 57.0 years, after 1 of 2 requests"),
        (tuple(year * YEAR / 2 for year in range(9)), "requests over 4.0 years, the longest gap 0.5 years"),
    ],
)
def test_times_that_cannot_be_of_one_clock_are_a_warning(read, seconds, expected):
    trace = read(arrivals(*seconds), "columns")
    (warning,) = trace.report.warnings
    assert warning.startswith(expected)
    assert trace.report.lines()[-1] == f"warning: {warning}"


@pytest.mark.parametrize("seconds", [(0,), (0, 0, 0, 0), (0, 1, 2, 3, 4 + 900), (0, 0, 1, 500)])
def test_a_night_or_a_burst_is_no_warning(read, seconds):
    assert not read(arrivals(*seconds), "columns").report.warnings


def test_the_longest_pause_of_a_real_service_is_no_warning(data):
    assert not traces.load(data / "traces/azure_2023/AzureLLMInferenceTrace_code.csv.gz").report.warnings


def test_a_warning_names_its_run_and_is_kept_in_our_own_file(read, tmp_path):
    table = b"run,arrival_ns,prompt,output\na,0,5,5\na,1,5,5\nb,0,5,5\nb,%d,5,5\n" % (2 * YEAR * SECOND)
    trace = read(table, "columns")
    assert [warning[:32] for warning in trace.report.warnings] == ["run b: requests over 2.0 years, "]
    traces.writers.write(trace, tmp_path / "own.parquet")
    assert traces.load(tmp_path / "own.parquet").report.warnings == trace.report.warnings


def test_warnings_of_parts_are_joined_once():
    whole, part = Report("f"), Report("f")
    part.warn("odd")
    whole.add(part)
    whole.add(part)
    assert whole.warnings == ["odd"]
