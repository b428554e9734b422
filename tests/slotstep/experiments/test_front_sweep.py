"""Sweeps: what a grid means, that every run is there once whatever happens, and the same wherever it ran."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from repository import ROOT

import slotstep
from slotstep.experiments.sweeps import grid, identity, store, work
from slotstep.experiments.sweeps.sweep import Tally, sweep
from slotstep.runs import workload
from traces.errors import BadInput

EXAMPLES = ROOT / "examples"
COMMAND = [sys.executable, "-c", "from slotstep.cli.app import main; main()"]

TINY: dict[str, Any] = {
    "workload": {"synthetic": {"requests": 6, "arrivals": {"poisson": {"rate": 100}}, "output": 4}},
    "engine": {"slots": 2},
    "cost": {"unit": "5ms"},
}
EIGHT = {"scenario": str(EXAMPLES / "eight-static.yaml")}


def points(**plan: Any) -> list[dict[str, Any]]:
    """The axes of the points of a grid over the tiny scenario."""
    return [dict(point.axes) for point in grid.read({"scenario": TINY, **plan}).points]


def written(path: Path, plan: dict[str, Any]) -> Path:
    """A grid file."""
    path.write_text(yaml.safe_dump(plan))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a sweep's directory by its name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def here(plan: dict[str, Any], folder: Path, **how: Any) -> store.Store:
    """A sweep in this process."""
    return sweep(grid.read(plan), folder, jobs=1, **how)


def test_a_grid_is_every_combination_and_its_last_key_varies_fastest() -> None:
    assert points(grid={"policy": ["fcfs", "sjf"], "engine.slots": [1, 2]}, seeds=2) == [
        {"policy": policy, "engine_slots": slots, "seed": seed}
        for policy in ("fcfs", "sjf")
        for slots in (1, 2)
        for seed in (0, 1)
    ]


def test_keys_go_together_with_every_combination_of_the_others() -> None:
    together = [{"engine.slots": 1, "engine.pages": 10}, {"engine.slots": 2, "engine.pages": 20}]
    assert points(together=together, grid={"seed": [5, 6]}) == [
        {"engine_slots": slots, "engine_pages": pages, "seed": seed}
        for slots, pages in ((1, 10), (2, 20))
        for seed in (5, 6)
    ]


def test_a_column_has_the_type_of_its_values() -> None:
    laws = [3, {"geometric": {"mean": 4}}]
    found = grid.read(
        {
            "scenario": TINY,
            "grid": {"engine.watermark": [0, 0.5], "engine.chunked": [True], "workload.synthetic.output": laws},
        }
    )
    assert found.kinds == {
        "engine_watermark": "double",
        "engine_chunked": "bool",
        "workload_synthetic_output": "string",
    }
    assert found.points[1].axes == {
        "engine_watermark": 0.0,
        "engine_chunked": True,
        "workload_synthetic_output": '{"geometric": {"mean": 4}}',
    }


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (
            {"grid": {"engine.slotz": [1]}},
            "grid, engine.slotz=1: engine.slotz: unknown key; did you mean engine.slots?",
        ),
        ({"gird": {}}, "grid: gird: unknown key; did you mean grid?"),
        ({"grid": {"seed": []}}, "grid: grid: seed: found no values; expected at least one"),
        ({"grid": {"seed": [1, 2, 1]}}, "grid: grid: seed: 1 is there twice; expected each value once"),
        (
            {"set": {"seed": 4}, "seeds": 3},
            "grid: seed is set in two places; expected it in one of set, grid, together and seeds",
        ),
        (
            {"together": [{"seed": 1}, {"engine.slots": 1}]},
            "grid: together: found the keys engine.slots; expected seed in each",
        ),
    ],
)
def test_a_grid_that_is_none_is_refused_in_one_line(plan: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInput) as caught:
        grid.read({"scenario": TINY, **plan})
    assert str(caught.value) == reason


def test_a_row_says_what_the_run_said(tmp_path: Path) -> None:
    frame = here({**EIGHT, "grid": {"engine.batching": ["static", "continuous"]}}, tmp_path).frame()
    assert list(frame.engine_batching) == ["continuous", "static"]
    static = frame.iloc[1]
    assert (static.slot_steps_bought, static.slot_steps_decode + static.slot_steps_prefill) == (960, 172)
    assert static.occupancy == pytest.approx(172 / 960)
    assert (static.status, static.requests_finished, static.ttft_s_n) == ("ended", 8, 8)
    summary = slotstep.run(slotstep.load(EIGHT["scenario"])).summary
    assert yaml.safe_load(static.summary) == summary
    again = slotstep.run(slotstep.parse(yaml.safe_load(static.settings))).summary
    assert again["log_sha256"] == static.log_sha256


def test_a_run_that_fails_is_a_row_with_its_reason_and_stops_nobody(tmp_path: Path) -> None:
    plan = {
        "scenario": TINY,
        "grid": {"engine.batching": ["static", "continuous"], "workload.between": [["0s", "1h"], ["2h", "3h"]]},
        "set": {"engine.evict": "after"},
    }
    frame = here(plan, tmp_path).frame()
    refused, ended = frame[frame.engine_batching == "static"], frame[frame.engine_batching == "continuous"]
    assert list(refused.status) == ["failed"] * 2
    assert refused.error.str.contains("evict: after needs batching: continuous").all()
    assert list(ended.status) == ["ended", "failed"]
    assert ended.error.iloc[1].startswith("BadInput: scenario: workload.between: no request arrives from")
    tallies: list[Tally] = []
    here(plan, tmp_path, progress=tallies.append)
    assert tallies == [Tally(4, 4)]
    here(plan, tmp_path, retry=True, progress=tallies.append)
    assert tallies[-1] == Tally(4, 1, done=3, failed=3)


def test_a_directory_holds_one_sweep_which_may_grow(tmp_path: Path) -> None:
    here({"scenario": TINY, "seeds": 2}, tmp_path)
    before = contents(tmp_path)
    tallies: list[Tally] = []
    here({"scenario": TINY, "seeds": 3}, tmp_path, progress=tallies.append)
    assert tallies == [Tally(3, 2), Tally(3, 2, done=1)]
    del before["grid.json"]
    assert contents(tmp_path).items() > before.items()
    with pytest.raises(
        BadInput, match=r"holds a sweep over seed \(int64\), this one is over engine\.slots \(int64\)"
    ):
        here({"scenario": TINY, "grid": {"engine.slots": [1]}}, tmp_path)


def test_an_old_sweep_with_fewer_metrics_still_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here({"scenario": TINY, "seeds": 2}, tmp_path)
    path = next((tmp_path / "runs").iterdir())
    whole = pq.read_table(path)
    old = whole.select([name for name in whole.column_names if name not in ("occupancy", "ttft_s_p99")])
    pq.write_table(old.append_column("of_before", pa.array([7])), path)
    frame = store.opened(tmp_path).frame()
    assert len(frame) == 2
    assert frame["occupancy"].isna().sum() == frame["ttft_s_p99"].isna().sum() == 1
    assert list(frame["of_before"].dropna()) == [7]
    with pytest.raises(SystemExit) as ended:
        slotstep_main("results", tmp_path)
    assert not ended.value.code
    assert "occupancy" in capsys.readouterr().out


def test_a_column_of_another_type_is_refused_in_one_line(tmp_path: Path) -> None:
    here({"scenario": TINY, "seeds": 2}, tmp_path)
    old = pa.table({"run": ["old"], "status": ["ended"], "steps": ["many"]})
    pq.write_table(old, tmp_path / "runs" / "old.parquet")
    (tmp_path / "grid.json").unlink()
    with pytest.raises(BadInput, match=r"has rows with a column of another type, .*steps"):
        store.opened(tmp_path).table()


MANY = {"scenario": TINY, "grid": {"policy": ["fcfs", "sjf"]}, "seeds": 100}


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    plan = written(tmp_path / "grid.yaml", MANY)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    process = subprocess.Popen([*COMMAND, "sweep", plan, "--out", cut, "--jobs", "1"], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (cut / "runs").exists() or len(list((cut / "runs").iterdir())) < 60:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    left = {path: path.stat().st_mtime_ns for path in (cut / "runs").iterdir()}
    assert 60 <= len(left) < 200
    tallies: list[Tally] = []
    sweep(grid.load_grid(plan), cut, jobs=1, progress=tallies.append)
    assert tallies[-1] == Tally(200, len(left), done=200 - len(left))
    assert {path: path.stat().st_mtime_ns for path in left} == left
    sweep(grid.load_grid(plan), whole, jobs=1)
    expected = contents(whole)
    assert len(expected) == 202
    # What was half written when the process died lies above, under a name that nothing reads.
    assert {name: content for name, content in contents(cut).items() if name[0] != "."} == expected
    assert slotstep.sweep(grid.load_grid(plan), cut, jobs=1).table().equals(store.opened(whole).table())


@pytest.mark.slow
def test_two_sweeps_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    plan = written(tmp_path / "grid.yaml", {**MANY, "seeds": 30})
    shared = [*COMMAND, "sweep", plan, "--out", tmp_path / "shared", "--jobs", "1"]
    both = [subprocess.Popen(shared, stdout=subprocess.DEVNULL) for _ in range(2)]
    sweep(grid.load_grid(plan), tmp_path / "alone", jobs=1)
    assert [process.wait() for process in both] == [0, 0]
    assert contents(tmp_path / "shared") == contents(tmp_path / "alone")


def test_a_disk_that_is_full_stops_the_sweep_and_loses_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = {"scenario": TINY, "seeds": 5}
    write = store.Store.write
    before: list[int] = []

    def full(self: store.Store, line: dict[str, Any]) -> None:
        if len(before) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path(line["run"])))
        before.append(1)
        write(self, line)

    monkeypatch.setattr(store.Store, "write", full)
    with pytest.raises(OSError, match="No space left on device"):
        here(plan, tmp_path)
    monkeypatch.undo()
    assert len(store.opened(tmp_path).frame()) == 3
    tallies: list[Tally] = []
    here(plan, tmp_path, progress=tallies.append)
    assert tallies[-1] == Tally(5, 3, done=2)


@pytest.mark.slow
def test_a_row_that_does_not_fit_the_disk_is_absent(tmp_path: Path) -> None:
    """The real thing: the system lets no file grow above a kilobyte."""
    plan = written(tmp_path / "grid.yaml", {"scenario": TINY, "seeds": 5})
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024));"
        "from slotstep.cli.app import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", script, "sweep", plan, "--out", tmp_path / "out", "--jobs", "1"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("error: ")
    assert found.stderr.endswith("File too large\n")
    assert list((tmp_path / "out" / "runs").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_refused_before_any_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "simulate", lambda *_, **__: pytest.fail("a run has started"))
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(BadInput, match="cannot be written: Not a directory"):
        here({"scenario": TINY}, tmp_path / "file" / "out")
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o500)
    if os.access(locked, os.W_OK):
        pytest.skip("this user may write anywhere: a read-only folder stops nobody")
    with pytest.raises(BadInput, match="cannot be written: Permission denied"):
        here({"scenario": TINY}, locked / "out")


def test_a_run_is_named_by_the_content_of_its_trace(tmp_path: Path) -> None:
    head = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    lines = ["2023-11-16 18:15:46.6805900,374,44\n", "2023-11-16 18:15:50.9951690,396,109\n"]
    for name, content in {"a": lines, "same": lines, "other": lines[:1]}.items():
        (tmp_path / f"{name}.csv").write_text(head + "".join(content))

    def name_of(file: str, **axes: int) -> str:
        settings = {**TINY, "workload": {"trace": {"azure": str(tmp_path / f"{file}.csv")}}}
        return identity.name(slotstep.resolved(slotstep.parse(settings)), axes)

    before = name_of("a")
    assert name_of("same") == before
    assert name_of("other") != before
    assert name_of("a", engine_slots=2) != before
    (tmp_path / "a.csv").write_text(head + "".join(lines[:1]))
    assert name_of("a") == name_of("other")


def test_a_worker_reads_a_trace_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n")
    read: list[Any] = []
    replayed = workload.replayed
    monkeypatch.setattr(workload, "replayed", lambda given: read.append(given) or replayed(given))
    plan = {
        "scenario": {**TINY, "workload": {"trace": {"azure": str(trace)}}},
        "grid": {"workload.scale_rate": [1, 2], "engine.slots": [1, 2]},
    }
    frame = here(plan, tmp_path / "out").frame()
    assert list(frame.status) == ["ended"] * 4
    assert len(read) == 1


def test_the_table_opens_in_pandas_and_duckdb_and_answers_queries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here({**EIGHT, "grid": {"engine.slots": [4, 8]}}, tmp_path)
    assert len(pd.read_parquet(tmp_path / "runs")) == 2
    direct = duckdb.sql(f"SELECT max(occupancy) FROM '{tmp_path}/runs/*.parquet'").fetchall()
    question = "SELECT engine_slots AS slots, slot_steps_bought AS bought FROM runs ORDER BY slots"
    with pytest.raises(SystemExit) as ended:
        slotstep_main("results", tmp_path, "--query", question, "--csv")
    assert not ended.value.code
    # Four slots, in fours: 5 8 6 120, then 7 9 6 11.
    assert capsys.readouterr().out == f"slots,bought\n4,{4 * (120 + 11)}\n8,{8 * 120}\n"
    assert direct == [(pytest.approx(172 / (4 * 131)),)]


def test_a_table_too_wide_for_its_heads_is_shown_row_by_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    here({**EIGHT, "grid": {"engine.slots": [4, 8]}}, tmp_path)
    with pytest.raises(SystemExit):
        slotstep_main("results", tmp_path, "--query", "SELECT * FROM runs ORDER BY engine_slots")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["row", "2", "of", "2"] in lines
    assert [line for line in lines if line[:1] == ["slot_steps_bought"]] == [
        ["slot_steps_bought", str(4 * (120 + 11))],
        ["slot_steps_bought", str(8 * 120)],
    ]
    with pytest.raises(SystemExit):
        slotstep_main("results", tmp_path, "--query", "SELECT engine_slots, status FROM runs ORDER BY engine_slots")
    assert [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()][-2:] == [
        ["4", "ended"],
        ["8", "ended"],
    ]


def slotstep_main(*arguments: object) -> None:
    """The command line."""
    from slotstep.cli.app import main

    main([str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ["--query", "SELECT nothing FROM runs"],
            'error: --query: Binder Error: Referenced column "nothing" not found',
        ),
        (["--csv", "--json"], "error: --csv --json: expected one of them"),
    ],
)
def test_a_query_that_is_none_gets_one_line(
    arguments: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here({"scenario": TINY}, tmp_path)
    with pytest.raises(SystemExit) as ended:
        slotstep_main("results", tmp_path, *arguments)
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(reason)
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"backend": "spark"}, "--backend spark: expected one of local, dask, ray"),
        ({"backend": "dask"}, "--backend dask: expected --address of its scheduler beside it"),
        (
            {"address": "tcp://here:1"},
            "--address tcp://here:1: local processes have none; expected --backend dask or ray",
        ),
    ],
)
def test_a_backend_that_is_none_is_refused(how: dict[str, str], reason: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        here({"scenario": TINY}, tmp_path, **how)
    assert str(caught.value) == reason


CLUSTER = {
    "scenario": TINY,
    "grid": {"policy": ["fcfs", {"sjf": {"error": 0.5}}], "engine.slots": [1, 2]},
    "seeds": 3,
}


def on_cluster(script: str, *arguments: object) -> None:
    """Run a script that has a cluster of its own, in a process of its own."""
    found = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


DASK = """
import sys
from distributed import LocalCluster
from slotstep.cli.app import main
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True) as cluster:
        where = ["--backend", "dask", "--address", cluster.scheduler_address]
        main(["sweep", sys.argv[1], "--out", sys.argv[2], *where])
