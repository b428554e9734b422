"""Names of a scenario and of the command line: built in, `module:object`, or of an installed package."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import answer, code_of, complaint
from repository import ROOT

import slotstep
from policies.admissions import ADMISSIONS
from policies.predictors.registry import PREDICTORS
from policies.routers import ROUTERS
from policies.victims import VICTIMS
from sim import registry
from sim.accounting.metrics import METRICS, OF_THE_SCENARIO, schema
from slotstep.cli.registry import COMMANDS
from slotstep.experiments.sweeps import identity
from traces.reading.registry import FORMATS

MINE = '''
from dataclasses import dataclass
from pathlib import Path
from policies.fcfs import FirstComeFirstServed
from sim.accounting.metric import Metric, Value
from sim.cost.forms import Curve
from sim.policy.base import Admission
from traces.formats import vidur

class Order(FirstComeFirstServed):
    """First come, first served."""

class OneAtATime(Admission):
    """Admit while fewer than `most` sequences run."""
    def __init__(self, most=1):
        self.most = most
    def positions(self, seq, computed):
        return seq.known
    def allows(self, seq, running, pool, step):
        return len(list(running)) < self.most

class First:
    """The sequence that was admitted first."""
    def choose(self, running, step):
        return next(iter(running.values()))

class Last:
    """The last replica."""
    def __init__(self, replicas, pool):
        self.chosen = replicas - 1
    def choose(self, request, loads, sent=0):
        return self.chosen

class Seven:
    """Seven tokens, plus the seed."""
    name = "seven"
    def __init__(self, seed, more=0):
        self.tokens = 7 + seed + more
    def __call__(self, request):
        return self.tokens

@dataclass(frozen=True)
class Even(Curve):
    """The same for every step."""
    each: float = 0.0
    def fixed(self, shape):
        return self.each

class Format:
    """Vidur's, under another name."""
    matches = staticmethod(vidur.matches)
    chunks = staticmethod(vidur.chunks)

LONGEST = Metric("longest_output", "the most tokens of one request",
    lambda accounts: int(accounts.injected.tokens.max()), {"": Value("int64", "tokens", best="highest")})
TAKEN = Metric("steps", "a key that is taken", lambda accounts: 0)
NO_NAME = type("NoName", (), {"__call__": lambda self, request: 1})

def count(file: Path, times: int = 1) -> None:
    """Print how many requests a scenario has."""
    import slotstep
    print(times * len(slotstep.load(file).workload.requests))
