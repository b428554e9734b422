"""Forward-pass metrics of every publisher give the same steps; what records do not show is asked for."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import forward_passes
import pytest
from forward_passes import STEPS, as_lines, record

from traces.errors import BadInput
from traces.reading import forward_pass, step_logs

PUBLISHERS = [forward_passes.dynamo_trace, forward_passes.sglang, forward_passes.tensorrt_llm, forward_passes.vllm]

Records = Callable[[], Iterator[dict[str, Any]]]


def written(folder: Path, records: Iterator[dict[str, Any]]) -> Path:
    (folder / "passes.jsonl").write_bytes(as_lines(records))
    return folder / "passes.jsonl"


def rows(prompts: int, tokens: int, kv: int, variance: float = 0.0, seconds: float = 0.01) -> dict[str, Any]:
    """A record of prompts alone."""
    made = record(0, {"prefill": (prompts, tokens, kv), "decode": (0, 0), "seconds": seconds}, False)
    made["scheduled_requests"]["var_prefill_length"] = variance
    return made


@pytest.mark.parametrize("publisher", PUBLISHERS, ids=lambda of: of.__name__)
def test_every_publisher_s_records_are_the_same_steps(publisher: Records, tmp_path: Path) -> None:
    found = forward_pass.read(written(tmp_path, publisher()))
    assert found.frame["decodes"].tolist() == [0, 1, 1, 2]
    assert found.frame["context"].tolist() == [0, 100, 101, 162]
    assert found.frame["chunks"].tolist() == [1, 1, 1, 0]
    assert found.frame["chunk_tokens"].tolist() == [100, 40, 20, 0]
    # 100 x 50, 40 x 20, 20 x (40 + 10)
    assert found.frame["chunk_work"].tolist() == [5000, 800, 1000, 0]
    assert found.frame["duration_ns"].tolist() == [12_000_000, 11_000_000, 10_500_000, 10_000_000]
    assert found.remarks == ("1 records without work (heartbeats) left out",)


def test_a_packed_trace_is_recognised_as_a_log_of_steps(tmp_path: Path) -> None:
    path = tmp_path / "dynamo-fpm.4192.000000.jsonl.gz"
    path.write_bytes(gzip.compress(as_lines(forward_passes.dynamo_trace())))
    assert step_logs.is_log(path)
    assert len(step_logs.read(path)) == len(STEPS)
    with pytest.raises(BadInput, match=r"one clock, wall_time"):
        step_logs.read(path, "cpu")


def test_what_is_counted_is_asked_for_where_the_records_do_not_show_it(tmp_path: Path) -> None:
    path = written(tmp_path, iter([rows(1, 20, 40), rows(1, 30, 30)]))
    with pytest.raises(BadInput, match=r"2 steps with prompts do not show .*; expected --prefill-kv before or after"):
        forward_pass.read(path)
    assert forward_pass.read(path, "before").frame["chunk_work"].tolist() == [20 * 50, 30 * 45]
    assert forward_pass.read(path, "after").frame["chunk_work"].tolist() == [20 * 30, 30 * 15]


def test_a_choice_that_the_records_contradict_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, iter([rows(1, 20, 40), rows(1, 30, 10)]))
    with pytest.raises(BadInput, match=r"row 2: sum_prefill_kv_tokens is 10 and sum_prefill_tokens 30; .*before"):
        forward_pass.read(path, "after")


def test_several_whole_prompts_are_told_apart_by_the_variance_of_their_lengths(tmp_path: Path) -> None:
    # 10 and 30: mean 20, variance 100; pairs 10 x 5 + 30 x 15 = 500.
    found = forward_pass.read(written(tmp_path, iter([rows(2, 40, 0, 100.0)])))
    assert found.frame["chunk_work"].tolist() == [500]
    assert not found.remarks


def test_several_prompts_with_cached_positions_are_reported_as_estimated(tmp_path: Path) -> None:
    # As if each of the two had 20 cached and 20 to compute: 2 x 20 x (20 + 10).
    found = forward_pass.read(written(tmp_path, iter([rows(2, 40, 40, 100.0), rows(1, 5, 0)])))
    assert found.frame["chunk_work"].tolist() == [1200, 12.5]
    assert found.remarks == ("attention of 1 steps with several prompts and cached positions estimated",)


def test_missing_counters_and_steps_without_a_time_are_reported(tmp_path: Path) -> None:
    first, second, third = rows(1, 20, 0), rows(1, 20, 0), rows(1, 20, 0, seconds=0)
    second["counter_id"], third["counter_id"] = 5, 6
    found = forward_pass.read(written(tmp_path, iter([first, second, third])))
    assert len(found.frame) == 2
    assert found.remarks == (
        "1 records with work and no wall_time left out",
        "4 counters between the first and the last record are missing",
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 2}, "row 1: version is 2; expected 1"),
        ({"wall_time": "soon"}, "row 1: wall_time is 'soon'; expected seconds of at least 0"),
        ({"wall_time": -1.0}, "row 1: wall_time is -1.0; expected seconds of at least 0"),
        ({"counter_id": 1.5}, "row 1: counter_id is 1.5; expected a whole number of at least 0"),
        ({"scheduled_requests": 3}, "row 1: scheduled_requests is 3; expected a mapping of sums"),
        ({"scheduled_requests": {}}, "row 1: num_prefill_requests is None; expected a whole number of at least 0"),
        ({"event": {"fpm": 1}}, "row 1: event is {'fpm': 1}; expected a record under event.fpm"),
    ],
)
def test_a_record_that_cannot_be_read_is_one_line(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    path = written(tmp_path, iter([rows(1, 20, 0) | change]))
    with pytest.raises(BadInput) as refused:
        forward_pass.read(path)
    assert str(refused.value) == f"{path}, {says}"


def test_heartbeats_alone_are_no_steps(tmp_path: Path) -> None:
    path = written(tmp_path, iter([record(0, forward_passes.IDLE, False)] * 3))
    with pytest.raises(BadInput, match="3 records of forward passes, none with work; expected one a step"):
        forward_pass.read(path)
    path.write_text(json.dumps(rows(1, 20, 0, seconds=0)))
    with pytest.raises(BadInput, match="no record has a wall_time above 0"):
        forward_pass.read(path)
