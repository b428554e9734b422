"""The Azure reader: the published figures, times to the nanosecond, files that are not such a trace."""

import gzip
import statistics
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traces
from traces import BadInput

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
ROW = "2023-11-16 18:15:46.6805900,374,44"


@pytest.fixture
def trace(tmp_path):
    """Writes a file from bytes or from lines of text, and returns its path."""

    def write(*lines, name="trace.csv"):
        path = tmp_path / name
        content = lines[0] if isinstance(lines[0], bytes) else "\r\n".join(lines).encode()
        path.write_bytes(content)
        return path

    return write


def complaint(path):
    with pytest.raises(BadInput) as caught:
        traces.read("azure", path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))
    return str(caught.value).removeprefix(str(path))


@pytest.mark.parametrize(
    ("name", "rows", "span_s", "rate", "cv", "prompts", "outputs"),
    [
        ("conv", 19_366, 3_502, 5.53, 1.09, (1155, 1020, 4142, 14050), (211, 129, 601, 1000)),
        ("code", 8_819, 3_436, 2.57, 13.15, (2048, 1469, 7436, 7437), (28, 13, 251, 1899)),
    ],
)
def test_the_real_traces_have_their_published_figures(data, name, rows, span_s, rate, cv, prompts, outputs):
    requests = traces.read("azure", data / "traces" / "azure_2023" / f"AzureLLMInferenceTrace_{name}.csv.gz")
    arrivals = np.array([request.arrival for request in requests])
    gaps = np.diff(arrivals)
    assert len(requests) == rows
    assert arrivals[0] == 0
    assert round(arrivals[-1] / 1e9) == span_s
    assert round(rows / (arrivals[-1] / 1e9), 2) == rate
    assert round(float(gaps.std() / gaps.mean()), 2) == cv
    for counts, figures in (
        ([request.prompt for request in requests], prompts),
        ([request.output for request in requests], outputs),
    ):
        assert round(statistics.mean(counts)) == figures[0]
        assert round(statistics.median(counts)) == figures[1]
        assert round(float(np.percentile(counts, 99))) == figures[2]
        assert max(counts) == figures[3]


def test_the_real_trace_is_read_in_order(data):
    requests = traces.read("azure", data / "traces" / "azure_2023" / "AzureLLMInferenceTrace_conv.csv.gz")
    assert [request.id for request in requests] == [str(number) for number in range(1, 19_367)]
    second = requests[1]
    assert (second.arrival, second.prompt, second.output) == (50_995_169_000 - 46_680_590_000, 396, 109)


def test_seven_digit_times_are_exact_to_the_nanosecond(trace):
    path = trace(
        HEADER,
        "2023-11-16 18:15:46.6805900,374,44",
        "2023-11-16 18:15:46.6805901,1,1",
        "2023-11-16 18:15:46.680590123,1,1",
        "2023-11-16 18:15:47,1,1",
        "2023-11-17 18:15:46.6805900,1,1",
        "2024-03-01 18:15:46.6805900,1,1",
    )
    day = 86_400 * 10**9
    days_to_the_first_of_march_2024 = 14 + 31 + 31 + 29 + 1
    assert [request.arrival for request in traces.read("azure", path)] == [
        0,
        100,
        123,
        319_410_000,
        day,
        days_to_the_first_of_march_2024 * day,
    ]


@given(st.lists(st.integers(0, 20 * 366 * 86_400 * 10**7), min_size=1, max_size=20).map(sorted))
def test_any_times_are_exact(ticks):
    """Ticks of 100 ns after a fixed second, written as the trace writes them; datetime counts the seconds."""
    start = datetime(2010, 1, 1)
    lines = [f"{start + timedelta(seconds=tick // 10**7):%Y-%m-%d %H:%M:%S}.{tick % 10**7:07d},1,1" for tick in ticks]
    with NamedTemporaryFile() as file:
        file.write("\r\n".join([HEADER, *lines]).encode())
        file.flush()
        got = [request.arrival for request in traces.read("azure", Path(file.name))]
    assert got == [100 * (tick - ticks[0]) for tick in ticks]


def test_rows_out_of_order_are_sorted_and_ties_keep_the_file_order(trace):
    path = trace(
        HEADER,
        "2023-11-16 00:00:02.0000000,1,1",
        "2023-11-16 00:00:01.0000000,2,2",
        "2023-11-16 00:00:02.0000000,3,3",
        "2023-11-16 00:00:00.0000000,4,4",
    )
    got = [(request.id, request.arrival, request.prompt) for request in traces.read("azure", path)]
    assert got == [("4", 0, 4), ("2", 10**9, 2), ("1", 2 * 10**9, 1), ("3", 2 * 10**9, 3)]


def test_plain_gzipped_marked_and_reordered_files_read_the_same(trace):
    text = f"{HEADER}\r\n{ROW}".encode()
    expected = traces.read("azure", trace(text))
    assert [(request.prompt, request.output, request.tenant) for request in expected] == [(374, 44, "default")]
    assert traces.read("azure", trace(gzip.compress(text), name="gzipped_without_saying.csv")) == expected
    assert traces.read("azure", trace(text, name="plain_in_spite_of_its.gz")) == expected
    assert traces.read("azure", trace(b"\xef\xbb\xbf" + text)) == expected
    assert traces.read("azure", trace(text + b"\r\n")) == expected
    assert traces.read("azure", trace(text.replace(b"\r\n", b"\n"))) == expected
    reordered = trace("GeneratedTokens,TIMESTAMP,ContextTokens", "44,2023-11-16 18:15:46.6805900,374")
    assert traces.read("azure", reordered) == expected


def test_requests_carry_the_tenant_they_are_read_for(trace):
    assert [request.tenant for request in traces.read("azure", trace(HEADER, ROW), "code")] == ["code"]