'''
JOBS: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "jobs-continuous.yaml").read_text())
"""Three jobs of 2, 4 and 1 steps in two slots."""
GROUPS = {
    "slotstep.policies": {"mine": "mine:Order"},
    "slotstep.admissions": {"one": "mine:OneAtATime"},
    "slotstep.victims": {"first": "mine:First"},
    "slotstep.routers": {"last": "mine:Last"},
    "slotstep.predictors": {"seven": "mine:Seven"},
    "slotstep.costs": {"even": "mine:Even"},
    "slotstep.metrics": {"longest_output": "mine:LONGEST"},
    "slotstep.formats": {"theirs": "mine:Format"},
    "slotstep.commands": {"count": "mine:count"},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current directory, with `mine.py` in it."""
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    registry.installed.cache_clear()
    yield tmp_path
    registry.installed.cache_clear()
    for name in [name for name in sys.modules if name == "mine"]:
        del sys.modules[name]


@pytest.fixture
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, and a package that offers all of it."""

    def points(group: str) -> list[EntryPoint]:
        return [EntryPoint(name, value, group) for name, value in GROUPS[group].items()]

    monkeypatch.setattr(registry, "entry_points", points)
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    return folder


def with_names(**names: str) -> dict[str, Any]:
    """The three jobs under choices with these names."""
    return JOBS | {
        "cost": {names["cost"]: {"each": "2ms"}},
        "engine": {"slots": 2, "admission": {names["admission"]: {"most": 1}}, "victim": names["victim"]},
        "cluster": {"replicas": 2, "router": names["router"]},
        "policy": {"srpt": {"predict": {names["predictor"]: {"more": 2}}}},
        "metrics": [names["metric"]],
    }


BY_REFERENCE = {
    "cost": "mine:Even",
    "admission": "mine:OneAtATime",
    "victim": "mine:First",
    "router": "mine:Last",
    "predictor": "mine:Seven",
    "metric": "mine:LONGEST",
}
BY_NAME = {
    "cost": "even",
    "admission": "one",
    "victim": "first",
    "router": "last",
    "predictor": "seven",
    "metric": "longest_output",
}


@pytest.mark.parametrize("names", [BY_REFERENCE, BY_NAME], ids=["reference", "entry point"])
def test_a_scenario_names_choices_of_a_file_and_of_a_package(installed: Path, names: dict[str, str]) -> None:
    """One at a time on the last replica: 2 + 4 + 1 steps of 2 ms."""
    scenario = slotstep.parse(with_names(**names))
    found = slotstep.run(scenario).summary
    assert found["makespan_s"] == pytest.approx(0.014)
    assert [replica["requests"]["injected"] for replica in found["replicas"]] == [0, 3]
    assert found["predictor"] == "seven"
    assert found["longest_output"] == 4
    assert found["metrics"] == [names["metric"]]
    again = slotstep.parse(slotstep.resolved(scenario))
    assert slotstep.run(again).summary == found


def test_the_policy_of_a_file_gives_the_log_of_the_built_in_one(folder: Path) -> None:
    first, second = (slotstep.run(slotstep.parse(JOBS | {"policy": name})) for name in ("fcfs", "mine:Order"))
    assert first.summary["log_sha256"] == second.summary["log_sha256"]


def test_a_metric_of_a_file_is_in_every_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "jobs.yaml").write_text(yaml.safe_dump(JOBS | {"metrics": ["mine:LONGEST"]}))
    (folder / "grid.yaml").write_text("scenario: jobs.yaml\ngrid: {policy: [fcfs, sjf]}\n")
    assert code_of("run", "jobs.yaml") == 0
    assert "longest_output  4 tokens" in capsys.readouterr().out
    assert code_of("compare", "jobs.yaml", "--policies", "fcfs,sjf", "--out", "out") == 0
    assert "Equal for all:" in (said := " ".join(capsys.readouterr().out.split()))
    assert "longest_output" in said
    assert code_of("report", "out") == 0
    assert code_of("compare", "jobs.yaml", "--policies", "random,fcfs", "--seeds", "4", "--jobs", "1") == 0
    assert "longest_output, tokens" in capsys.readouterr().out
    assert code_of("sweep", "grid.yaml", "--out", "many", "--jobs", "1") == 0
    capsys.readouterr()
    assert code_of("results", "many", "--json", "--query", "SELECT longest_output FROM runs") == 0
    assert json.loads(capsys.readouterr().out) == [{"longest_output": 4}] * 2
    (folder / "mine.py").unlink()
    del sys.modules["mine"]
    assert "metrics: 'mine:LONGEST' cannot be loaded: ModuleNotFoundError" in complaint(capsys, "report", "out")


def test_a_trace_format_of_a_file_reads_and_one_of_a_package_is_detected(
    installed: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (installed / "trace.csv").write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n0,5,2\n1,6,3\n")
    named = JOBS | {"workload": {"trace": {"mine:Format": "trace.csv"}}}
    assert slotstep.run(slotstep.parse(named)).summary["requests"]["finished"] == 2
    assert code_of("trace", "info", "trace.csv", "--format", "theirs", "--json") == 0
    assert json.loads(capsys.readouterr().out)["format"] == "theirs"
    monkeypatch.setitem(FORMATS.builtin, "vidur", "traces.formats.burstgpt")  # type: ignore[arg-type]
    assert code_of("trace", "info", "trace.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["format"] == "theirs"


@pytest.mark.parametrize("name", ["mine:count", "count"])
def test_a_command_of_a_file_and_of_a_package(installed: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (installed / "jobs.yaml").write_text(yaml.safe_dump(JOBS))
    assert code_of(name, "jobs.yaml", "--times", "2") == 0
    assert capsys.readouterr().out == "6\n"
    assert code_of("--help") == 0
    assert "Print how many requests a scenario has." in capsys.readouterr().out


def test_those_of_a_package_are_listed_with_the_built_in_ones(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(capsys, "policies")
    assert [choices[-1]["name"] for choices in found.values()] == ["mine", "one", "first", "seven"]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("policy", "fcsf", "did you mean fcfs?"),
        ("policy", "nowhere:Order", "policy: 'nowhere:Order' cannot be loaded: ModuleNotFoundError"),
        ("policy", "mine:First", "expected a class of sim.policy.base.Order, complete, or an Entry"),
        ("engine.admission", "optimstic", "engine.admission: found 'optimstic'; did you mean optimistic?"),
        ("engine.admission", "mine:Nothing", "engine.admission: 'mine:Nothing' cannot be loaded: AttributeError"),
        ("engine.admission", "mine:First", "expected a class of sim.policy.base.Admission, complete, or a Choice"),
        ("engine.admission", "sim.policy.base:Admission", "it lacks positions"),
        (
            "engine.admission",
            "{mine:OneAtATime: {mst: 2}}",
            "OneAtATime.mst: unknown option; did you mean most?",
        ),
        ("engine.victim", "last_admited", "engine.victim: 'last_admited' is unknown; did you mean last_admitted?"),
        ("engine.victim", "mine:Even", "a class with choose, or a Choice: it lacks choose"),
        (
            "cluster.router",
            "mine:Seven",
            "expected a class with choose, or a Choice: it lacks choose",
        ),
        ("cluster.router", "nowhere:Router", "cluster.router: 'nowhere:Router' cannot be loaded"),
        ("policy", "{sjf: {predict: mine:First}}", "a class with name and __call__, or a Choice: it lacks __call__"),
        ("policy", "{sjf: {predict: mine:NO_NAME}}", "predict is 'mine:NO_NAME', which has no name"),
        ("cost", "{mine:First: {}}", "expected a class of sim.cost.forms.Curve, complete"),
        ("cost", "{sim.cost.forms:Curve: {}}", "it lacks fixed"),
        ("cost", "{mine:Even: {eech: 1ms}}", "cost.mine:Even.eech: unknown key; did you mean each?"),
        ("cost", "{mine:Even: {each: 1 hour}}", "expected one of the units"),
        ("cost", "{afine: {base: 1ms}}", "cost.afine: unknown key; did you mean cost.affine?"),
        ("metrics", "[longest]", "metrics: 'longest' is unknown; known are"),
        ("metrics", "[mine:First]", "expected a sim.accounting.metric.Metric"),
        ("metrics", "[mine:TAKEN]", "'mine:TAKEN' has the key 'steps', which is taken"),
        (
            "workload",
            "{trace: {azur: x.csv}}",
            "trace.azur: unknown key; did you mean workload.trace.azure?",
        ),
        ("workload", "{trace: {mine:First: x.csv}}", "expected a trace format: it lacks matches, chunks"),
    ],
)
def test_a_name_that_refers_to_nothing_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], key: str, value: str, words: str
) -> None:
    (folder / "jobs.yaml").write_text(yaml.safe_dump(JOBS))
    assert words in complaint(capsys, "run", "jobs.yaml", "--set", f"{key}={value}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("nowhere:count",),
            "command 'nowhere:count' cannot be loaded: ModuleNotFoundError",
        ),
        (("mine:LONGEST",), "expected a function with typer's annotations"),
    ],
)
def test_a_command_that_cannot_be_loaded_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert words in complaint(capsys, *arguments)


def test_a_run_is_named_by_the_code_behind_all_its_names(installed: Path) -> None:
    (installed / "trace.csv").write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n0,5,2\n")
    traced = JOBS | {"workload": {"trace": {"theirs": "trace.csv"}}}
    scenarios = [with_names(**BY_NAME), with_names(**BY_REFERENCE), traced, JOBS | {"metrics": ["longest_output"]}]
    settings = [slotstep.resolved(slotstep.parse(scenario)) for scenario in (*scenarios, JOBS)]
    before = [identity.name(each, {}) for each in settings]
    (installed / "mine.py").write_text(MINE + "# changed\n")
    after = [identity.name(each, {}) for each in settings]
    assert [one == other for one, other in zip(before, after, strict=True)] == [False] * 4 + [True]


def test_entry_points_are_not_read_where_all_names_are_built_in() -> None:
    script = (
        "import importlib.metadata as metadata\n"
        "from sim import registry\n"
        "registry.entry_points = None\n"
        "import slotstep\n"
        "slotstep.run(slotstep.load('examples/service.yaml')).summary\n"
        "from slotstep.cli.app import main\n"
        "main(['run', 'examples/jobs-continuous.yaml'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "known", [ADMISSIONS, VICTIMS, ROUTERS, PREDICTORS, FORMATS, COMMANDS, METRICS], ids=lambda known: known.what
)
def test_every_built_in_name_is_there(known: registry.Registry[Any]) -> None:
    assert len(list(known.values())) == len(known) > 0
    assert all(known.find(name) is not None for name in known)


def described(content: Any, part: dict[str, Any]) -> bool:
    """Whether a JSON schema of types, properties and items describes a value, all of it."""
    kinds = {"boolean": bool, "integer": int, "number": (int, float), "string": str, "object": dict, "array": list}
    allowed = part.get("type", [])
    if content is None:
        return "null" in allowed
    if not any(isinstance(content, kinds[kind]) for kind in allowed if kind != "null"):
        return False
    if isinstance(content, list):
        return all(described(each, part["items"]) for each in content)
    if isinstance(content, dict):
        more = part.get("additionalProperties", {})
        return all(described(inner, part.get("properties", {}).get(key, more)) for key, inner in content.items())
    return True


@pytest.mark.parametrize("example", ["eight-static", "service", "chat"])
def test_the_json_schema_describes_every_value_of_a_summary(example: str) -> None:
    found = slotstep.run(slotstep.load(ROOT / "examples" / f"{example}.yaml")).summary
    assert not [key for key, part in schema()["properties"].items() if not described(found[key], part)]
    assert set(found) <= {*schema()["properties"], *OF_THE_SCENARIO}
