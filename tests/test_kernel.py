"""Both kernels: which one runs, and that the compiled one writes the log of the Python one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from command_line import answer, complaint
from hypothesis import settings
from repository import ROOT

from sim import kernel

pytestmark = pytest.mark.kernels

SCENARIO = ROOT / "examples" / "jobs-continuous.yaml"
ON_THE_CORE = {"python": "python", "compiled": "compiled core"}
"""What a summary names for each kernel, of a scenario that the core covers."""
USERS = """
from sim.policy.base import LastAdmitted, Optimistic, RankedOrder

class Newest(RankedOrder):
    def rank(self, seq):
        return (-seq.index,)

class Headroom(Optimistic):
    def spare(self, pool, to_come, step):
        return 2

class MostServed:
    def choose(self, running, step):
        return max(reversed(running.values()), key=lambda seq: seq.positions(step))

class SecondHalf:
    def choose(self, request, loads, sent=0):
        return min(range(len(loads)), key=lambda place: (loads[place].tokens, -place))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder in place of that of the compiled kernel, and nothing remembered of either."""
    monkeypatch.setattr(kernel, "FOLDER", tmp_path / "sim" / "compiled")
    monkeypatch.setenv(kernel.VARIABLE, "auto")
    (tmp_path / "sim" / "compiled").mkdir(parents=True)
    kernel.compiled.cache_clear()
    kernel.path.cache_clear()
    yield tmp_path / "sim" / "compiled"
    kernel.compiled.cache_clear()
    kernel.path.cache_clear()


def write(folder, **content):
    (folder / "manifest.json").write_text(json.dumps({"obstacle": "", "modules": ["sim.none"], **content}))


def test_without_a_compiled_kernel_python_runs_and_the_version_says_why(folder):
    assert kernel.path() == "python"
    assert kernel.described() == "python (none was compiled)"


def test_the_reason_of_the_build_is_passed_on(folder):
    write(folder, obstacle="no C compiler was found")
    assert kernel.described() == "python (none was compiled: no C compiler was found)"


def test_one_for_another_python_is_not_used(folder):
    write(folder, suffix=".cpython-39-vax.so", sources={})
    assert kernel.described() == "python (it was compiled for another Python: .cpython-39-vax.so)"


@pytest.mark.parametrize("text", ["a = 2\n", None])
def test_one_of_other_sources_is_not_used(folder, text):
    source = folder.parent / "one.py"
    source.write_text("a = 1\n")
    write(folder, suffix=kernel.SUFFIX, sources={"sim/one.py": kernel.sha256(source)})
    assert kernel.described() == "compiled"
    source.unlink()
    if text is not None:
        source.write_text(text)
    kernel.compiled.cache_clear()
    kernel.path.cache_clear()
    assert kernel.described() == "python (sim/one.py has changed since it was compiled)"


def test_python_can_be_chosen_where_there_is_a_compiled_one(folder):
    write(folder, suffix=kernel.SUFFIX, sources={})
    kernel.choose("python")
    assert (kernel.path(), os.environ[kernel.VARIABLE]) == ("python", "python")


def test_the_kernel_is_not_changed_once_a_module_of_it_is_there(folder, monkeypatch):
    write(folder, suffix=kernel.SUFFIX, sources={}, modules=["sim.kernel"])
    monkeypatch.setenv(kernel.VARIABLE, "python")
    kernel.choose("python")
    with pytest.raises(kernel.KernelError, match="the kernel is python already"):
        kernel.choose("compiled")
    assert kernel.path() == "python"


def test_compiled_where_there_is_none_is_one_line(folder, capsys):
    found = complaint(capsys, "run", SCENARIO, "--kernel", "compiled")
    assert found == "no compiled kernel can be used: none was compiled"


def test_an_unknown_kernel_is_one_line(folder, capsys, monkeypatch):
    monkeypatch.setenv(kernel.VARIABLE, "fortran")
    assert complaint(capsys, "--version") == "kernel is 'fortran'; expected auto, python or compiled"


def test_the_summary_names_the_kernel(capsys):
    assert answer(capsys, "run", SCENARIO)["kernel"] == ON_THE_CORE[kernel.path()]
    assert answer(capsys, "run", SCENARIO, "--set", "engine.macro=false")["kernel"] == kernel.path()


def on(name, *command, cwd=ROOT):
    """What a command prints in a process of its own on a kernel."""
    environment = os.environ | {
        kernel.VARIABLE: name,
        "PYTHONPATH": os.pathsep.join([str(cwd), str(ROOT / "tests" / "support")]),
    }
    ended = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert not ended.returncode, ended.stderr
    return ended.stdout


@pytest.fixture
def both():
    """The names of the kernels. Skips where none is compiled, unless it was asked for."""
    obstacle = kernel.compiled().obstacle
    if obstacle and kernel.chosen() != "compiled":
        pytest.skip(f"no compiled kernel can be used: {obstacle}; make compiled")
    return "python", "compiled"


def unequal(found):
    """How many scenarios that were drawn alike on both kernels have other logs, by module of properties."""
    counts = {}
    for name, digests in found[0]["digests"].items():
        pairs = list(zip(digests, found[1]["digests"][name], strict=True))
        alike = [one != other for (scenario, one), (drawn, other) in pairs if scenario == drawn]
        assert len(alike) > max(5, 0.9 * len(pairs)), name
        counts[name] = sum(alike)
    return counts


@pytest.mark.slow
def test_random_scenarios_have_the_same_log_on_both(both):
    program = ROOT / "tests" / "support" / "kernel_digests.py"
    found = [json.loads(on(name, str(program), str(settings().max_examples))) for name in both]
    assert [each["kernel"] for each in found] == list(both)
    assert not any(unequal(found).values())


@pytest.mark.slow
def test_a_kernel_that_was_compiled_wrongly_is_found(both, tmp_path):
    """One comparison is turned around for the compiler alone: the smallest need of a waiting sequence is wrong."""
    for each in ("sim", "policies", "traces", "calibrate", "tests"):
        shutil.copytree(ROOT / each, tmp_path / each, ignore=shutil.ignore_patterns("compiled", "__pycache__"))
    shutil.copy(ROOT / "kernel_build.py", tmp_path)
    source = tmp_path / "sim" / "engine" / "queue.py"
    right = source.read_text()
    wrong = right.replace("needs < self.smallest", "needs > self.smallest")
    assert wrong != right
    source.write_text(wrong)
    on(
        "python",
        "-c",
        "import kernel_build as k; k.COMPILED = ['sim/engine/queue.py']; k.build(k.FOLDER)",
        cwd=tmp_path,
    )
    source.write_text(right)
    manifest = tmp_path / "sim" / "compiled" / "manifest.json"
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(content | {"sources": {"sim/engine/queue.py": kernel.sha256(source)}}))
    program = tmp_path / "tests" / "support" / "kernel_digests.py"
    found = [json.loads(on(name, str(program), "50", cwd=tmp_path)) for name in both]
    assert [each["kernel"] for each in found] == list(both)
    assert any(unequal(found).values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        ["--policy", "users:Newest"],
        ["--set", "engine.admission=users:Headroom", "--set", "engine.pages=6", "--set", "engine.page_size=1"],
        ["--set", "engine.victim=users:MostServed", "--set", "engine.pages=6", "--set", "engine.page_size=1"],
        ["--set", "cluster={replicas: 2, router: 'users:SecondHalf'}"],
    ],
)
def test_classes_of_users_are_called_on_both(both, tmp_path, settings):
    (tmp_path / "users.py").write_text(USERS)
    command = ["-c", "from slotstep.cli.app import main; main()", "run", str(SCENARIO), "--json", *settings]
    found = [json.loads(on(name, *command, cwd=tmp_path)) for name in both]
    assert [each.pop("kernel") for each in found] == list(both)
    assert found[0] == found[1]


@pytest.mark.slow
def test_workers_take_the_same_kernel(both, tmp_path):
    (tmp_path / "grid.yaml").write_text(f"scenario: {SCENARIO}\ngrid: {{engine.slots: [1, 2]}}\n")
    for name in both:
        sweep = ["-c", "from slotstep.cli.app import main; main()", "sweep", "grid.yaml", "--out", name]
        on("auto", *sweep, "--jobs", "2", "--kernel", name, cwd=tmp_path)
        rows = [row for file in (tmp_path / name).rglob("*.parquet") for row in pq.read_table(file).to_pylist()]
        assert [json.loads(row["summary"])["kernel"] for row in rows] == [ON_THE_CORE[name]] * 2
