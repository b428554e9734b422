"""`slotstep check`: what changed in a scenario, which way of a metric is better, limits, and the example for CI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from command_line import code_of
from repository import ROOT

from sim.accounting.metrics import METRICS
from slotstep.experiments.checks import scenarios
from slotstep.experiments.checks.baseline import read
from slotstep.experiments.checks.running import scenario_of
from slotstep.experiments.metric_path import direction
from slotstep.scenario import document

EXAMPLE = ROOT / "examples" / "ci"
PAGE = ROOT / "docs" / "checks.md"
TWO = """
workload:
  requests: [{id: a, output: 2}, {id: b, output: 4}, {id: c, output: 1}]
engine: {slots: 2}
cost: {unit: 1ms}
"""
"""Four steps of two slots, of which 7 slot-steps are useful; c waits for the two steps of a."""


@pytest.fixture
def checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, list[str]]]:
    """Runs the command on a baseline of those metrics: its exit code and the lines that it prints."""

    def check(metrics: str | None = None, *options: str) -> tuple[int, list[str]]:
        if not (tmp_path / "two.yaml").exists():
            (tmp_path / "two.yaml").write_text(TWO)
        if metrics is not None:
            (tmp_path / "baseline.yaml").write_text(f"checks: {{two: {{scenario: two.yaml, metrics: {metrics}}}}}\n")
        code = code_of("check", tmp_path / "baseline.yaml", *options)
        return code, capsys.readouterr().out.splitlines()

    return check


def metrics_in(baseline: Path) -> Any:
    return document.read(baseline)["checks"]["two"]["metrics"]


def test_a_failure_names_what_changed_in_the_scenario_before_the_metrics(
    tmp_path: Path, checked: Callable[..., tuple[int, list[str]]]
) -> None:
    assert checked("{steps: 4, wait_s.max: 0.002}", "--update")[0] == 0
    changed = TWO.replace("output: 1}", "output: 1, tenant: x}").replace("slots: 2", "slots: 1")
    (tmp_path / "two.yaml").write_text(changed)
    code, lines = checked(None, "--github", "--junit", str(tmp_path / "junit.xml"))
    assert code == 1
    assert lines[:4] == [
        "two: 2 of 2 metrics differ: 1 worse",
        "  workload.requests.2.tenant: default -> x",
        "  engine.slots: 2 -> 1",
        "  metric      recorded  now    change                 allowed",
    ]
    assert lines[5] == "  wait_s.max  0.002     0.006  +0.004 (+200%), worse  exact"
    marks = [line for line in lines if line.startswith("::error ")]
    assert len(marks) == 2
    assert all(mark.endswith("%0Aworkload.requests.2.tenant: default -> x%0Aengine.slots: 2 -> 1") for mark in marks)
    failure = next(ElementTree.parse(tmp_path / "junit.xml").getroot().iter("failure"))
    assert failure.text == "workload.requests.2.tenant: default -> x\nengine.slots: 2 -> 1"


def test_a_change_that_moves_no_metric_is_named_and_passes(
    tmp_path: Path, checked: Callable[..., tuple[int, list[str]]]
) -> None:
    assert checked("{steps: 4}", "--update")[0] == 0
    (tmp_path / "two.yaml").write_text(TWO.replace("slots: 2", "slots: 2, token_budget: 64"))
    assert checked() == (
        0,
        ["two: 1 metric as recorded", "  engine.token_budget: 2048 -> 64", "1 check: all as recorded"],
    )


def test_a_scenario_that_is_as_recorded_is_said_to_be(checked: Callable[..., tuple[int, list[str]]]) -> None:
    assert checked("{steps: 4}", "--update")[0] == 0
    assert checked("{steps: 5}")[1][1] == "  the scenario is as recorded"


def test_another_trace_and_other_own_code_are_changes_wherever_they_lie(
    tmp_path: Path, checked: Callable[..., tuple[int, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_order", raising=False)
    (tmp_path / "own_order.py").write_text("from policies.fcfs import FirstComeFirstServed as Own\n")
    trace = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,{},4\n"
    (tmp_path / "trace.csv").write_text(trace.format(10))
    (tmp_path / "two.yaml").write_text(
        'workload: {trace: {azure: trace.csv}}\ncost: {unit: 1ms}\npolicy: "own_order:Own"\n'
    )
    assert checked("{steps: 4}", "--update")[0] == 0
    assert str(tmp_path) not in (tmp_path / "baseline.resolved.yaml").read_text()
    (tmp_path / "trace.csv").write_text(trace.format(11))
    (tmp_path / "own_order.py").write_text("from policies.fcfs import FirstComeFirstServed as Own  # anew\n")
    code, lines = checked()
    assert code == 0
    assert lines[1].startswith("  code.own_order.py: ")
    assert lines[2].startswith("  workload.trace.azure: trace.csv (sha256 ")
    assert len(lines) == 4


def test_many_changes_are_counted_beyond_the_first(
    tmp_path: Path, checked: Callable[..., tuple[int, list[str]]]
) -> None:
    (tmp_path / "two.yaml").write_text(f"workload: {{requests: [{'{output: 4}, ' * 30}]}}\ncost: {{unit: 1ms}}\n")
    assert checked("{steps: 4}", "--update")[0] == 0
    (tmp_path / "two.yaml").write_text(f"workload: {{requests: [{'{output: 5}, ' * 30}]}}\ncost: {{unit: 1ms}}\n")
    lines = checked()[1]
    assert lines[1] == "  workload.requests.0.output: 4 -> 5"
    assert lines[21] == "  and 10 more keys"


def test_tolerances_without_values_are_where_a_baseline_starts(
    tmp_path: Path, checked: Callable[..., tuple[int, list[str]]]
) -> None:
    code, lines = checked("{steps: {within: 1}, wait_s.max: {worse: 5%}, tpot_s.p99: {within: 2%}}")
    assert code == 1
    assert [line.split()[:2] for line in lines[3:6]] == [
        ["steps", "nothing"],
        ["wait_s.max", "nothing"],
        ["tpot_s.p99", "nothing"],
    ]
    assert checked(None, "--update")[0] == 0
    assert metrics_in(tmp_path / "baseline.yaml") == {
        "steps": {"value": 4, "within": 1},
        "wait_s.max": {"value": 0.002, "worse": "5%"},
        "tpot_s.p99": {"value": 0.001, "within": "2%"},
    }
    assert checked()[0] == 0


def test_a_value_is_put_before_a_tolerance_written_in_lines(
    tmp_path: Path, checked: Callable[..., tuple[int, list[str]]]
) -> None:
    written = "checks:\n  two:\n    scenario: two.yaml\n    metrics:\n      steps:\n        {}within: 1   # why\n"
    checked("{steps: 4}")
    (tmp_path / "baseline.yaml").write_text(written.format(""))
    assert checked(None, "--update")[0] == 0
    assert (tmp_path / "baseline.yaml").read_text() == written.format("value: 4\n        ")


def test_better_by_any_amount_passes_is_said_and_is_recorded_by_update(
    tmp_path: Path, checked: Callable[..., tuple[int, list[str]]]
) -> None:
    code, lines = checked("{wait_s.max: {value: 0.004, worse: 5%}, occupancy: {value: 0.7, worse: 0}}", "--update")
    assert code == 0
    assert lines[:4] == [
        "two: 2 metrics as recorded, 2 better",
        "  metric      recorded  now    change                 allowed",
        "  wait_s.max  0.004     0.002  -0.002 (-50%), better  5% worse",
        "  occupancy   0.7       0.875  +0.175 (+25%), better  0 worse",
    ]
    assert metrics_in(tmp_path / "baseline.yaml") == {
        "wait_s.max": {"value": 0.002, "worse": "5%"},
        "occupancy": {"value": 0.875, "worse": 0},
    }
    code, lines = checked("{wait_s.max: {value: 0.0019, worse: 5%}, occupancy: {value: 0.9, worse: 1%}}")
    assert code == 1
    assert lines[0] == "two: 2 of 2 metrics differ: 2 worse"


def test_limits_need_no_value_and_are_not_moved_by_update(
    tmp_path: Path, checked: Callable[..., tuple[int, list[str]]]
) -> None:
    assert checked("{occupancy: {at_least: 0.8, at_most: 0.9}, wait_s.max: {at_most: 0.002}}")[0] == 0
    code, lines = checked("{occupancy: {at_least: 0.9}, steps: 5}", "--update", "--github")
    assert code == 1
    assert "  occupancy            0.875             at least 0.9" in lines
    assert any(
        line.endswith("is 0.875; allowed: at least 0.9%0Athe recorded scenario is not known; --update records it")
        for line in lines
    )
    assert metrics_in(tmp_path / "baseline.yaml") == {"occupancy": {"at_least": 0.9}, "steps": 4}


def test_worse_is_refused_where_no_direction_is_better(checked: Callable[..., tuple[int, list[str]]]) -> None:
    code, lines = checked("{steps: {value: 4, worse: 1}}")
    assert code == 2
    assert lines[0] == (
        "two: broken: steps: neither more nor less is better; expected within, at_least or at_most, not worse"
    )


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("occupancy", "higher"),
        ("ttft_s.p50", "lower"),
        ("ttft_s.n", ""),
        ("tenants.a.b.wait_s.p99", "lower"),
        ("tenants.a.requests.finished", "higher"),
        ("replicas.11.occupancy", "higher"),
        ("slot_steps.held", "lower"),
        ("slot_steps.no_demand", ""),
        ("measured.e2e_s.mean", "lower"),
        ("cache.hit_rate", "higher"),
        ("headroom.in_steps", ""),
        ("ttft_s", ""),
    ],
)
def test_a_declaration_says_which_way_is_better(name: str, better: str) -> None:
    assert direction(name) == better


def test_a_metric_that_comparisons_rank_has_the_direction_of_its_best() -> None:
    ranked = [value for metric in METRICS.values() for value in metric.values.values() if value.best]
    assert ranked
    assert all(value.direction == ("higher" if value.best == "highest" else "lower") for value in ranked)


def test_the_summary_for_a_pull_request_is_markdown_and_added_to_what_the_step_wrote(
    tmp_path: Path, checked: Callable[..., tuple[int, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    step = tmp_path / "step.md"
    step.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    checked("{wait_s.max: 0.001}", "--markdown", str(tmp_path / "own.md"))
    assert step.read_text() == "before\n"
    checked(None, "--github")
    written = (tmp_path / "own.md").read_text()
    assert step.read_text() == f"before\n{written}"
    assert written.splitlines()[2:] == [
        "**two**: 1 of 1 metric differ: 1 worse",
        "",
        "- the recorded scenario is not known; --update records it",
        "",
        "| metric | recorded | now | change | allowed |",
        "| --- | ---: | ---: | ---: | --- |",
        "| wait\\_s.max | 0.001 | 0.002 | +0.001 (+100%), worse | exact |",
    ]


def test_scenarios_of_checks_that_are_gone_leave_the_file(
    tmp_path: Path, checked: Callable[..., tuple[int, list[str]]]
) -> None:
    checked("{steps: 4}", "--update")
    (tmp_path / "baseline.yaml").write_text("checks: {other: {scenario: two.yaml, metrics: {steps: 4}}}\n")
    assert checked(None, "--update")[0] == 0
    assert list(scenarios.read(tmp_path / "baseline.yaml")) == ["other"]


def test_the_recorded_scenarios_of_the_example_are_those_of_its_files() -> None:
    baseline = EXAMPLE / "baseline.yaml"
    checks = read(baseline).checks
    now = {name: scenarios.described(scenario_of(check, baseline.parent, ())) for name, check in checks.items()}
    assert scenarios.read(baseline) == now, "run slotstep check --update"


def environment(folder: Path) -> dict[str, str]:
    """An environment for the workflow: a `pip` that only notes its arguments, and the file of a step's summary."""
    tools = folder / "tools"
    tools.mkdir()
    (tools / "pip").write_text(f'#!/bin/sh\necho "$@" >> {tools}/installed\n')
    (tools / "pip").chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "COV", "GITHUB"))}
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), kept["PATH"]])
    return kept | {"PATH": path, "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}


@pytest.mark.slow
def test_the_workflow_of_the_example_passes_and_says_why_it_does_not(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    shutil.copytree(EXAMPLE, repository)
    variables = environment(tmp_path)
    steps = document.read(repository / "workflow.yaml")["jobs"]["check"]["steps"]

    def workflow() -> list[tuple[str, int, str]]:
        """The first line of each `run`, its exit code and what it printed; as the runner does, with conditions."""
        found: list[tuple[str, int, str]] = []
        for step in steps:
            failed = any(code for _, code, _ in found)
            if "run" in step and {"always()": True, "failure()": failed, None: not failed}[step.get("if")]:
                done = subprocess.run(
                    ["bash", "-e", "-c", step["run"]],
                    cwd=repository,
                    env=variables,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                found.append((step["run"].splitlines()[0], done.returncode, done.stdout + done.stderr))
        return found

    assert [(command.split()[0], code) for command, code, _ in workflow()] == [
        ("pip", 0),
        ("slotstep", 0),
        ("pytest", 0),
    ]
    assert (tmp_path / "tools" / "installed").read_text() == "install ./slotstep pytest\n"
    scenario = repository / "chat.yaml"
    scenario.write_text(scenario.read_text().replace("token_budget: 1024", "token_budget: 128"))
    ran = workflow()
    assert [(command.split()[0], code) for command, code, _ in ran] == [
        ("pip", 0),
        ("slotstep", 1),
        ("pytest", 1),
        ("slotstep", 0),
    ]
    assert "  engine.token_budget: 1024 -> 128\n" in ran[1][2]
    assert "AssertionError: attainment is " in ran[2][2]
    assert "_holds(" not in ran[2][2]
    assert "raise AssertionError" not in ran[2][2]
    summary = (tmp_path / "summary.md").read_text()
    assert "- engine.token\\_budget: 1024 -\\> 128" in summary
    assert summary.count("# ") >= 2
    suites = ElementTree.parse(repository / "slotstep.xml").getroot()
    assert any(int(suite.get("failures") or 0) for suite in suites)


def test_the_page_shows_the_workflow_of_the_example() -> None:
    assert f"```yaml\n{(EXAMPLE / 'workflow.yaml').read_text()}```" in PAGE.read_text()


@pytest.mark.slow
def test_a_failing_test_shows_its_message_and_not_the_source_of_the_helper(tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(TWO)
    (tmp_path / "test_two.py").write_text(
        "from slotstep.testing import assert_metric, assert_occupancy\n\n"
        "def test_full(slotstep_run):\n    assert_occupancy(slotstep_run('two.yaml'), at_least=0.9)\n\n"
        "def test_wait(slotstep_run):\n    assert_metric(slotstep_run('two.yaml'), 'wait_s.max', at_most=0.001)\n\n"
        "def test_wrong(slotstep_run):\n    slotstep_run('two.yaml', 'engine.slotz=3')\n"
    )
    variables = environment(tmp_path)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", ".", "test_two.py"]
    found = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False).stdout
    assert "E       AssertionError: occupancy is 0.875; expected at least 0.9\n" in found
    assert "E       AssertionError: wait_s.max is 0.002; expected at most 0.001\n" in found
    assert "E       traces.errors.BadInput: " in found
    assert "engine.slotz: unknown key; did you mean engine.slots?" in found
    assert "slotstep/testing.py" not in found
    assert "slotstep/pytest_plugin.py" not in found
    assert "3 failed" in found
