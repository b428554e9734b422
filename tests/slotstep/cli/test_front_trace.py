"""`slotstep trace`: what it prints where, and scenarios that read, transform, merge and write traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import slotstep
from sim.request import SECOND
from slotstep.cli import app
from slotstep.runs.workload import requests as requests_of
from traces import BadInput, load

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.0000000,374,44
2023-11-16 18:15:47.0000000,396,109
2023-11-16 18:15:49.0000000,879,55
2023-11-16 18:15:49.5000000,91,16
"""
REST = {"cost": {"unit": "1ms"}}


@pytest.fixture
def azure(tmp_path: Path) -> Path:
    path = tmp_path / "azure.csv"
    path.write_text(AZURE)
    return path


def code_of(*arguments: str | Path) -> int:
    """The exit code of a command line."""
    with pytest.raises(SystemExit) as caught:
        app.main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[str, str]:
    """What a command line that succeeds prints, on standard output and on standard error."""
    assert code_of("trace", *arguments) == 0
    found = capsys.readouterr()
    return found.out, found.err


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The last line on standard error of a command line that fails, without its `error: `."""
    assert code_of("trace", *arguments) == 2
    found = capsys.readouterr()
    assert found.out == ""
    return found.err.splitlines()[-1].removeprefix("error: ")


def requests(workload: dict[str, object], folder: Path, seed: int = 0):  # type: ignore[no-untyped-def]
    return requests_of(slotstep.parse({"workload": workload, "seed": seed, **REST}, folder=folder))


def test_info_in_words_says_what_was_read_on_standard_error(azure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = printed(capsys, "info", azure)
    assert out.splitlines()[0] == f"{azure}: azure, workload"
    assert "requests    4 in 4 s" in out
    assert "  prompt             435         385" in out
    assert err == f"{azure}: azure, 4 rows read, 4 in the workload\n"


def test_info_in_json_and_as_a_picture(azure: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = printed(capsys, "info", azure, "--json", "--png", tmp_path / "x.png")
    found = json.loads(out, parse_constant=pytest.fail)
    assert (found["rows"], found["span_s"], found["prompt"]["mean"]) == (4, 3.5, 435)
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_info_takes_columns_of_any_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.csv").write_text("when,in,out\n1000,5,6\n3000,7,8\n")
    maps = ("--map", "arrival=when:ms", "--map", "prompt=in", "--map", "output=out")
    out, _ = printed(capsys, "info", tmp_path / "log.csv", "--json", *maps)
    assert json.loads(out)["span_s"] == 2


@pytest.mark.slow
def test_a_fitted_workload_is_a_scenarios(azure: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = printed(capsys, "fit", azure)
    assert "rate /s" in err
    assert "prompt mean" in err
    scenario = yaml.safe_load(out)
    assert scenario["workload"]["synthetic"]["requests"] == 4
    (piece,) = scenario["workload"]["synthetic"]["arrivals"]["piecewise"]["pieces"]
    assert piece["lasts"] == "3.500000001s"
    (tmp_path / "fitted.yaml").write_text(out + "cost: {unit: 1ms}\n")
    assert len(requests_of(slotstep.load(tmp_path / "fitted.yaml"))) == 4


def test_convert_says_what_is_lost(azure: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, err = printed(capsys, "convert", azure, tmp_path / "x.parquet")
    assert err.endswith(f"written to {tmp_path / 'x.parquet'}; nothing is lost\n")
    assert load(tmp_path / "x.parquet").requests() == load(azure).requests()
    burst = tmp_path / "burst.csv"
    burst.write_text(
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,ChatGPT,4,1,5,API log\n6,GPT-4,9,2,11,API log\n"
    )
    _, err = printed(capsys, "convert", burst, tmp_path / "x.csv", "--to", "vidur")
    assert "lost: model: not in the format\n" in err


def test_generate_writes_the_requests_that_a_run_sends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "x.yaml"
    law = "{requests: 50, arrivals: {poisson: {rate: 2}}, output: 9, sessions: {turns: 3, think: 2s}}"
    scenario.write_text(f"workload: {{synthetic: {law}}}\ncost: {{unit: 1ms}}\n")
    printed(capsys, "generate", scenario, tmp_path / "x.parquet", "--set", "workload.first=20")
    sent = requests_of(slotstep.load(scenario, ["workload.first=20"]))
    assert load(tmp_path / "x.parquet").requests() == sent
    assert requests({"trace": {"slotstep": "x.parquet"}}, tmp_path) == sent
    assert requests({"trace": {"auto": "x.parquet"}}, tmp_path) == sent


def test_bad_input_is_one_line(azure: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(capsys, "info", tmp_path / "no.csv") == f"{tmp_path / 'no.csv'}: no such file"
    assert complaint(capsys, "info", azure, "--format", "azur") == "azur: unknown trace format; did you mean azure?"
    assert complaint(capsys, "info", azure, "--map", "prompt") == (
        "--map: expected ROLE=COLUMN, such as arrival=ts:ms"
    )
    assert complaint(capsys, "info", azure, "--png", tmp_path / "x.pdf").endswith("expected a name that ends in .png")
    assert complaint(capsys, "info", azure, "--run", "a").startswith(f"{azure}: no run")
    assert complaint(capsys, "convert", azure, tmp_path / "x").startswith(
        f"{tmp_path / 'x'}: the format is not clear"
    )
    azure.write_text("\n".join(AZURE.splitlines()[:2]))
    assert complaint(capsys, "fit", azure) == f"{azure}: 1 request; expected at least two at different times"


def test_transforms_are_applied_in_the_order_of_their_list(azure: Path) -> None:
    trace = {"trace": {"auto": azure.name}}
    found = requests({**trace, "transforms": [{"first": 3}, {"between": ["1s", "4s"]}, {"rate": 10}]}, azure.parent)
    assert [(r.id, r.arrival) for r in found] == [("2", 0), ("3", SECOND // 5)]
    kept = requests({**trace, "between": ["1s", "4s"], "first": 2, "scale_rate": 2}, azure.parent)
    assert [(r.id, r.arrival) for r in kept] == [("2", 0), ("3", SECOND)]


def test_durations_of_transforms_are_text(azure: Path) -> None:
    trace = {"trace": {"auto": azure.name}}
    assert len(requests({**trace, "transforms": [{"warm_up": "1s"}]}, azure.parent)) == 3
    with pytest.raises(BadInput, match=r"workload\.transforms\.0\.warm_up: found 5, without a unit"):
        requests({**trace, "transforms": [{"warm_up": 5}]}, azure.parent)
    drawn = requests(
        {**trace, "transforms": [{"redraw_arrivals": {"ticks": {"arrivals": {"poisson": 1}, "every": "2s"}}}]},
        azure.parent,
    )
    assert all(request.arrival % (2 * SECOND) == 0 for request in drawn)


def test_sessions_are_sampled_whole(tmp_path: Path) -> None:
    law = {
        "requests": 300,
        "arrivals": {"poisson": {"rate": 9}},
        "output": 3,
        "sessions": {"turns": 4, "think": "0s"},
    }
    found = requests({"synthetic": law, "transforms": [{"sample": 0.5}]}, tmp_path)
    turns = {request.id.partition(".")[0]: 0 for request in found}
    for request in found:
        turns[request.id.partition(".")[0]] += 1
    assert 20 < len(turns) < 60
    assert sum(count < 4 for count in turns.values()) <= 1


def test_merged_workloads_are_tenants_with_streams_of_their_own(azure: Path) -> None:
    law = {"requests": 3, "arrivals": {"poisson": {"rate": 1}}, "output": {"geometric": 50}}
    parts = {
        "log": {"trace": {"azure": azure.name}, "first": 2},
        "one": {"synthetic": law},
        "two": {"synthetic": law},
    }
    found = requests({"merge": parts, "max_output": 500}, azure.parent)
    by_tenant = {name: [r for r in found if r.tenant == name] for name in parts}
    assert [r.id for r in by_tenant["log"]] == ["log-1", "log-2"]
    assert [len(part) for part in by_tenant.values()] == [2, 3, 3]
    assert [r.arrival for r in by_tenant["one"]] != [r.arrival for r in by_tenant["two"]]
    assert {r.max_output for r in found} == {500}
    assert [r.arrival for r in found] == sorted(r.arrival for r in found)


def test_a_merge_survives_being_written_out(azure: Path) -> None:
    parts = {"a": {"trace": {"azure": azure.name}}, "b": {"requests": [{"output": 3}]}}
    first = slotstep.parse({"workload": {"merge": parts, "transforms": [{"first": 3}]}, **REST}, folder=azure.parent)
    again = slotstep.parse(slotstep.resolved(first))
    assert slotstep.resolved(again) == slotstep.resolved(first)
    assert requests_of(again) == requests_of(first)


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (
            {"requests": [{"output": 1}], "transforms": [{"frist": 3}]},
            "workload.transforms.0.frist: unknown transform; did you mean first?",
        ),
        (
            {"requests": [{"output": 1}], "transforms": [], "scale_rate": 2},
            "workload: found scale_rate beside transforms; expected it in their list, where it takes effect",
        ),
        ({"merge": {}}, "workload.merge: found {}; expected workloads by name, as in a: {trace: ...}"),
        (
            {"merge": {"a": {"trace": {"azur": "x"}}}},
            "workload.merge: a.trace.azur: unknown key; did you mean trace.azure?",
        ),
        (
            {"merge": {"a": {"synthetic": {"requests": 1}}}},
            "workload.merge.a.synthetic.output is missing; expected a law of lengths",
        ),
        (
            {"trace": {"run": "a"}},
            "workload.trace: found {'run': 'a'}; expected a kind and a file, as in azure: FILE",
        ),
    ],
)
def test_what_is_wrong_in_a_workload_is_named(workload: dict[str, object], expected: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        requests(workload, tmp_path)
    assert str(caught.value) == f"scenario: {expected}"


def test_what_a_reader_leaves_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["TIMESTAMP,ContextTokens,GeneratedTokens", *(f"2023-11-16 18:15:4{n}.0000000,{n},5" for n in range(3))]
    (tmp_path / "azure.csv").write_text("\r\n".join(rows))
    workload = {"trace": {"azure": "azure.csv"}}
    result = slotstep.run(slotstep.parse({"workload": workload, **REST}, folder=tmp_path))
    assert result.summary["requests"]["injected"] == 2
    assert result.remarks[1:] == ("dropped 1: ContextTokens is 0",)
    assert result.summary["remarks"] == list(result.remarks)
    (tmp_path / "chat.yaml").write_text("workload: {trace: {azure: azure.csv}}\ncost: {unit: 1ms}\n")
    with pytest.raises(SystemExit) as end:
        app.main(["run", str(tmp_path / "chat.yaml"), "--json"])
    assert end.value.code == 0
    assert "dropped 1: ContextTokens is 0\n" in capsys.readouterr().err
