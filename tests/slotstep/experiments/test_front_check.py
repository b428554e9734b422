"""`slotstep check`: baselines that hold, that do not, that are broken, recorded anew; the pytest plugin beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from repository import ROOT

from reports.checks.junit import junit
from reports.checks.outcome import Compared, Outcome
from slotstep.cli import app
from slotstep.experiments.checks import baseline as baselines
from slotstep.experiments.checks.expected import tolerance
from slotstep.experiments.checks.recording import recorded
from slotstep.experiments.metric_path import metric
from slotstep.runs.result import Result
from slotstep.scenario import document
from slotstep.testing import assert_metric, assert_occupancy

EXAMPLES = ROOT / "examples"
OWN = EXAMPLES / "baseline.yaml"
TWO = """
workload:
  requests: [{id: a, output: 2}, {id: b, output: 4}, {id: c, output: 1}]
engine: {slots: 2}
cost: {unit: 1ms}
"""
BASELINE = """\
checks:   # by name
  "two: slots":
    scenario: two.yaml
    metrics:
      occupancy: 0.875        # 7 of 8
      wait_s.max: {within: 0.001, value: 0.002}  # c waits for a
      steps:
  other:
    scenario: two.yaml
    set: [engine.slots=3]
    metrics: {steps: 4, "tenants.default.requests.finished": 3}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A baseline of two slots and three jobs, worked by hand, one value not yet recorded."""
    (tmp_path / "two.yaml").write_text(TWO)
    (tmp_path / "baseline.yaml").write_text(BASELINE)
    return tmp_path


@pytest.fixture
def checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs the command on that baseline: its exit code and what it printed, both streams."""

    def check(*options: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as left:
            app.main(["check", str(folder / "baseline.yaml"), *options])
        found = capsys.readouterr()
        return int(left.value.code or 0), found.out + found.err

    return check


def test_what_is_not_recorded_differs_and_is_recorded_with_nothing_else_touched(
    folder: Path, checked: Callable[..., tuple[int, str]]
) -> None:
    code, said = checked()
    assert code == 1
    assert said.splitlines() == [
        "two: slots: 1 of 3 metrics differ",
        "  the recorded scenario is not known; --update records it",
        "  metric  recorded  now  change  allowed",
        "  steps   nothing   4            exact",
        "other: 2 metrics as recorded",
        "2 checks: 1 differ",
    ]
    code, said = checked("--update")
    assert code == 0
    assert said.endswith(
        f"1 value recorded in {folder / 'baseline.yaml'}\nscenarios recorded in {folder / 'baseline.resolved.yaml'}\n"
    )
    assert (folder / "baseline.yaml").read_text() == BASELINE.replace("      steps:\n", "      steps: 4\n")
    assert checked() == (
        0,
        "two: slots: 3 metrics as recorded\nother: 2 metrics as recorded\n2 checks: all as recorded\n",
    )


def test_a_regression_is_shown_number_by_number_and_in_every_form(
    folder: Path, checked: Callable[..., tuple[int, str]]
) -> None:
    changed = (
        BASELINE.replace("steps:\n", "steps: 4\n").replace("0.875 ", "0.9375 ").replace("steps: 4,", "steps: 5,")
    )
    (folder / "baseline.yaml").write_text(changed)
    code, said = checked("--github", "--junit", str(folder / "junit.xml"))
    assert code == 1
    assert "  occupancy  0.9375    0.875  -0.0625 (-6.67%), worse  exact" in said.splitlines()
    assert "  steps   5         4    -1 (-20%)  exact" in said.splitlines()
    marks = [line for line in said.splitlines() if line.startswith("::")]
    assert marks == [
        f"::error file={folder / 'baseline.yaml'},line=5,title=occupancy of two%3A slots::"
        "occupancy was 0.9375, is 0.875: -0.0625 (-6.67%25), worse; allowed: exact"
        "%0Athe recorded scenario is not known; --update records it",
        f"::error file={folder / 'baseline.yaml'},line=11,title=steps of other::"
        "steps was 5, is 4: -1 (-20%25); allowed: exact"
        "%0Athe recorded scenario is not known; --update records it",
    ]
    suites = ElementTree.parse(folder / "junit.xml").getroot()
    assert {suite.get("name"): (suite.get("tests"), suite.get("failures")) for suite in suites} == {
        "two: slots": ("3", "1"),
        "other": ("2", "1"),
    }
    failures = suites.findall(".//testcase[@name='occupancy']/failure")
    assert [failure.get("message") for failure in failures] == [
        "occupancy was 0.9375, is 0.875: -0.0625 (-6.67%), worse; allowed: exact"
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("scenario: two.yaml\n    metrics", "scenario: none.yaml\n    metrics", "none.yaml: no such file"),
        ("occupancy:", "occupency:", "occupency: no such metric; did you mean occupancy?"),
        ("steps:\n", "wait_s: 1\n", "wait_s is a section; expected a number in it, such as wait_s.n"),
    ],
)
def test_a_broken_check_outranks_a_regression_and_stops_no_other(
    folder: Path, checked: Callable[..., tuple[int, str]], old: str, new: str, words: str
) -> None:
    (folder / "baseline.yaml").write_text(BASELINE.replace(old, new))
    before = (folder / "baseline.yaml").read_text()
    code, said = checked("--junit", str(folder / "junit.xml"), "--update")
    assert code == 2
    assert f"two: slots: broken: {words}" in said.replace(f"{folder}/", "")
    assert "other: 2 metrics as recorded" in said
    assert (folder / "baseline.yaml").read_text() == before
    (error,) = ElementTree.parse(folder / "junit.xml").getroot().iter("error")
    assert words in (error.get("message") or "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("checks: {}", "checks: none; expected at least one, by name"),
        ("cheks: {}", "cheks: unknown key; did you mean checks?"),
        ("checks: {a: {scenario: b.yaml, metrics: {}}}", "checks.a.metrics: found {}; expected metrics"),
        ("checks: {a: {scenario: b.yaml, metrics: {steps: [1]}}}", "steps: found [1]; expected a number or text"),
        (
            "checks: {a: {scenario: b.yaml, metrics: {steps: {value: 1, wihin: 2}}}}",
            "expected value and within or worse, or at_least",
        ),
        (
            "checks: {a: {scenario: b.yaml, metrics: {steps: {value: 1, within: 2m}}}}",
            "found '2m'; expected an amount",
        ),
        ("checks: {a: {scenario: b.yaml, metrics: {steps: {value: x, within: 1}}}}", "found 'x'; expected a number"),
    ],
)
def test_what_is_no_baseline_is_refused_by_its_key(
    folder: Path, checked: Callable[..., tuple[int, str]], text: str, words: str
) -> None:
    (folder / "baseline.yaml").write_text(text)
    code, said = checked()
    assert code == 2
    assert words in said
    assert len(said.splitlines()) == 1


