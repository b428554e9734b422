"""The nine examples of docs/architecture.md: each one new file and one line, applied to a copy and run."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from typing import Any, NamedTuple

import pytest
from repository import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text().partition("## Nine examples")[2]
SEAMS = (
    "order",
    "admission rule",
    "victim rule",
    "router",
    "predictor",
    "cost form",
    "metric",
    "trace format",
    "command",
)
COPIED = ("sim", "policies", "traces", "calibrate", "reports", "slotstep", "docs", "examples")
RUNNER = """
import contextlib, io, json, sys
from docs.metrics import metrics_page
from slotstep.cli.app import main
from slotstep.experiments.sweeps.row import schema
from sim.accounting import metrics
printed = []
for arguments in json.load(sys.stdin):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main(arguments)
    printed.append(out.getvalue())
print(json.dumps([printed, metrics_page(""), schema({}).names, metrics.schema()]))
"""
"""Runs command lines in one process; prints what each prints, then what else is made of the metrics."""


class Example(NamedTuple):
    """One change of the page: its seam, its diff, its command and what that prints."""

    seam: str
    diff: str
    command: str
    expected: str


EXAMPLES = [
    Example(seam.lower(), diff, command, expected)
    for seam, diff, command, expected in re.findall(
        r"^\*\*An? ([a-z ]+)\.\*\*.*?```diff\n(.*?)```\n\n```sh\nslotstep (.*?)\n# (.*?)\n```",
        PAGE,
        re.DOTALL | re.MULTILINE,
    )
]
RECOMPUTED = next(example.command for example in EXAMPLES if example.seam == "metric")


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the commands print in a copy of the repository to which all diffs of the page have been applied."""
    copy = tmp_path_factory.mktemp("repository")
    for folder in COPIED:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "*.png"))
    for example in EXAMPLES:
        command = ["git", "apply", "-"]
        done = subprocess.run(command, cwd=copy, input=example.diff, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (example.seam, done.stderr)
    (sample,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (copy / "completions.jsonl").write_text(sample)
    shown = RECOMPUTED.replace(" --json", "")
    compared = shown.replace("run", "compare", 1) + " --policies fcfs,sjf"
    lines = [shlex.split(line) for line in (*(example.command for example in EXAMPLES), shown, compared)]
    environment = {"PYTHONPATH": str(copy), "PATH": "", "HOME": str(copy), "COLUMNS": "200"}
    run = [sys.executable, "-c", RUNNER]
    done = subprocess.run(
        run, cwd=copy, env=environment, input=json.dumps(lines), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-300:]
    printed, page, columns, schema = json.loads(done.stdout)
    *outputs, table, comparison = printed
    return {
        "outputs": dict(zip(SEAMS, outputs, strict=True)),
        "table": table,
        "comparison": comparison,
        "page": page,
        "columns": columns,
        "schema": schema,
    }


def found_at(content: Any, path: str) -> Any:
    """The value at a dotted path."""
    for part in path.split("."):
        content = content[int(part)] if isinstance(content, list) else content[part]
    return content


def test_there_is_an_example_of_every_seam() -> None:
    assert [example.seam for example in EXAMPLES] == list(SEAMS)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.seam)
def test_each_is_one_new_file_and_at_most_one_line_elsewhere(example: Example) -> None:
    files = re.split(r"^diff --git .*\n", example.diff, flags=re.MULTILINE)[1:]
    new = [text for text in files if text.startswith("new file")]
    others = [text for text in files if not text.startswith("new file")]
    changed = [line for text in others for line in re.findall(r"^[+-](?!\+\+|--).*$", text, re.MULTILINE)]
    assert len(new) == 1
    assert len(changed) <= 1
    assert all(line.startswith("+") for line in changed)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.seam)
def test_each_does_what_the_page_says(example: Example, applied: dict[str, Any]) -> None:
    printed = applied["outputs"][example.seam]
    if " = " not in example.expected:
        assert example.expected in printed
        return
    path, _, value = example.expected.partition(" = ")
    assert str(found_at(json.loads(printed), path)) == value


def test_a_metric_is_shown_wherever_metrics_are(applied: dict[str, Any]) -> None:
    assert re.search(r"recompute_share +16\.7%", applied["table"])
    assert "recom-" in applied["comparison"]
    assert "recompute_share" in applied["columns"]
    assert (
        "| `recompute_share` | (share, lower is better) | `tokens.recomputed` / `tokens.computed` |"
        in applied["page"]
    )
    assert applied["schema"]["properties"]["recompute_share"]["type"] == ["number", "null"]
