"""`slotstep validate STATISTICS.yaml`: nothing but aggregates, held against a simulation of each load."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slotstep.cli.app import main

ENGINE = """
workload:
  requests:
    [{output: 5}, {arrival: 100ms, output: 5}, {arrival: 200ms, output: 5}, {arrival: 300ms, output: 5}]
clients: {delay: 3ms}
engine: {slots: 1}
cost: {unit: 10ms}
"""
STATISTICS = """
source: by hand
loads:
  - name: light
    statistics:
      ttft_s: {mean: 0.013, p99: 13ms}
      e2e_s: {mean: 53ms, max: 0.106}
      rates: {finished_per_s: 10}
  - rate: 53.3333333333
    statistics: {e2e_s: {mean: 90.5ms, p50: 90.5ms}, wait_s: {max: 75ms}, makespan_s: 0.2}
  - set: {engine.slots: 4, clients: {window: 4}, workload.first: 2}
    statistics: {e2e_s: {n: 2, mean: 50ms}, cache: {hit_rate: 0.5}}
"""


def slotstep_exits(*arguments: object) -> int:
    """Run the command line; its exit code."""
    try:
        main([str(each) for each in arguments])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command on both files. Five tokens of 10 ms each on one slot, and 3 ms from the client.

    Apart by 100 ms nobody waits. At 53.3/s, four requests in 75 ms, they wait 0, 25, 50 and 75 ms.
    """
    monkeypatch.chdir(tmp_path)
    Path("engine.yaml").write_text(ENGINE)
    Path("stats.yaml").write_text(STATISTICS)
    return ["validate", "stats.yaml", "--scenario", "engine.yaml"]


def loads(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> list[dict[str, Any]]:
    """What the command says, as plain values."""
    assert slotstep_exits(*arguments, "--json") == 0
    runs: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["runs"]
    return runs


def test_each_load_is_simulated_and_every_number_has_its_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    light, busy, wide = loads(capsys, arguments)
    assert (light["run"], busy["run"]) == ("light", "53.3333 requests/s")
    for name, statistic in (("ttft_s", "mean"), ("ttft_s", "p99"), ("e2e_s", "mean")):
        assert light["metrics"][name][statistic]["error"] == pytest.approx(0, abs=1e-9)
    assert light["metrics"]["e2e_s"]["max"] == pytest.approx({"measured": 0.106, "predicted": 0.053, "error": -0.5})
    # Four requests between the first entry and the last end, 350 ms later
    assert light["metrics"]["rates"]["finished_per_s"]["predicted"] == pytest.approx(4 / 0.35)
    for name, statistic in (("e2e_s", "mean"), ("e2e_s", "p50"), ("wait_s", "max")):
        assert busy["metrics"][name][statistic]["error"] == pytest.approx(0, abs=1e-6)
    assert busy["metrics"]["makespan_s"]["predicted"] == pytest.approx(0.2)
    assert wide["metrics"]["e2e_s"]["n"] == {"measured": 2, "predicted": 2, "error": 0.0}
    assert wide["metrics"]["e2e_s"]["mean"]["predicted"] == pytest.approx(0.05)
    assert wide["metrics"]["cache"]["hit_rate"] == {"measured": 0.5, "predicted": None, "error": None}


def test_what_the_engine_measured_has_no_way_of_the_client_in_it(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("stats.yaml").write_text("measured_at: engine\n" + STATISTICS)
    assert loads(capsys, arguments)[0]["metrics"]["ttft_s"]["mean"]["predicted"] == pytest.approx(0.010)


def test_the_table_and_the_file_say_the_same(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert slotstep_exits(*arguments, "--out", "out") == 0
    printed = capsys.readouterr().out
    assert "light: 4 of 4 finished" in printed
    assert "e2e_s max 106.0 ms 53.0 ms -50.0%" in " ".join(printed.split())
    assert "cache hit_rate 0.5 -" in " ".join(printed.split())
    assert json.loads(Path("out/validation.json").read_text())["runs"] == loads(capsys, arguments)


def test_overrides_and_a_profile_come_before_what_the_file_sets(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    light, _, wide = loads(capsys, [*arguments, "--set", "cost.unit=20ms", "--set", "clients.delay=5ms"])
    assert light["metrics"]["e2e_s"]["mean"]["predicted"] == pytest.approx(0.105)
    assert wide["metrics"]["e2e_s"]["mean"]["predicted"] == pytest.approx(0.100)
    light, *_ = loads(capsys, [*arguments, "--profile", "h100-llama-3.1-8b"])
    assert light["profile"]["name"] == "h100-llama-3.1-8b"


@pytest.mark.parametrize(
    ("file", "complaint"),
    [
        ("load: []", "stats.yaml: load: unknown key; did you mean loads?"),
        ("loads: []", "stats.yaml: loads: found an empty list; expected a load"),
        ("loads: [{rate: 2}]", "stats.yaml: loads.0.statistics: missing"),
        ("loads: [{statistics: {}}]", "loads.0.statistics: found nothing; expected keys such as"),
        ("loads: [{statistics: {ttft: {mean: 1}}}]", "loads.0.statistics.ttft: unknown key; did you mean"),
        (
            "loads: [{statistics: {ttft_s: {p98: 1}}}]",
            "loads.0.statistics.ttft_s.p98: unknown key; did you mean loads.0.statistics.ttft_s.p99?",
        ),
        ("loads: [{statistics: {ttft_s: 1}}]", "loads.0.statistics: ttft_s: found 1; expected keys such as n"),
        ("loads: [{statistics: {makespan_s: {mean: 1}}}]", "makespan_s: found {'mean': 1}; expected a number"),
        ("loads: [{statistics: {ttft_s: {mean: 5 mm}}}]", "ttft_s.mean: found '5 mm'; expected one of the units"),
        ("loads: [{statistics: {ttft_s: {mean: -1}}}]", "ttft_s.mean: found -1; expected a time of at least 0"),
        ("loads: [{statistics: {ttft_s: {mean: true}}}]", "ttft_s.mean: found True; expected a number of seconds"),
        ("loads: [{rate: 0, statistics: {ttft_s: {mean: 1}}}]", "loads.0.rate: found 0; expected a number above 0"),
        (
            "loads: [{set: {engine.slotz: 2}, statistics: {ttft_s: {mean: 1}}}]",
            "stats.yaml: engine.slotz=2: engine.yaml: engine.slotz: unknown key; did you mean engine.slots?",
        ),
        (
            "loads: [{rate: 2, set: {clients.closed.clients: 2}, statistics: {ttft_s: {mean: 1}}}]",
            "clients that wait for their answers have no rate; expected set, as in set: {clients.closed.clients: 8}",
        ),
    ],
)
def test_what_is_no_file_of_statistics_is_refused_in_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str], file: str, complaint: str
) -> None:
    Path("stats.yaml").write_text(file)
    assert slotstep_exits(*arguments) == 2
    printed = capsys.readouterr()
    assert complaint in printed.err
    assert len(printed.err.splitlines()) == 1


def test_statistics_stand_alone(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for more, complaint in (
        (["other.csv"], "found other files beside stats.yaml; expected one file of statistics"),
        (["--prompts", "3"], "--prompts goes with measured runs that have a row for each request"),
        (["--rounds", "3"], "--rounds goes with --replay"),
    ):
        assert slotstep_exits(*arguments, *more) == 2
        assert complaint in capsys.readouterr().err