def test_one_check_alone_and_what_a_setting_would_change(checked: Callable[..., tuple[int, str]]) -> None:
    code, said = checked("--only", "other", "--set", "engine.slots=1")
    assert code == 1
    assert said.splitlines()[0] == "other: 1 of 2 metrics differ"
    assert checked("--only", "nobody")[0] == 2
    assert checked("--update", "--set", "engine.slots=1") == (
        2,
        "error: --update with --set: would record what the scenarios do not give; expected one of them\n",
    )


def test_tolerances_are_amounts_or_shares() -> None:
    assert tolerance("2%").allows(-100, -102)
    assert not tolerance("2%").allows(100, 102.1)
    assert tolerance(0.5).allows(0, 0.5)
    assert not tolerance("0").allows(1, 1 + 1e-12)


@pytest.mark.parametrize("value", [0.1 + 0.2, 1e-7, 5, 0, None, "12e4", "no", "# x"])
def test_a_recorded_value_reads_back_as_it_was(value: float | str | None) -> None:
    text = "checks: {a: {scenario: s.yaml, metrics: {m: , n: {value: 7, within: 1}}}}"
    changed = recorded(text, [("a", "m", value), ("a", "n", 8)])
    found = document.parse(changed)["checks"]["a"]["metrics"]
    assert found == {"m": value, "n": {"value": 8, "within": 1}}


