"""Throttled requests as demand, and answers from a gateway's cache as none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import slotstep
from slotstep.runs.workload import load as load_workload
from traces.errors import BadInput
from traces.reading.registry import load
from traces.reading.table import Trace
from traces.transforms.throttled import with_throttled

MAP = {"arrival": "ts:s", "prompt": "in", "output": "out", "tenant": "team", "status": "code"}
ROWS = [
    "1,10,5,a,200",
    "2,11,0,a,429",
    "3,12,7,b,200",
    "4,13,0,b,429",
    "5,14,0,c,429",
    "6,15,0,a,503",
    "7,16,5,a,200",
]


def gateway(folder: Path, rows: list[str] = ROWS, header: str = "ts,in,out,team,code") -> Path:
    path = folder / "log.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def trace(folder: Path, rows: list[str] = ROWS) -> Trace:
    return load(gateway(folder, rows), None, MAP)


def test_a_throttled_request_gets_an_output_of_its_tenant(tmp_path: Path) -> None:
    found = with_throttled(trace(tmp_path))
    assert found.workload is not None
    rows: list[Any] = found.workload[["arrival_ns", "prompt", "output", "tenant"]].values.tolist()
    outputs = {tenant: output for _, _, output, tenant in rows[:4]}
    assert outputs == {"a": 5, "b": 7}
    # c has none that finished: one of all.
    assert [(at // 10**9, prompt, tenant) for at, prompt, _, tenant in rows] == [
        *((0, 10, "a"), (1, 11, "a"), (2, 12, "b"), (3, 13, "b"), (4, 14, "c"), (6, 16, "a"))
    ]
    assert rows[4][2] in (5, 7)


def test_the_report_says_how_many(tmp_path: Path) -> None:
    before = trace(tmp_path)
    assert before.report.dropped["failed: no lengths"] == 4
    report = with_throttled(before).report
    assert (report.kept, report.dropped["failed: no lengths"]) == (6, 1)
    assert "changed 3: throttled and replayed, with an output drawn from finished requests of their tenant" in (
        report.lines()
    )
    assert before.report.dropped["failed: no lengths"] == 4


def test_the_same_outputs_are_drawn_again(tmp_path: Path) -> None:
    rows = [f"{n},10,0,a,429" if n % 3 else f"{n},10,{n + 1},a,200" for n in range(60)]
    first, again, other = (with_throttled(trace(tmp_path, rows), seed).workload for seed in (0, 0, 1))
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.equals(again)
    assert not first.equals(other)


@pytest.mark.parametrize(
    ("rows", "reason"), [(["1,10,5,a,200", "2,11,6,a,200"], "no throttled request with a prompt; expected some")]
)
def test_a_log_without_any_is_refused(tmp_path: Path, rows: list[str], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        with_throttled(trace(tmp_path, rows))
    with pytest.raises(BadInput, match="found no status with arrivals and prompts"):
        with_throttled(load(gateway(tmp_path), None, {k: v for k, v in MAP.items() if k != "status"}))


def test_a_scenario_replays_them(tmp_path: Path) -> None:
    named = {"columns": str(gateway(tmp_path)), "map": MAP}
    mapping = {"workload": {"trace": named}, "cost": {"unit": "1ms"}}
    assert len(load_workload(slotstep.parse(mapping)).requests) == 3
    mapping["workload"]["trace"] = {**named, "replay_throttled": True}
    found = load_workload(slotstep.parse(mapping))
    assert len(found.requests) == 6
    assert any("throttled and replayed" in remark for remark in found.remarks)
    mapping["workload"]["trace"] = {**named, "replay_throttled": "yes"}
    with pytest.raises(BadInput, match="replay_throttled: 'yes'; expected true or false"):
        slotstep.parse(mapping)


def test_answers_of_a_cache_are_no_load(tmp_path: Path) -> None:
    path = gateway(tmp_path, ["1,10,5,HIT", "2,11,6,miss", "3,12,7,", "4,13,8,true"], "ts,in,out,cache")
    found = load(path, None, {"arrival": "ts:s", "prompt": "in", "output": "out", "cache_hit": "cache"})
    assert found.workload is not None
    assert found.workload["prompt"].tolist() == [11, 12]
    assert found.report.dropped["replies from the gateway's cache: no engine time"] == 2


def test_a_hit_that_is_neither_yes_nor_no_is_an_error(tmp_path: Path) -> None:
    path = gateway(tmp_path, ["1,10,5,perhaps"], "ts,in,out,cache")
    with pytest.raises(BadInput, match="row 2: cache is 'perhaps'; expected such as true or false"):
        load(path, None, {"arrival": "ts:s", "prompt": "in", "output": "out", "cache_hit": "cache"})
