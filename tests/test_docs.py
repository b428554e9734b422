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
from docs import reference
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
    """An environment in whose cache the Azure traces lie as `slotstep trace fetch` leaves them.

    Commands simulate as they do for a user: on the compiled kernel where it is built.
    """
    home = tmp_path_factory.mktemp("home")
    cache = home / ".cache" / "slotstep"
    cache.mkdir(parents=True)
    for packed in sorted((data / "traces" / "azure_2023").glob("*.csv.gz")):
        (cache / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    kept = {key: value for key, value in os.environ.items() if key not in ("SLOTSTEP_CACHE", "XDG_CACHE_HOME")}
    return kept | {"HOME": str(home), "SLOTSTEP_KERNEL": "auto"}


@pytest.mark.slow
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


def test_the_readme_is_short() -> None:
    assert len(README) <= 12_000


def test_the_prediction_of_the_readme_is_that_of_the_page_on_fidelity() -> None:
    """Ranges over the runs that the fit has not seen, and the one outside the bounds by itself."""
    page = (ROOT / "docs" / "fidelity.md").read_text().partition("<!-- begin tenants -->")[2].partition("<!-- end")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if "| held out |" in line]
    unseen = {
        name: (e2e50, e2e99, ttft50, ttft99, rate) for name, _, ttft50, ttft99, _, _, e2e50, e2e99, rate, _ in rows
    }
    (missed,) = (row[0] for row in rows if row[-1])
    outlier = unseen.pop(missed)
    errors = [sorted(float(value.rstrip("%")) for value in column) for column in zip(*unseen.values(), strict=True)]
    ranges = [f"{column[0]:+.1f} to {column[-1] + 0.0:+.1f}%" for column in errors]
    assert len(unseen) == 11
    assert f"11 of the 12 runs | {' | '.join(ranges)} |" in README
    assert f"`{missed}` | {' | '.join(outlier)} |" in README


def test_the_python_of_the_quickstart_runs(tmp_path: Path) -> None:
    shown = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "quickstart.md").read_text(), re.DOTALL)
    assert shown is not None
    script = shown[1].replace("examples/", f"{ROOT}/examples/")
    found = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "out" / "chat" / "summary.json").exists()


@pytest.mark.parametrize("name", reference.PAGES)
def test_the_generated_pages_are_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == reference.PAGES[name](), "run python -m docs.reference"


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="mkdocs-material is not installed: pip install '.[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert {page.with_suffix(".html").name for page in PAGES[1:]} <= {page.name for page in tmp_path.glob("*.html")}
    for page in tmp_path.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"?(https?:[^\" >]+)", page.read_text())
        assert not loaded, page


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
    "engine.speculation.draft.cost",
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
    page = "".join((ROOT / "docs" / name).read_text() for name in ("output.md", "reference-metrics.md"))
    result = slotstep.run(slotstep.load(ROOT / "examples" / "eight-static.yaml"), "sjf")
    keys = set(result.summary) | {
        inner for key, part in result.summary.items() if isinstance(part, dict) and key != "tenants" for inner in part
    }
    columns = {column for frame in (result.requests, result.steps, result.slots) for column in frame}
    missing = sorted(key for key in keys | columns if f"`{key}`" not in page)
    assert not missing


FOLDERS = r"(?:sim|policies|traces|calibrate|reports|slotstep|tests|examples|docs|benchmarks)"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_and_module_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text()
    files = re.findall(rf"`({FOLDERS}/[\w./-]*)`", text)
    modules = re.findall(rf"`({FOLDERS}(?:\.[a-z_0-9]+)+)(?:\.[A-Z]\w*)?`", text)
    missing = [name for name in files if not (ROOT / name).exists()]
    paths = {name: ROOT / name.replace(".", "/") for name in modules}
    missing += [
        name
        for name, path in paths.items()
        if not (path.is_dir() or any(file.exists() for file in module_files(path)))
    ]
    assert not missing


def module_files(path: Path) -> list[Path]:
    """Where the module of this dotted name is, or the module that it is a name of."""
    return [path.with_suffix(".py"), path.parent.with_suffix(".py"), path.parent / "__init__.py"]


def test_the_architecture_follows_a_request_through_all_layers() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    walk = page.partition("## One request from trace to report")[2].partition("## Layers")[0]
    assert {folder for folder in ("slotstep", "traces", "sim", "policies", "reports") if f"`{folder}/" in walk} == {
        "slotstep",
        "traces",
        "sim",
        "policies",
        "reports",
    }


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
