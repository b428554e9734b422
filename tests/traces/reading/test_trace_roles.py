"""Roles of columns: guessed from names and content, said with a reason, and refused where two fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from traces.errors import BadInput
from traces.reading.registry import load
from traces.reading.roles import infer, words


def mapped(path: Path) -> list[str]:
    return [each.mapped for each in infer(path)]


def table(folder: Path, header: str, *rows: str) -> Path:
    path = folder / "log.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("ContextTokens", ["context", "tokens"]),
        ("usage.prompt_tokens", ["usage", "prompt", "tokens"]),
        ("tok-in", ["tok", "in"]),
        ("APIKey", ["api", "key"]),
    ],
)
def test_a_name_is_taken_apart(name: str, found: list[str]) -> None:
    assert words(name) == found


def test_a_gateway_log_with_names_of_its_own(tmp_path: Path) -> None:
    header = "request_id,received_at,api_key,deployment,tok_in,tok_out,http_status"
    path = table(tmp_path, header, "r1,2026-11-16T16:00:00.000+00:00,k1,chat,374,44,200")
    assert mapped(path) == [
        *("arrival=received_at:iso", "prompt=tok_in", "output=tok_out"),
        *("status=http_status", "tenant=api_key", "model=deployment"),
    ]


@pytest.mark.parametrize(
    ("header", "value", "unit"),
    [
        ("ts", "1760000000.5", "s"),
        ("created_at", "1760000000500", "ms"),
        ("start_ns", "1760000000500000000", "ns"),
        ("arrival_ms", "120", "ms"),
        ("arrived_at", "0.5", "s"),
    ],
)
def test_a_time_has_the_unit_of_its_size_or_of_its_name(tmp_path: Path, header: str, value: str, unit: str) -> None:
    assert (
        mapped(table(tmp_path, f"{header},prompt_len,output_len", f"{value},10,5"))[0] == f"arrival={header}:{unit}"
    )


def test_the_beginning_is_the_arrival_and_not_the_end(tmp_path: Path) -> None:
    path = table(tmp_path, "end_time,start_time,input,output", "2026-01-01T00:00:09Z,2026-01-01T00:00:00Z,5,6")
    assert mapped(path)[0] == "arrival=start_time:iso"


def test_limits_and_cached_tokens_are_no_lengths(tmp_path: Path) -> None:
    header = "ts,max_output_tokens,output_tokens,cached_input_tokens,input_tokens"
    assert mapped(table(tmp_path, header, "1760000000,900,5,8,10"))[1:3] == [
        "prompt=input_tokens",
        "output=output_tokens",
    ]


def test_nested_objects_have_dots_and_the_map_reads_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [
        {"meta": {"created": 1760000000 + n}, "usage": {"prompt_tokens": 10 + n, "completion_tokens": 3}}
        for n in (0, 2)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = mapped(path)
    assert found == ["arrival=meta.created:s", "prompt=usage.prompt_tokens", "output=usage.completion_tokens"]
    trace = load(path, None, dict(each.partition("=")[::2] for each in found))
    assert trace.workload is not None
    assert trace.workload["arrival_ns"].tolist() == [0, 2 * 10**9]
    assert trace.workload["prompt"].tolist() == [10, 12]


def test_two_columns_that_fit_equally_are_not_chosen_between(tmp_path: Path) -> None:
    path = table(tmp_path, "ts,a_prompt_tokens,b_prompt_tokens,output_tokens", "1760000000,1,2,3")
    with pytest.raises(
        BadInput, match=r"no column is clearly the prompt; found ts, a_prompt_tokens, .*--map prompt="
    ):
        infer(path)


def test_a_file_without_a_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no row; expected a row per request"):
        infer(table(tmp_path, "ts,input,output"))