def test_our_own_baseline_holds_and_evicting_late_breaks_it_by_occupancy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("baseline.yaml", "eight-static.yaml", "eight-continuous.yaml", "pages.yaml", "chat.yaml"):
        shutil.copy(EXAMPLES / name, tmp_path)
    with pytest.raises(SystemExit) as left:
        app.main(["check", str(tmp_path / "baseline.yaml")])
    assert left.value.code == 0, capsys.readouterr().out
    scenario = tmp_path / "eight-continuous.yaml"
    scenario.write_text(scenario.read_text().replace("batching: continuous", "batching: continuous, evict: after"))
    with pytest.raises(SystemExit) as left:
        app.main(["check", str(tmp_path / "baseline.yaml"), "--only", "eight-continuous"])
    assert left.value.code == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = {line[0]: line[1:] for line in lines if len(line) > 3}
    steps = int(rows["steps"][1])
    assert rows["occupancy"][:2] == [repr(172 * 20 / (8 * 495)), repr(172 * 20 / (8 * steps))]
    assert rows["slot_steps.held"][:2] == ["0", "160"]


def test_the_plugin_runs_a_scenario_and_says_where_the_slots_went(slotstep_run: Callable[..., Result]) -> None:
    static = slotstep_run("examples/eight-static.yaml")
    assert_occupancy(static, exactly=172 / 960)
    assert_occupancy(slotstep_run("examples/eight-continuous.yaml"), at_least=0.86, at_most=0.87)
    with pytest.raises(AssertionError) as failed:
        assert_occupancy(static, at_least=0.9)
    assert str(failed.value).splitlines() == [
        f"occupancy is {172 / 960!r}; expected at least 0.9",
        "of 960 slot-steps bought:",
        "  held        82.1%  788: finished, but still in the batch (continuous batching, evict: before)",
    ]
    one = slotstep_run({"workload": {"requests": [{"output": 1}]}, "cost": {"unit": "1ms"}}, policy="sjf")
    assert one.policy == "sjf"
    assert_metric(one, "makespan_s", exactly=0.001)
    with pytest.raises(AssertionError, match=r"tpot_s.p99 is undefined: no samples; expected at most 1"):
        assert_metric(one, "tpot_s.p99", at_most=1)
    with pytest.raises(ValueError, match="nothing is asserted"):
        assert_occupancy(one)


def test_a_metric_is_found_by_its_name_even_if_a_tenant_has_dots() -> None:
    summary = {"a": 1, "tenants": {"x.y": {"p99": 2}}, "replicas": [{"steps": 4}]}
    assert metric(summary, "a") == 1
    assert metric(summary, "replicas.0.steps") == 4
    assert metric(summary, "tenants.x.y.p99") == 2
    with pytest.raises(ValueError, match=r"replicas.0.step: no such metric; did you mean replicas.0.steps\?"):
        metric(summary, "replicas.0.step")


@pytest.mark.slow
def test_a_pytest_that_never_runs_a_scenario_pays_nothing_for_the_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        textwrap.dedent("""
            import sys

            def test_nothing_heavy_is_there():
                heavy = {"numpy", "pandas", "matplotlib", "simpy", "pydantic", "sim", "traces"}
                assert not heavy & set(sys.modules)
                assert "slotstep.pytest_plugin" in sys.modules

            def test_a_run(slotstep_run):
                run = slotstep_run({"workload": {"requests": [{"output": 3}]}, "cost": {"unit": "1ms"}})
                assert run.summary["steps"] == 3
        """)
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "COV"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "."]
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "2 passed" in found.stdout


def test_xml_holds_whatever_a_check_is_called() -> None:
    outcome = Outcome('a\x00<b>"', (Compared("m", "x" * 64, None, "exact", False),))
    (suite,) = ElementTree.fromstring(junit("f", [outcome]))
    assert suite.get("name") == 'a?<b>"'
    assert json.dumps(outcome.differing[0].sentence) == f'"m was {"x" * 16}..., is nothing; allowed: exact"'


def test_the_baseline_and_the_test_of_the_documentation_do_what_they_say(
    tmp_path: Path, slotstep_run: Callable[..., Result]
) -> None:
    page = (ROOT / "docs" / "checks.md").read_text()
    shown = page.split("```python\n")[1].split("```")[0]
    names: dict[str, Callable[..., None]] = {}
    exec(shown, names)
    names["test_the_batch_stays_full"](slotstep_run)
    blocks = [block.split("```")[0] for block in page.split("```yaml\n")[1:]]
    (sample,) = (block for block in blocks if "chat under fair" in block)
    (tmp_path / "sample.yaml").write_text(sample)
    expected = baselines.read(tmp_path / "sample.yaml").checks["chat under fair"].metrics
    assert [metric.allowed for metric in expected.values()] == [
        "exact",
        "2%",
        "3",
        "5% worse",
        "at least 0.95",
        "exact",
    ]
