"""`slotstep parity`: what it prints, its exit codes, and what it takes for a case and a log."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from command_line import code_of, complaint

CASE: dict[str, Any] = {
    "config": {"max_num_seqs": 1},
    "requests": [
        {"id": "a", "prompt_len": 3, "max_tokens": 2, "arrival_step": 0},
        {"id": "b", "prompt_token_ids": [1, 2], "max_tokens": 1, "arrival_step": 0},
    ],
}


def step(number: int, **fields: Any) -> dict[str, Any]:
    """A line of a log."""
    return {"type": "step", "step": number, **fields}


LOG: list[dict[str, Any]] = [
    step(0, scheduled={"a": 3}, running=["a"], waiting=["b"], sampled=["a"], finished=[], free_blocks=998),
    step(1, scheduled={"a": 1}, running=["a"], waiting=["b"], sampled=["a"], finished=["a"], free_blocks=998),
    step(2, scheduled={"b": 2}, new=["b"], running=["b"], waiting=[], sampled=["b"], finished=["b"]),
    {"type": "summary"},
]


def files(folder: Path, case: Any = CASE, log: list[dict[str, Any]] | str = LOG) -> tuple[Path, Path]:
    """A case and a log as files, the log gzipped under a plain name."""
    paths = folder / "case.json", folder / "log.jsonl"
    paths[0].write_text(json.dumps(case))
    text = log if isinstance(log, str) else "".join(f"{json.dumps(line)}\n" for line in log)
    paths[1].write_bytes(gzip.compress(text.encode()))
    return paths


def changed(place: int, **fields: Any) -> list[dict[str, Any]]:
    """The log with one line changed."""
    return [line | fields if at == place else line for at, line in enumerate(LOG)]


def test_the_same_decisions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("parity", *files(tmp_path)) == 0
    assert capsys.readouterr().out == "3 steps compared, 0 mismatches\n"


def test_the_first_difference_is_shown_field_by_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = changed(1, scheduled={"a": 1, "b": 2}, free_blocks=997)
    log[2] = log[2] | {"scheduled": {"b": 1}}
    assert code_of("parity", *files(tmp_path, log=log)) == 1
    assert capsys.readouterr().out.splitlines() == [
        "3 steps compared, 2 mismatches",
        "first: step 1",
        "  scheduled    engine  ..., b: 2",
        "               ours    nothing more",
        "  free_blocks  engine  997",
        "               ours    998",
    ]


def test_order_counts(tmp_path: Path) -> None:
    case = {**CASE, "config": {"max_num_seqs": 2}}
    both = {"a": 3, "b": 2}
    assert code_of("parity", *files(tmp_path, case, [step(0, scheduled=both)])) == 0
    assert code_of("parity", *files(tmp_path, case, [step(0, scheduled=dict(reversed(both.items())))])) == 1


def test_the_order_in_which_a_set_was_written_does_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = {
        "config": {"max_num_seqs": 2, "block_size": 1, "enable_prefix_caching": True},
        "requests": [
            {"id": name, "prompt_token_ids": [1, 2, 3], "max_tokens": 1, "arrival_step": arrival}
            for name, arrival in (("a", 0), ("b", 5), ("c", 5))
        ],
    }
    found = {"c": 2, "b": 2}
    same = step(5, hit_tokens=found, computed_before=found, sampled=["c", "b"], finished=["c", "b"], new=["b", "c"])
    assert code_of("parity", *files(tmp_path, case, [same])) == 0
    assert code_of("parity", *files(tmp_path, case, [same | {"new": ["c", "b"]}])) == 1
    capsys.readouterr()
    twice = [same | {"hit_tokens": {"d": 1, "b": 2}, "finished": ["b", "b", "c"]}]
    assert code_of("parity", *files(tmp_path, case, twice)) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "first: step 5",
        "  hit_tokens  engine  ..., d: 1",
        "              ours    ..., c: 2",
        "  finished    engine  ..., b, c",
        "              ours    ..., c",
    ]


def test_a_threshold_of_0_that_adapts_is_no_threshold(tmp_path: Path) -> None:
    config = CASE["config"] | {"long_prefill_token_threshold_adaptive": True}
    case = {"config": config, "requests": CASE["requests"]}
    assert code_of("parity", *files(tmp_path, case)) == 0


def test_a_step_that_only_one_of_them_has_is_a_mismatch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("parity", *files(tmp_path, log=[*LOG[:3], step(7, scheduled={})])) == 1
    assert "4 steps compared, 1 mismatch\nfirst: step 7, which ours have not" in capsys.readouterr().out
    assert code_of("parity", *files(tmp_path, log=[*LOG[:2], LOG[3]])) == 1
    assert "first: step 2, which the engine's log has not" in capsys.readouterr().out
    assert code_of("parity", *files(tmp_path, log=LOG[:2])) == 0  # without its summary it may have been cut


@pytest.mark.parametrize(
    ("case", "log", "words"),
    [
        ({"config": {}}, LOG, "case.json: requests: missing"),
        (
            {"config": {"max_num_seq": 1}, "requests": []},
            LOG,
            "case.json: config: engine.max_num_seq: unknown key; did you mean engine.max_num_seqs?",
        ),
        (
            {"config": {"watermark": 2}, "requests": []},
            LOG,
            "case.json: config: engine.watermark: found 2; expected a number from 0 to below 1",
        ),
        (
            {"config": {}, "requests": [{"id": "a", "max_tokens": 1, "arrival_step": 0}]},
            LOG,
            "case.json: requests.0: expected one of prompt_token_ids and prompt_len",
        ),
        (
            {"config": {}, "requests": [{"id": "a", "prompt_token_ids": [], "max_tokens": 1, "arrival_step": 0}]},
            LOG,
            "case.json: requests.0: a prompt has at least one token",
        ),
        (
            {"config": {}, "requests": [{"id": "a", "prompt_len": 3, "max_tokens": 1, "arrival_time": 0.5}]},
            LOG,
            "case.json: requests.0.arrival_step: missing (config.cost says in what requests arrive)",
        ),
        (
            {"config": {}, "requests": [*CASE["requests"], CASE["requests"][0]]},
            LOG,
            "case.json: requests.2.id: 'a' is there twice",
        ),
        (CASE, "{}\n", "log.jsonl, row 1: found {}; expected an object with a type"),
        (CASE, '{"type": "step"}\n', "log.jsonl, row 1: step is nothing; expected its number"),
        (CASE, '{"type": "header"}\n', "log.jsonl: no line of type step; expected one for every step"),
        (CASE, "step 0\n", "log.jsonl, row 1: no JSON: Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_what_is_no_case_or_no_log_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: Any, log: Any, words: str
) -> None:
    assert complaint(capsys, "parity", *files(tmp_path, case, log)) == f"{tmp_path}/{words}"


def test_a_file_that_is_not_there_or_broken_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case, log = files(tmp_path)
    assert complaint(capsys, "parity", tmp_path / "none", log) == (
        f"{tmp_path}/none: cannot be read: No such file or directory"
    )
    log.write_bytes(log.read_bytes()[:40])
    assert complaint(capsys, "parity", case, log).startswith(f"{log}: cannot be read: ")
