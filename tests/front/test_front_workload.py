"""What becomes of the requests of a source: the limits that they declare, and arrivals that a file does not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slotstep import scenario, workload
from traces.writers import write
from traces.registry import load
from traces.tabulate import tabulate

CSV = "ts,in,out,limit\n0,10,5,\n1,10,5,5\n2,10,5,40\n"
MAP = {"arrival": "ts:s", "prompt": "in", "output": "out", "max_output": "limit"}


def limits(given: dict[str, Any], folder: Path) -> dict[str, int]:
    """The limit of each request of a workload."""
    content = {"workload": given, "cost": {"unit": "1ms"}}
    loaded = scenario.parse(content, source="limits.yaml", folder=folder)
    return {request.id: request.max_output for request in workload.requests(loaded)}


@pytest.fixture
def trace(tmp_path: Path) -> dict[str, Any]:
    """A file of three requests: one declares no limit, one its own output, one more."""
    (tmp_path / "asked.csv").write_text(CSV)
    return {"columns": "asked.csv", "map": MAP}


def test_a_limit_that_a_mapped_trace_declares_stays(trace: dict[str, Any], tmp_path: Path) -> None:
    assert limits({"trace": trace, "max_output": 20}, tmp_path) == {"1": 20, "2": 5, "3": 40}


def test_a_limit_that_the_part_of_a_merge_gives_stays(trace: dict[str, Any], tmp_path: Path) -> None:
    parts = {"a": {"trace": trace, "max_output": 20}, "b": {"trace": trace}, "c": {"requests": [{"output": 5}]}}
    found = limits({"merge": parts, "max_output": 30}, tmp_path)
    assert found == {"a-1": 20, "a-2": 5, "a-3": 40, "b-1": 30, "b-2": 5, "b-3": 40, "c-1": 30}


def test_a_declared_limit_follows_its_lengths_through_transforms(tmp_path: Path) -> None:
    lines = [{"id": "a", "output": 5, "max_output": 5}, *({"output": 6, "arrival": "1s"} for _ in range(40))]
    steps = [{"shuffle_lengths": None}, {"cap_lengths": {"output": 8}}, {"resample": "2s"}]
    given = {"requests": lines, "transforms": steps, "max_output": 9}
    loaded = scenario.parse({"workload": given, "cost": {"unit": "1ms"}}, source="limits.yaml", folder=tmp_path)
    found = {(request.output, request.max_output) for request in workload.requests(loaded)}
    assert found == {(5, 5), (6, 9)}


def test_a_declared_limit_is_written_and_read_back_as_declared(trace: dict[str, Any], tmp_path: Path) -> None:
    content = {"workload": {"trace": trace}, "cost": {"unit": "1ms"}}
    asked = workload.requests(scenario.parse(content, source="limits.yaml", folder=tmp_path))
    write(tabulate(asked)[0], tmp_path / "again.parquet")
    assert [request.declared for request in load(tmp_path / "again.parquet").requests()] == [False, True, True]
    assert limits({"trace": {"auto": "again.parquet"}, "max_output": 20}, tmp_path) == {"1": 20, "2": 5, "3": 40}
