"""A measuring window in a scenario: its figures beside those of the run, what is refused, what is said."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

import slotstep
from reports.text.run_summary import summary_table
from slotstep.cli.app import main
from slotstep.runs.result import Result
from traces.errors import BadInput

THREE: dict[str, Any] = {
    "workload": {"requests": [{"id": str(n), "output": 3, "arrival": f"{20 * n}ms"} for n in range(3)]},
    "engine": {"slots": 1},
    "cost": {"unit": "10ms"},
    "objectives": {"e2e": "40ms"},
}


def measured(**window: str) -> Result:
    """Three requests at 0, 20 and 40 ms, each of 30 ms in the only slot, and a window."""
    return slotstep.run(slotstep.parse({**THREE, "measure": window}))


def test_a_window_has_its_figures_beside_those_of_the_run() -> None:
    whole = slotstep.run(slotstep.parse(THREE)).summary
    summary = measured(**{"from": "10ms", "to": "70ms"}).summary
    window = summary["measured"]
    assert {key: value for key, value in summary.items() if key != "measured"} == {
        key: value for key, value in whole.items() if key != "measured"
    }
    assert whole["measured"] is None
    assert window["requests"]["injected"] == 2
    assert window["rates"]["offered_per_s"] == pytest.approx(2 / 0.06)
    assert window["rates"]["finished_per_s"] == pytest.approx(2 / 0.06)
    assert window["attainment"] == 0.5
    assert window["goodput_per_s"] == pytest.approx(2 / 0.06)
    assert window["e2e_s"]["max"] == pytest.approx(0.05)


def test_the_table_shows_both_and_the_offered_rate_beside_the_served() -> None:
    file = io.StringIO()
    Console(file=file, width=160).print(summary_table(measured(**{"from": "10ms", "to": "70ms"}).summary))
    text = file.getvalue()
    assert "75.0 requests/s offered, 33.3 finished" in text
    assert "50.0 requests/s offered, 33.3 finished, by the n - 1 gaps between n requests" in text
    assert "at most 2 (mean 1.33) in flight, 1 (mean 1.00) running" in text
    assert "from 10.0 ms to 70.0 ms: 2 wanted, 2 finished" in text


def test_a_run_that_ends_before_its_window_does_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    said = "measure: the run ended at 0.09 s; the window is from 0.01 s to 1 s"
    assert measured(**{"from": "10ms", "to": "1s"}).summary["remarks"] == [said]
    assert measured(**{"from": "10ms"}).summary["remarks"] == []
    file = tmp_path / "three.yaml"
    file.write_text(slotstep.scenario.document.dump({**THREE, "measure": {"to": "1s"}}))
    with pytest.raises(SystemExit) as ended:
        main(["run", str(file)])
    assert not ended.value.code
    assert "measure: the run ended at 0.09 s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("window", "complaint"),
    [
        ({"from": "5s", "to": "5s"}, "measure: found from 5s to 5s; expected an end after the beginning"),
        ({"from": "5s", "until": "9s"}, "measure.until: unknown key"),
        ({"from": 5}, "measure.from: found 5, without a unit"),
    ],
)
def test_what_is_no_window_is_refused(window: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        slotstep.parse({**THREE, "measure": window})
    assert complaint in str(error.value)


def test_the_resolved_scenario_keeps_its_window() -> None:
    scenario = slotstep.parse({**THREE, "measure": {"from": "5s", "to": "15s"}})
    assert slotstep.resolved(scenario)["measure"] == {"from": "5s", "to": "15s"}
    assert slotstep.resolved(slotstep.parse(slotstep.resolved(scenario))) == slotstep.resolved(scenario)
