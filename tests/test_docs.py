"""The documentation says what is: commands print what it shows, lists are complete, links lead somewhere."""

from __future__ import annotations

import gzip
import heapq
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

import slotstep
from docs.console import pages, refreshed
from examples import figures
from policies.registry import POLICIES
from slotstep.scenario.schema import Scenario
from slotstep.scenario.validation_errors import section_in

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGES = pages()


@pytest.fixture(scope="module")
def with_traces(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in whose cache the Azure traces lie as `slotstep trace fetch` leaves them."""
    home = tmp_path_factory.mktemp("home")
    cache = home / ".cache" / "slotstep"
    cache.mkdir(parents=True)
    for packed in sorted((data / "traces" / "azure_2023").glob("*.csv.gz")):
        (cache / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    kept = {key: value for key, value in os.environ.items() if key not in ("SLOTSTEP_CACHE", "XDG_CACHE_HOME")}
    return kept | {"HOME": str(home)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_prints_what_the_page_shows(page: Path, with_traces: dict[str, str]) -> None:
    text = page.read_text()
    assert refreshed(text, with_traces) == text


def test_the_trace_commands_find_what_fetch_leaves(with_traces: dict[str, str]) -> None:
    for name in ("azure-2023-conv", "azure-2023-code"):
        command = [sys.executable, "-c", "from slotstep.cli.app import main; main()", "trace", "fetch", name]
        printed = subprocess.run(command, env=with_traces, capture_output=True, text=True, check=True).stdout
        scenario = slotstep.load(ROOT / "examples" / f"azure-{name[-4:]}.yaml")
        assert scenario.workload.trace is not None
        assert Path(scenario.workload.trace["azure"]).name == Path(printed.strip()).name


def test_the_scenario_of_the_readme_is_the_example() -> None:
    shown = re.search(r"```yaml\n(name: chat\n.*?)```", README, re.DOTALL)
    assert shown is not None
    assert (ROOT / "examples" / "chat.yaml").read_text().endswith(shown[1])


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    shown = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert shown is not None
    script = shown[1].replace("examples/", f"{ROOT}/examples/")
    found = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "out" / "chat" / "summary.json").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text()):
        name, _, heading = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert heading in {title.lower().replace(" ", "-") for title in titles}, link


LISTS = ("requests", "replicas", "outages")
SECTIONS_OF_GROUPS = (
    "cluster.replicas.N.engine",
    "cluster.replicas.N.cost",
    "cluster.prefill.replicas",
    "cluster.decode.replicas",
)
"""What has the keys of another section, or of the groups of `cluster.replicas`."""


def keys_below(model: type[BaseModel], path: str = "") -> list[str]:
    """The dotted keys of a section and of those in it."""
    keys = []
    for name, field in model.model_fields.items():
        keys.append(f"{path}{field.alias or name}")
        inner = section_in(field.annotation)
        explained_elsewhere = name == "policy" or f"{path}{name}" in SECTIONS_OF_GROUPS
        if inner is not None and not explained_elsewhere:
            keys += keys_below(inner, f"{path}{name}.{'N.' if name in LISTS else ''}")
    return keys


def test_every_key_of_a_scenario_is_explained() -> None:
    page = "".join((ROOT / "docs" / name).read_text() for name in ("scenario.md", "policies.md"))
    options = [f"policy.{name}.{option}" for name, entry in POLICIES.items() for option in entry.options]
    missing = [key for key in keys_below(Scenario) + options if f"`{key}`" not in page]
    assert not missing


def test_every_key_and_column_of_the_output_is_explained() -> None:
    page = (ROOT / "docs" / "output.md").read_text()
    result = slotstep.run(slotstep.load(ROOT / "examples" / "eight-static.yaml"), "sjf")
    keys = set(result.summary) | {
        inner for key, part in result.summary.items() if isinstance(part, dict) and key != "tenants" for inner in part
    }
    columns = {column for frame in (result.requests, result.steps, result.slots) for column in frame}
    missing = sorted(key for key in keys | columns if f"`{key}`" not in page)
    assert not missing


def test_every_module_has_its_line_in_the_architecture() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    modules = [
        str(path.relative_to(ROOT))
        for layer in ("sim", "policies", "traces", "calibrate", "reports", "slotstep")
        for path in sorted((ROOT / layer).rglob("*.py"))
        if path.name != "__init__.py"
    ]
    missing = [module for module in modules if f"| `{module}` |" not in page]
    assert not missing
    named = re.findall(r"^\| `((?:sim|policies|traces|calibrate|reports|slotstep)/[^`]+)` \|", page, re.MULTILINE)
    assert all((ROOT / module).exists() for module in named)


def test_the_picture_shows_the_first_hundred_and_twenty_steps_of_both() -> None:
    outputs = (5, 8, 6, 120, 7, 9, 6, 11) * 20
    free, ends = [0] * 8, []
    for output in outputs:
        ends.append(free[0] + output)
        heapq.heapreplace(free, ends[-1])
    in_time = sum(end <= 120 for end in ends)
    panels, occupancy = figures.panels()
    static, continuous = (
        f"static: {8} answers in 120 steps",
        f"continuous, with a backlog: {in_time} answers in 120 steps",
    )
    assert list(panels) == [static, continuous]
    assert occupancy == {static: pytest.approx(172 / 960), continuous: 1.0}
    assert "![Slot timelines of 120 steps" in README
    assert (ROOT / "docs" / "eight.png").read_bytes().startswith(b"\x89PNG")


def test_a_fault_or_a_missing_trace_is_no_documentation(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    absent = "```console\n$ slotstep run examples/azure-conv.yaml\n```\n"
    with pytest.raises(SystemExit, match="no such file; `slotstep trace fetch"):
        refreshed(absent, environment)
    with pytest.raises(SystemExit, match=r'python -c "1 / 0": ZeroDivisionError'):
        refreshed('<!-- $ python -c "1 / 0" -->\n<!-- end -->\n', environment)
