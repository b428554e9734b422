"""What becomes of the requests of a source: the limits that they declare, and arrivals that a file does not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import slotstep
from slotstep.runs import workload
from traces.errors import BadInput
from traces.reading.registry import load
from traces.reading.tabulate import tabulate
from traces.writers import write

CSV = "ts,in,out,limit\n0,10,5,\n1,10,5,5\n2,10,5,40\n"
MAP = {"arrival": "ts:s", "prompt": "in", "output": "out", "max_output": "limit"}


def limits(given: dict[str, Any], folder: Path) -> dict[str, int]:
    """The limit of each request of a workload."""
    content = {"workload": given, "cost": {"unit": "1ms"}}
    loaded = slotstep.parse(content, source="limits.yaml", folder=folder)
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
    loaded = slotstep.parse({"workload": given, "cost": {"unit": "1ms"}}, source="limits.yaml", folder=tmp_path)
    found = {(request.output, request.max_output) for request in workload.requests(loaded)}
    assert found == {(5, 5), (6, 9)}


def test_a_declared_limit_is_written_and_read_back_as_declared(trace: dict[str, Any], tmp_path: Path) -> None:
    content = {"workload": {"trace": trace}, "cost": {"unit": "1ms"}}
    asked = workload.requests(slotstep.parse(content, source="limits.yaml", folder=tmp_path))
    write(tabulate(asked)[0], tmp_path / "again.parquet")
    assert [request.declared for request in load(tmp_path / "again.parquet").requests()] == [0, 5, 40]
    assert limits({"trace": {"auto": "again.parquet"}, "max_output": 20}, tmp_path) == {"1": 20, "2": 5, "3": 40}


LENGTHS = "num_prefill_tokens,num_decode_tokens\n" + "".join(f"{10 + row},5\n" for row in range(30))


def lengths(folder: Path, **content: Any) -> slotstep.Scenario:
    """A scenario on a file of 30 lengths without arrivals."""
    (folder / "lengths.csv").write_text(LENGTHS)
    whole = {"workload": {"trace": {"auto": "lengths.csv"}}, "cost": {"unit": "1ms"}, **content}
    return slotstep.parse(whole, source="lengths.yaml", folder=folder)


def workload_of(*steps: Any) -> dict[str, Any]:
    return {"trace": {"auto": "lengths.csv"}, "transforms": list(steps)}


def test_lengths_are_replayed_where_clients_do_not_use_arrivals(tmp_path: Path) -> None:
    result = slotstep.run(lengths(tmp_path, clients={"closed": {"clients": 3}}))
    assert result.summary["requests"]["finished"] == 30
    assert result.summary["makespan_s"] == pytest.approx(30 / 3 * 5e-3)


def test_lengths_are_replayed_where_arrivals_are_drawn(tmp_path: Path) -> None:
    drawn = {"redraw_arrivals": {"poisson": {"rate": 5}}}
    steps = [{"cap_lengths": {"prompt": 12}}, {"first": 20}, drawn, {"scale_rate": 2}]
    asked = workload.requests(lengths(tmp_path, workload=workload_of(*steps)))
    slower = workload.requests(lengths(tmp_path, workload=workload_of(*steps[:-1])))
    assert [request.prompt for request in asked] == [10, 11] + [12] * 18
    assert asked[0].arrival > 0
    assert [request.arrival for request in asked] == [(request.arrival + 1) // 2 for request in slower]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({}, "lengths.csv: no arrival times in this file; expected transforms: [{redraw_arrivals: {poisson:"),
        ({}, "or clients.closed, which use none"),
        ({"clients": {"window": 4}}, "no arrival times in this file"),
        ({"workload": {"trace": {"auto": "lengths.csv"}, "scale_rate": 2}}, "no arrival times in this file"),
        ({"workload": {"merge": {"a": {"trace": {"auto": "lengths.csv"}}}}}, "workload.merge.a.trace: "),
        ({"workload": workload_of({"rate": 5})}, "transforms.0.rate: the requests have no arrivals; expected redraw"),
        ({"workload": workload_of({"first": 5}, {"jitter": "1s"})}, "transforms.1.jitter: the requests have no arr"),
        ({"workload": workload_of({"redraw_arrivals": "poisson"})}, "transforms.0.redraw_arrivals.poisson.rate is"),
    ],
)  # fmt: skip
def test_what_needs_the_arrivals_that_a_file_lacks_says_so(
    content: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput) as caught:
        workload.requests(lengths(tmp_path, **content))
    assert str(caught.value).startswith("lengths.yaml: workload.")
    assert expected in str(caught.value)


def test_a_merge_draws_the_arrivals_of_each_part(tmp_path: Path) -> None:
    part = workload_of({"redraw_arrivals": {"poisson": {"rate": 5}}})
    asked = workload.requests(lengths(tmp_path, workload={"merge": {"a": part, "b": part}}))
    assert len({request.arrival for request in asked}) == 60


def test_requests_that_arrive_at_once_can_be_given_arrivals_with_a_rate(tmp_path: Path) -> None:
    lines = [{"output": 5} for _ in range(9)]
    steps = [{"redraw_arrivals": {"poisson": {"rate": 5}}}]
    content = {"workload": {"requests": lines, "transforms": steps}, "cost": {"unit": "1ms"}}
    asked = workload.requests(slotstep.parse(content, source="once.yaml"))
    assert len({request.arrival for request in asked}) == 9


LOG = "id,arrival_ns,prompt,output,tenant,model,status\n" + "".join(
    f"r{k},{k}000000000,10,5,{('zeta', 'acme')[k % 2]},{'small' if k < 6 else 'large'},{'ok' if k else 'failed'}\n"
    for k in range(10)
)


def of_log(folder: Path, **content: Any) -> slotstep.Scenario:
    (folder / "log.csv").write_text(LOG)
    return slotstep.parse({"workload": content, "cost": {"unit": "1ms"}}, source="log.yaml", folder=folder)


@pytest.mark.parametrize(
    ("only", "ids"),
    [
        ({"tenant": "acme"}, ["r1", "r3", "r5", "r7", "r9"]),
        ({"model": "large"}, ["r6", "r7", "r8", "r9"]),
        ({"status": "failed"}, ["r0"]),
        ({"status": ["ok"], "tenant": ["zeta"], "model": ["small", "large"]}, ["r2", "r4", "r6", "r8"]),
    ],
)
def test_a_trace_is_filtered_by_tenant_model_and_status(only: dict[str, Any], ids: list[str], tmp_path: Path) -> None:
    found = workload.requests(of_log(tmp_path, trace={"columns": "log.csv", "only": only}))
    assert [request.id for request in found] == ids
    assert found[-1].arrival == int(ids[-1][1:]) * 10**9


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ({"tenant": "acne"}, "only.tenant: no request has 'acne'; expected zeta or acme"),
        ({"tenat": "acme"}, "workload.trace.only.tenat: unknown key; did you mean workload.trace.only.tenant?"),
        ({"tenant": []}, "found only.tenant: []; expected a name or a list of names"),
        ("acme", "found only: 'acme'; expected such as {tenant: acme, status: [ok]}"),
    ],
)
def test_a_filter_that_nothing_has_is_refused(only: Any, expected: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        workload.requests(of_log(tmp_path, trace={"columns": "log.csv", "only": only}))
    assert expected in str(caught.value)


def test_twice_a_customer_of_a_log_is_twice_its_requests_and_rate(tmp_path: Path) -> None:
    trace = {"columns": "log.csv"}
    again = {"trace": {**trace, "only": {"tenant": "acme"}}}
    merged = workload.load(of_log(tmp_path, merge={"all": {"trace": trace}, "more": again}))
    scaled = workload.load(of_log(tmp_path, trace=trace, transforms=[{"tenants": {"acme": {"times": 2}}}]))
    for made in (merged, scaled):
        assert sum(request.tenant == "acme" for request in made.requests) == 10
        assert sum(request.tenant == "zeta" for request in made.requests) == 5
        assert made.requests[-1].arrival == 9 * 10**9


def test_a_merge_says_that_its_parts_end_at_different_times(tmp_path: Path) -> None:
    trace = {"columns": "log.csv"}
    parts = {"a": {"trace": trace}, "b": {"trace": trace, "scale_rate": 2}}
    remark = next(line for line in workload.load(of_log(tmp_path, merge=parts)).remarks if "parts end" in line)
    assert remark == (
        "workload.merge: the parts end at different times: a at 9s, b at 4.5s; `repeat_until: 9s` among the "
        "transforms of the shorter ones repeats them, `between: [0s, 4.5s]` of the merged workload cuts the others"
    )
    repeated = {"trace": trace, "transforms": [{"scale_rate": 2}, {"repeat_until": "9s"}]}
    for cured in ({"merge": {**parts, "b": repeated}}, {"merge": parts, "between": ["0s", "4.5s"]}):
        assert not any("parts end" in line for line in workload.load(of_log(tmp_path, **cured)).remarks)