@pytest.mark.parametrize(
    "bad",
    [
        "n/a",
        "",
        "12.5",
        "9223372036854775808",
        "NaN",
        "nan",
        "-3",
        "1e3",
        "0x10",
        "+5",
        " 7",
        "7 ",
        "2147483649",
        "9" * 40,
        "٣",
    ],
)
@pytest.mark.parametrize("column", ["ContextTokens", "GeneratedTokens"])
def test_what_is_no_token_count_is_named_with_its_row_and_column(trace, column, bad):
    cells = {"ContextTokens": "5", "GeneratedTokens": "5", column: bad}
    path = trace(HEADER, ROW, f"2023-11-16 18:15:47.0,{cells['ContextTokens']},{cells['GeneratedTokens']}", ROW)
    assert complaint(path) == (
        f", row 3: {column} is '{bad}'; expected a whole number of tokens from 0 to 2147483648"
    )


def test_the_largest_token_count_is_read(trace):
    assert traces.read("azure", trace(HEADER, "2023-11-16 18:15:47.0,2147483648,1"))[0].prompt == 2**31


@pytest.mark.parametrize(
    "bad",
    [
        "yesterday",
        "",
        "2023-11-16",
        "2023-02-29 00:00:00.0000000",
        "2023-11-16 24:00:00.0000000",
        "2023-11-16 18:15:46.",
        "2023-11-16 18:15:46+1",
        "20231116T181546",
        "1700158546",
        "9999-01-01 00:00:00",
    ],
)
def test_what_is_no_time_is_named_with_its_row(trace, bad):
    path = trace(HEADER, ROW, f"{bad},5,5", ROW)
    assert complaint(path) == (f", row 3: TIMESTAMP is '{bad}'; expected a time such as 2023-11-16 18:15:46.6805900")


def test_the_first_bad_row_is_the_one_named_whatever_its_column(trace):
    path = trace(HEADER, ROW, "2023-11-16 18:15:47.0,5,none", "never,5,5", "2023-11-16 18:15:47.0,x,5")
    assert complaint(path).startswith(", row 3: GeneratedTokens is 'none'")


def test_a_long_bad_value_is_cut_and_a_line_break_shown(trace):
    assert len(complaint(trace(HEADER, f"2023-11-16 18:15:47.0,{'x' * 5000},5"))) < 200
    assert r"'a\tb'" in complaint(trace(HEADER, "2023-11-16 18:15:47.0,a\tb,5"))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            (HEADER, ROW, "2023-11-16 18:15:47.0,5"),
            ", row 3: 2 columns in '2023-11-16 18:15:47.0,5'; expected 3",
        ),
        (
            (HEADER, "2023-11-16 18:15:47.0,5,5,5"),
            ", row 2: 4 columns in '2023-11-16 18:15:47.0,5,5,5'; expected 3",
        ),
        (
            (HEADER, ROW, "", ROW),
            ", row 3: TIMESTAMP is ''; expected a time such as 2023-11-16 18:15:46.6805900",
        ),
        ((HEADER, f'{ROW}"', '"2023'), ", row 3: 1 columns in '\"2023'; expected 3"),
        ((HEADER,), ": no request after the header; expected a row per request"),
        (
            ("TIMESTAMP,ContextTokens", "x,1"),
            ", row 1: column GeneratedTokens is missing; found 'TIMESTAMP,ContextTokens'",
        ),
        ((ROW, ROW), f", row 1: column TIMESTAMP is missing; found '{ROW}'"),
        (
            ("TIMESTAMP,Images,ContextTokens,GeneratedTokens", "x,1,1,1"),
            f", row 1: unknown column 'Images'; expected {HEADER} and perhaps NumImages",
        ),
        ((HEADER + ",TIMESTAMP", ROW + ",x"), f", row 1: a column is repeated in '{HEADER},TIMESTAMP'"),
    ],
)
def test_a_table_of_another_shape_is_refused(trace, lines, expected):
    assert complaint(trace(*lines)) == expected


@pytest.mark.parametrize("content", [b"", b"\r\n\r\n", gzip.compress(b"", mtime=0), b"\xef\xbb\xbf"])
def test_an_empty_file_is_said_to_be_empty(trace, content):
    expected = f": the file is empty; expected the header {HEADER} and a row per request"
    assert complaint(trace(content)) == expected


def test_bytes_that_are_no_text_are_named_with_their_row(trace):
    path = trace(f"{HEADER}\r\n{ROW}\r\n2023".encode() + b"\xff,1,1")
    assert complaint(path) == ", row 3: byte 0xff is not UTF-8 text"


def test_a_truncated_and_a_damaged_gzip_are_refused(trace):
    whole = gzip.compress("\r\n".join([HEADER, *[ROW] * 1000]).encode())
    assert complaint(trace(whole[:-20])) == ": the gzip data end early; the file is truncated"
    damaged = bytearray(whole)
    damaged[-6] ^= 0xFF
    assert complaint(trace(bytes(damaged))).startswith(": the gzip data are damaged: ")


def test_a_row_without_end_is_refused(trace):
    assert complaint(trace(HEADER, ROW, "1" * 3_000_000)).startswith(", row 3: 1 columns in '111")


def test_a_file_that_cannot_be_opened_is_refused(tmp_path):
    assert complaint(tmp_path / ("n" * 5000)) == ": cannot be read: File name too long"


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    assert complaint(tmp_path / "nowhere.csv") == ": no such file"
    assert complaint(tmp_path) == ": is a directory; expected a file"


def test_an_unknown_format_names_the_nearest_known(trace):
    with pytest.raises(BadInput, match=r"^azur: unknown trace format; did you mean azure\?$"):
        traces.read("azur", trace(HEADER, ROW))
