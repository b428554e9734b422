"""Forward-pass metrics at the command line: `run` writes them, `calibrate from-steps` reads files and sockets."""

from __future__ import annotations

import builtins
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from command_line import answer, code_of, complaint
from forward_passes import as_lines, dynamo_trace, sglang

import slotstep
from calibrate.fit.step_log import of_log, predicted
from calibrate.profiles.profile import read
from sim.cost.forms import Roofline

ABOUT = [f"--about={each}" for each in ("device=H100", "model=small", "dtype=bfloat16", "tensor_parallel=1")]
COST = {
    "host": "1ms",
    "weight_pass": "10ms",
    "per_token": "40us",
    "per_context_token": "50ns",
    "per_chunk_work": "0.4ns",
    "per_chunk": "300us",
    "per_sequence": "10us",
}
SCENARIO: dict[str, Any] = {
    "workload": {
        "synthetic": {
            "requests": 600,
            "arrivals": {"poisson": {"rate": 16}},
            "prompt": {"lognormal": {"mean": 900, "cv": 1}},
            "output": {"lognormal": {"mean": 200, "cv": 0.8}},
        }
    },
    "engine": {"slots": 128, "pages": 6000, "token_budget": 2048},
    "cost": {"roofline": COST},
    "seed": 3,
}


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "engine.yaml").write_text(yaml.safe_dump(SCENARIO))
    return tmp_path / "engine.yaml"


def test_a_cost_written_as_forward_passes_and_fitted_again_is_found_within_a_percent(
    scenario: Path, tmp_path: Path
) -> None:
    passes, profile = tmp_path / "passes.jsonl.gz", tmp_path / "found.yaml"
    assert code_of("run", scenario, "--forward-pass-metrics", passes) == 0
    assert code_of("calibrate", "from-steps", passes, "--out", profile, *ABOUT) == 0
    found = read(profile).cost()
    assert isinstance(found, Roofline)
    # The steps of another run: another seed, other prompts.
    other = of_log(slotstep.run(slotstep.parse({**SCENARIO, "seed": 4})).log)
    error = predicted(found, other) / other["duration_ns"] - 1
    assert np.abs(error).max() < 0.01
    assert found.weight_pass == pytest.approx(10e6, rel=0.01)
    assert found.per_token == pytest.approx(40e3, rel=0.01)
    assert found.per_context_token == pytest.approx(50, rel=0.01)
    assert found.per_sequence == pytest.approx(10e3, rel=0.01)


def test_writing_forward_passes_changes_nothing_of_the_run(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_records = answer(capsys, "run", scenario, "--forward-pass-metrics", tmp_path / "passes.jsonl")
    assert with_records == answer(capsys, "run", scenario)
    assert len((tmp_path / "passes.jsonl").read_text().splitlines()) == with_records["steps"]


@contextmanager
def publishing(records: list[dict[str, Any]], payload: bytes | None = None) -> Iterator[str]:
    """The address of a publisher that sends these records again and again, in frames as engines do."""
    import msgpack
    import zmq

    stop = threading.Event()
    with zmq.Context() as context, context.socket(zmq.PUB) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        port = socket.bind_to_random_port("tcp://127.0.0.1")

        def publish() -> None:
            number = 0
            while not stop.wait(0.001):
                record = {**records[number % len(records)], "counter_id": number}
                body = msgpack.packb(record) if payload is None else payload
                socket.send_multipart((b"", number.to_bytes(8, "big"), body))
                number += 1

        thread = threading.Thread(target=publish, daemon=True)
        thread.start()
        try:
            yield f"tcp://127.0.0.1:{port}"
        finally:
            stop.set()
            thread.join()


def test_a_live_engine_is_read_until_there_are_enough_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("zmq")
    pytest.importorskip("msgpack")
    kept = tmp_path / "kept.jsonl"
    with publishing(list(sglang())) as address:
        asked = ("calibrate", "from-steps", "--live", address, "--records", "200", "--hold-out", "0", "--keep", kept)
        assert code_of(*asked, "--json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["fitted"]["n"] == 160
    assert "200 records written" in printed.err
    assert "40 records without work (heartbeats) left out" in printed.err
    live = json.loads(printed.out)
    assert answer(capsys, "calibrate", "from-steps", kept, "--hold-out", "0") == live


def test_a_silent_socket_ends_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("zmq")
    asked = ("calibrate", "from-steps", "--live", "tcp://127.0.0.1:9", "--within", "10ms")
    assert complaint(capsys, *asked) == (
        "tcp://127.0.0.1:9: 0 records of forward passes, none with work; expected one a step"
    )


def test_what_is_no_record_ends_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("zmq")
    pytest.importorskip("msgpack")
    with publishing([{}], payload=b"\x93\x01\x02\x03") as address:
        said = complaint(capsys, "calibrate", "from-steps", "--live", address)
    assert said == f"{address}, message 1: found [1, 2, 3]; expected a map with version and wall_time"
    assert "expected tcp://HOST:PORT" in complaint(capsys, "calibrate", "from-steps", "--live", "engine:20380")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    imported = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "zmq":
            raise ModuleNotFoundError("no module", name=name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    said = complaint(capsys, "calibrate", "from-steps", "--live", "tcp://127.0.0.1:9")
    assert said == "reading a socket needs zmq; expected pip install 'slotstep[live]'"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "expected either a log of steps, or --live tcp://HOST:PORT"),
        (("passes.jsonl", "--live", "tcp://127.0.0.1:9"), "expected either a log of steps"),
        (("passes.jsonl", "--prefill-kv", "during"), "--prefill-kv during: expected before or after"),
        (("passes.jsonl", "--clock", "cpu"), "forward-pass metrics have one clock, wall_time"),
        (("passes.jsonl", "--keep", "x.jsonl"), "expected it with --live only"),
        (("--live", "tcp://127.0.0.1:9", "--clock", "cpu"), "expected none with --live"),
        (("--live", "tcp://127.0.0.1:9", "--within", "5"), "--within 5: "),
        (("steps.csv", "--prefill-kv", "before"), "expected it with forward-pass metrics only"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    options: tuple[str, ...],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("passes.jsonl").write_bytes(as_lines(dynamo_trace()))
    Path("steps.csv").write_text("decodes,context,chunks,chunk_tokens,duration_ns\n1,5,0,0,1000\n")
    assert says in complaint(capsys, "calibrate", "from-steps", *options)
