"""Files that mean harm, or are broken: a clear complaint with file and row, in bounded memory, and no hang."""

import gzip
import json
import os
import tracemalloc

import pyarrow as pa
import pytest
import trace_miniatures as mini

import traces
from traces import BadInput
from traces.reading import source

MEBI = 2**20
HEADER = b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
ROW = b"2023-11-16 18:15:46.6805900,374,44\n"
LINE = b'{"timestamp": 0, "input_length": 8, "output_length": 5, "hash_ids": [0]}\n'


@pytest.fixture
def complaint(tmp_path):
    """The complaint about a file of these bytes, without its path."""

    def read(content, kind=None, **options):
        path = tmp_path / "trace"
        path.write_bytes(content)
        with pytest.raises(BadInput) as caught:
            traces.load(path, kind, **options)
        assert "\n" not in str(caught.value)
        assert str(caught.value).startswith(str(path))
        return str(caught.value).removeprefix(str(path))

    return read


@pytest.mark.parametrize(
    ("name", "content"), [(name, file) for name, files in mini.MINIATURES.items() for file in files]
)
def test_a_truncated_gzip_is_refused_whatever_the_format(complaint, name, content):
    assert complaint(gzip.compress(content)[:-9], name) == ": the gzip data end early; the file is truncated"


def test_a_truncated_zstd_is_refused(complaint):
    packed = pa.compress(HEADER + ROW * 50_000, "zstd", asbytes=True)
    assert complaint(packed[: len(packed) // 2]).startswith(": ")


def test_a_damaged_checksum_is_refused(complaint):
    damaged = bytearray(gzip.compress(HEADER + ROW * 100))
    damaged[-6] ^= 0xFF
    assert complaint(bytes(damaged)).startswith(": the gzip data are damaged: ")


@pytest.mark.parametrize("pack", [gzip.compress, lambda data: pa.compress(data, "zstd", asbytes=True)])
def test_a_bomb_is_refused_by_its_ratio(complaint, pack, monkeypatch):
    monkeypatch.setattr(source, "BOMB_FROM", 4 * MEBI)
    bomb = pack(HEADER + ROW * (8 * MEBI // len(ROW)))
    assert complaint(bomb).endswith("expected at most 200 times")
    assert f": {len(bomb)} bytes unpack to over " in complaint(bomb)
    nothing = pack(LINE + b" " * (16 * MEBI))
    assert complaint(nothing).endswith("expected at most 200 times")


def test_a_file_that_only_packs_well_is_read(tmp_path):
    path = tmp_path / "trace.gz"
    path.write_bytes(gzip.compress(HEADER + ROW * 60_000))
    assert len(traces.load(path).workload) == 60_000


@pytest.mark.parametrize(
    ("name", "content"), [(name, file) for name, files in mini.MINIATURES.items() for file in files]
)
def test_a_byte_order_mark_changes_nothing(tmp_path, name, content):
    path = tmp_path / "trace"
    path.write_bytes(content)
    plain = traces.load(path)
    path.write_bytes(b"\xef\xbb\xbf" + content)
    marked = traces.load(path)
    assert (marked.kind, marked.report.format, marked.report.lines()) == (plain.kind, name, plain.report.lines())


def test_bytes_that_are_no_text_are_named_with_their_row(complaint):
    assert complaint(HEADER + ROW + b"2023-11-16 18:15:46,\xff,1\n") == ", row 3: byte 0xff is not UTF-8 text"
    assert complaint(LINE + LINE[:20] + b"\xc3" + LINE[20:]) == ", row 2: byte 0xc3 is not UTF-8 text"
    assert (
        complaint(b'[{"error_code": "\xff", "ttft_s": 1, "end_to_end_latency_s": 2}]')
        == ": byte 0xff is not UTF-8 text"
    )


def test_a_line_of_a_hundred_megabytes_is_refused_in_bounded_memory(complaint):
    for content, kind, row in (
        (HEADER + ROW + b"1" * 100 * MEBI, None, 3),
        (LINE + b'{"a": "' + b"x" * 100 * MEBI, None, 2),
    ):
        tracemalloc.start()
        assert complaint(content, kind) == f", row {row}: over 32 MiB long; expected a shorter row"
        assert tracemalloc.get_traced_memory()[1] < 150 * MEBI
        tracemalloc.stop()


def test_a_million_columns_are_refused(complaint):
    names = ",".join(f"c{number}" for number in range(1_000_000)).encode()
    assert complaint(names + b"\n", "azure") == ", row 1: over 1 MiB long; expected column names"
    assert complaint(b",".join([b"a"] * 100_000) + b"\n", "azure") == ", row 1: 100000 columns; expected at most 1000"
    assert complaint(names + b"\n").startswith(": no known trace format")


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-Infinity"])
def test_what_json_does_not_know_is_refused(complaint, bad):
    content = LINE + LINE.replace(b'"input_length": 8', b'"input_length": ' + bad.encode())
    assert complaint(content) == f", row 2: not JSON: {bad} is no number"


@pytest.mark.parametrize("bad", ["nan", "inf", "-1", "9223372036854775808", "1e400", "2147483649", "7.5", "0x7"])
def test_a_length_that_is_none_is_named_in_csv(complaint, bad):
    assert complaint(mini.VIDUR + f"9,{bad},5\n".encode()) == (
        f", row 4: num_prefill_tokens is '{bad}'; expected a whole number of tokens from 0 to 2147483648"
    )


def test_a_quote_that_never_ends_is_refused(complaint):
    found = complaint(mini.VIDUR + b'9,"5,5\n' + b"9,5,5\n" * 10)
    assert found.startswith(""", row 4: 2 columns in '9,"5,5""")
    assert found.endswith("...; expected 3")


@pytest.mark.parametrize(
    "bad", ["-1", "9223372036854775808", "1e400", "7.5", "true", '"x"', "[1]", "{}", "1" + "0" * 5000]
)
def test_a_length_that_is_none_is_named_in_json(complaint, bad):
    found = complaint(LINE + LINE.replace(b'"output_length": 5', b'"output_length": ' + bad.encode()))
    assert found.startswith(", row 2: ")
    assert "output_length is " in found or "not JSON: " in found


@pytest.mark.parametrize("bad", ["nan", "-0.5", "inf", "1e400", "soon"])
def test_a_latency_that_is_none_is_named(complaint, bad):
    content = mini.INFERENCE_PERF + f"4,80000,600,0,0,{bad},1.5\n".encode()
    assert complaint(content) == f", row 6: ttft_s is '{bad}'; expected a number of at least 0 or nothing"


def test_ids_that_stand_twice_are_named_with_the_second_row(complaint):
    assert (
        complaint(mini.TRACEV2 + mini.TRACEV2.splitlines(True)[1]) == ", row 5: id is '1' again; expected a new one"
    )
    twice = mini.LLMSERVINGSIM_LOG.replace(b"bench-1", b"bench-0")
    assert complaint(twice) == ", row 2: id is 'bench-0' again; expected a new one"


def test_a_row_with_another_number_of_cells_is_named(complaint):
    assert complaint(mini.VIDUR + b"1,2\n") == ", row 4: 2 columns in '1,2'; expected 3"
    assert complaint(b"x" + mini.VIDUR, "vidur").startswith(
        ", row 1: column arrived_at is missing; found 'xarrived_at"
    )


def test_a_row_far_into_a_file_of_many_pieces_is_named(complaint):
    rows = 300_000
    assert complaint(HEADER + ROW * rows + b"2023-11-16 18:15:46,none,1\n" + ROW).startswith(
        f", row {rows + 2}: ContextTokens is 'none'"
    )
    assert complaint(LINE * 50_000 + b"{}\n").startswith(", row 50001: timestamp is missing")
    assert complaint(HEADER + ROW * rows + b"2023-11-16 18:15:46,1\n").startswith(f", row {rows + 2}: 2 columns")


def test_nesting_without_end_is_refused(complaint):
    deep = b'{"timestamp": ' + b"[" * 200_000
    assert complaint(LINE + deep) == ", row 2: not JSON: nested too deep"
    assert complaint(b'[{"error_code": ' + b"[" * 200_000, "llmperf") == ": not JSON: nested too deep"


@pytest.mark.parametrize("kind", [None, "azure", "mooncake", "vllm-bench", "llmperf"])
def test_pipes_loops_folders_and_absent_files_are_refused(tmp_path, kind):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name, expected in {
        "pipe": ": is not a regular file; expected a file",
        "loop": ": cannot be read: Too many levels of symbolic links",
        "dangling": ": no such file",
        "nowhere": ": no such file",
        ".": ": is a directory; expected a file",
        "n" * 5000: ": cannot be read: File name too long",
    }.items():
        with pytest.raises(BadInput) as caught:
            traces.load(tmp_path / name, kind)
        assert str(caught.value) == f"{tmp_path / name}{expected}"


@pytest.mark.parametrize("name", sorted(mini.MINIATURES))
def test_an_empty_file_and_a_bare_header_are_refused(complaint, name):
    assert ": the file is empty" in complaint(b"", name) or "not JSON" in complaint(b"", name)
    start = mini.MINIATURES[name][0].partition(b"\n")[0]
    if start[:1] not in b"[{":
        assert complaint(start + b"\n").endswith("no request after the header; expected a row per request")


def test_a_pieces_size_does_not_grow_with_the_file(tmp_path):
    """400,000 rows in pieces of at most 4 MiB of text; no piece, and no moment, holds them all."""
    path = tmp_path / "trace.csv"
    path.write_bytes(HEADER + ROW * 400_000)
    tracemalloc.start()
    sizes = [len(piece.workload) for piece in traces.chunks(path)]
    assert tracemalloc.get_traced_memory()[1] < 60 * MEBI
    tracemalloc.stop()
    assert sum(sizes) == 400_000
    assert max(sizes) <= source.BLOCK / len(ROW) + 1
    lines = tmp_path / "trace.jsonl"
    lines.write_bytes(LINE * 60_000)
    assert [len(piece.workload) for piece in traces.chunks(lines)] == [20_000] * 3


def test_ids_go_on_from_piece_to_piece(tmp_path):
    path = tmp_path / "trace.jsonl"
    rows = [{"timestamp": number, "input_length": 8, "output_length": 5} for number in range(45_000)]
    path.write_bytes(mini.lines(*rows))
    pieces = list(traces.chunks(path))
    assert [piece.workload["id"].iloc[0] for piece in pieces] == ["1", "20001", "40001"]
    assert pieces[2].workload["arrival_ns"].iloc[0] == 40_000 * 10**6
    whole = traces.load(path)
    assert whole.workload["id"].tolist() == [str(number) for number in range(1, 45_001)]
    assert json.loads(path.read_text().splitlines()[-1])["timestamp"] * 10**6 == whole.workload["arrival_ns"].iloc[-1]
