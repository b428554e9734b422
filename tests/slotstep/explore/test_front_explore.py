"""`slotstep explore`: a change is the run of the scenario that is copied, a bad value is one line; in a browser."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from browser import check_layout, chromium, messages
from command_line import complaint

import slotstep
from slotstep.explore.server import Server
from slotstep.explore.session import Session

EVIL = "<img src=x onerror=alert(1)>"
LAWS = {
    "arrivals": {"poisson": {"rate": 40}},
    "prompt": {"fixed": 50},
    "output": {"lognormal": {"mean": 20, "cv": 1}},
}
SCENARIO = {
    "name": EVIL,
    "workload": {"synthetic": {"requests": 60, **LAWS}},
    "engine": {"slots": 8, "token_budget": 256, "pages": 200},
    "cost": {"affine": {"base": "5ms", "per_sequence": "1ms"}},
    "objectives": {"ttft": "500ms"},
}
ALL = "All 60 requests are simulated."


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(slotstep.parse(SCENARIO), "mine.yaml", 500)


@pytest.fixture(scope="module")
def server(session: Session) -> Iterator[Server]:
    with Server(session) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_a_scenario_has_a_control_for_each_number_of_its_laws_and_its_engine(session: Session) -> None:
    values = {control.key: control.value for control in session.controls}
    assert values == {
        "requests": 500,
        "rate": 1,
        "workload.synthetic.arrivals.poisson.rate": 40,
        "workload.synthetic.prompt.fixed": 50,
        "workload.synthetic.output.lognormal.mean": 20,
        "workload.synthetic.output.lognormal.cv": 1,
        "engine.slots": 8,
        "engine.token_budget": 256,
        "engine.pages": 200,
        "policy": "fcfs",
    }


def test_a_change_is_the_run_of_the_scenario_that_can_be_copied(session: Session) -> None:
    answer = session.change({"engine.slots": "3", "rate": "2", "policy": "sjf"}, False)
    assert answer["said"].startswith(f"{ALL} Simulated and drawn in ")
    copied = slotstep.parse(yaml.safe_load(answer["scenario"]))
    assert (copied.engine.slots, copied.policy.name) == (3, "sjf")
    by_hand = {**SCENARIO, "engine": {**SCENARIO["engine"], "slots": 3}, "policy": "sjf"}
    by_hand["workload"] = {**SCENARIO["workload"], "scale_rate": 2}
    wanted = slotstep.run(slotstep.parse(by_hand)).summary["log_sha256"]
    assert slotstep.run(copied).summary["log_sha256"] == wanted
    assert wanted in session.report
    assert "The runs differ in rate: 1.0 -&gt; 2, engine.slots: 8 -&gt; 3, policy: fcfs -&gt; sjf." in session.report


def test_how_many_requests_are_simulated_is_said(session: Session) -> None:
    assert session.change({"requests": "20"}, False)["said"].startswith(
        "The first 20 requests are simulated; the copied scenario has all."
    )
    assert session.change({}, False)["said"].startswith(ALL)


def test_a_pinned_run_is_what_the_next_is_compared_with() -> None:
    own = Session(slotstep.parse(SCENARIO), "mine.yaml", 20)
    own.change({"engine.slots": "4"}, True)
    assert "changed (fcfs)" not in own.report
    own.change({"engine.slots": "2"}, False)
    assert "The runs differ in engine.slots: 4 -&gt; 2." in own.report


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"engine.slots": "0"}, "mine.yaml: engine.slots: found 0; expected a whole number of at least 1"),
        ({"rate": "-1"}, "rate: found -1; expected a number above 0"),
        ({"requests": "many"}, "requests: found 'many'; expected a whole number of at least 1"),
        ({"engine.slots": "["}, "engine.slots: found '['; expected a value"),
        ({"engine.device": "x"}, "engine.device: no control of this page"),
        ([], "expected values by key"),
    ],
)
def test_a_bad_value_is_one_line_and_the_report_stays(session: Session, values: Any, error: str) -> None:
    before = session.report
    assert session.change(values, True) == {"error": error}
    assert session.report == before


def test_another_gpu_brings_the_defaults_of_its_device_and_keeps_the_host_s_part() -> None:
    laws = {**LAWS, "prompt": {"fixed": 500}}
    scenario = {
        "workload": {"synthetic": {"requests": 5, **laws}},
        "engine": {"preset": "vllm", "fit": 0.9},
        "cost": {"profile": "h100-llama-3.1-8b", "host": "800us"},
    }
    own = Session(slotstep.parse(scenario), "mine.yaml", 5)
    answer = own.change({"cost.profile": "a100-llama-3.1-8b"}, False)
    copied = yaml.safe_load(answer["scenario"])
    assert copied["cost"] == {"profile": "a100-llama-3.1-8b", "host": "800us"}
    alone = slotstep.parse({**scenario, "cost": {**scenario["cost"], "profile": "a100-llama-3.1-8b"}})
    assert answer["values"]["engine.slots"] == str(alone.engine.slots)
    assert own.pinned.values["engine.slots"] != alone.engine.slots
    assert slotstep.parse(copied).engine == alone.engine


def test_only_who_has_the_token_gets_an_answer(server: Server) -> None:
    root = f"http://127.0.0.1:{server.server_port}"
    assert server.server_address[0] == "127.0.0.1"
    for address, body in ((f"{root}/", None), (f"{root}/x/", None), (f"{root}/x/run", b"{}")):
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(address, body)
        refused.value.close()
    with urllib.request.urlopen(server.address) as answer:
        assert EVIL not in answer.read().decode()
    for body in (b"{", b"[]", b"{}"):
        with pytest.raises(urllib.error.HTTPError, match="400") as refused:
            urllib.request.urlopen(f"{server.address}run", body)
        refused.value.close()


def test_a_port_that_is_taken_is_one_line(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(json.dumps(SCENARIO))
    port = str(server.server_port)
    assert complaint(capsys, "explore", file, "--port", port) == (
        f"--port {port}: 127.0.0.1 cannot be listened on: Address already in use"
    )


@pytest.mark.parametrize(
    ("error", "printed"), [(BrokenPipeError, False), (ConnectionResetError, False), (KeyError, True)]
)
def test_a_reader_who_leaves_is_no_error(
    server: Server, capsys: pytest.CaptureFixture[str], error: type[Exception], printed: bool
) -> None:
    try:
        raise error
    except error:
        server.handle_error(None, ("127.0.0.1", 1))
    assert bool(capsys.readouterr().err) is printed


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_term_end_it_with_exit_code_0(tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(json.dumps(SCENARIO))
    command = subprocess.Popen(
        [sys.executable, "-m", "slotstep", "explore", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where the tests run in background
    )
    with command:
        assert command.stdout is not None
        address = command.stdout.readline().strip()
        with urllib.request.urlopen(address) as answer:
            assert answer.status == 200
        command.send_signal(number)
        _, said = command.communicate(timeout=60)
    assert (command.returncode, said) == (0, "Ctrl-C ends it\nended\n")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.mark.slow
@pytest.mark.parametrize(("width", "look"), [(1280, "light"), (380, "light"), (1280, "dark")])
def test_the_page_simulates_and_draws_again_without_a_message(
    server: Server, browser: Any, width: int, look: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=look)
    tab = context.new_page()
    said = messages(tab)
    tab.goto(server.address)
    assert tab.locator("h1").inner_text() == EVIL
    assert tab.locator("#said").inner_text() == ALL
    slots = tab.get_by_label("engine.slots", exact=True)
    tab.get_by_label("engine.slots, slider").fill("-100")
    assert slots.input_value() == "1"
    inner = tab.frame_locator("iframe")
    inner.get_by_text("The runs differ in engine.slots: 8 -> 1.").wait_for()
    assert "slots: 1\n" in tab.locator("pre").text_content()
    for title in ("Where the slot-steps went", "Slot timeline", "Latency"):
        assert inner.get_by_role("heading", name=title, exact=True).count() == 1
    frame = next(each for each in tab.frames if each.name != tab.main_frame.name or each.parent_frame)
    check_layout(tab, width)
    check_layout(frame, tab.locator("iframe").bounding_box()["width"])

    slots.fill("none")
    error = tab.get_by_role("alert")
    error.wait_for()
    assert error.inner_text() == "mine.yaml: engine.slots: found 'none'; expected a whole number of at least 1"
    check_layout(tab, width)
    tab.get_by_role("button", name="Scenario's values").click()
    error.wait_for(state="hidden")
    assert slots.input_value() == "8"
    assert said == []
    context.close()