"""


@pytest.mark.slow
def test_dask_gives_the_same_bytes_as_this_process(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    plan = written(tmp_path / "grid.yaml", CLUSTER)
    sweep(grid.load_grid(plan), tmp_path / "here", jobs=1)
    script = tmp_path / "dask_sweep.py"
    script.write_text(DASK)
    on_cluster(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", plan, tmp_path / "dask")
    assert contents(tmp_path / "dask") == contents(tmp_path / "here")


@pytest.mark.slow
def test_two_processes_give_the_same_bytes_as_this_one(tmp_path: Path) -> None:
    plan = written(tmp_path / "grid.yaml", CLUSTER)
    sweep(grid.load_grid(plan), tmp_path / "here", jobs=1)
    found = subprocess.run([*COMMAND, "sweep", plan, "--out", tmp_path / "two", "--jobs", "2"], check=False)
    assert found.returncode == 0
    assert contents(tmp_path / "two") == contents(tmp_path / "here")


def test_ray_gives_the_same_bytes_as_this_process(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'slotstep[ray]'")
    plan = written(tmp_path / "grid.yaml", CLUSTER)
    sweep(grid.load_grid(plan), tmp_path / "here", jobs=1)
    how = ["--backend", "ray", "--address", "local", "--jobs", "2"]
    found = subprocess.run([*COMMAND, "sweep", plan, "--out", tmp_path / "ray", *how], check=False)
    assert found.returncode == 0
    assert contents(tmp_path / "ray") == contents(tmp_path / "here")
