"""Rows of a sweep under other people's policies: named by the code of these too, wherever it lies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import slotstep
from policies.registry import POLICIES
from sim import registry
from slotstep.experiments.sweeps import identity
from traces.errors import BadInput

TINY: dict[str, Any] = {"workload": {"requests": [{"output": 1}]}, "cost": {"unit": "1ms"}}
POLICY = "from {module} import Line\nclass Mine(Line):\n    pass\n"
LINE = "from policies.fcfs import FirstComeFirstServed as Line\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that modules are found in: a package with two modules, and two that lie beside each other."""
    (tmp_path / "pack_of_mine").mkdir()
    for name, text in {
        "pack_of_mine/__init__.py": "",
        "pack_of_mine/line.py": LINE,
        "pack_of_mine/policy.py": POLICY.format(module="pack_of_mine.line"),
        "line_of_mine.py": LINE,
        "file_of_mine.py": POLICY.format(module="line_of_mine"),
        "file_of_mine.yaml": "no code",
        "other_of_mine.py": LINE,
    }.items():
        (tmp_path / name).write_text(text)
    points = [
        EntryPoint("packed", "pack_of_mine.policy:Mine", POLICIES.group),
        EntryPoint("single", "file_of_mine:Mine", POLICIES.group),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.chdir(tmp_path)
    registry.installed.cache_clear()
    yield tmp_path
    registry.installed.cache_clear()
    for name in [name for name in sys.modules if "_of_mine" in name]:
        del sys.modules[name]


def name_of(policy: Any) -> str:
    """The name of a run under a policy."""
    return identity.name(slotstep.resolved(slotstep.parse(TINY | {"policy": policy})), {})


@pytest.mark.parametrize(
    ("policy", "files"),
    [
        ("packed", ["pack_of_mine/policy.py", "pack_of_mine/line.py"]),
        ("single", ["file_of_mine.py", "line_of_mine.py"]),
        ("file_of_mine:Mine", ["file_of_mine.py", "line_of_mine.py"]),
        ({"max_wait": {"order": {"tenant_slots": {"order": "packed"}}}}, ["pack_of_mine/line.py"]),
    ],
)
def test_a_run_is_named_by_the_code_of_its_policy(folder: Path, policy: Any, files: list[str]) -> None:
    before = name_of(policy)
    for file in ("other_of_mine.py", "file_of_mine.yaml"):
        (folder / file).write_text("pass\n")
    assert name_of(policy) == before
    for file in files:
        text = (folder / file).read_text()
        (folder / file).write_text(text + "# changed\n")
        assert name_of(policy) != before, file
        (folder / file).write_text(text)
        assert name_of(policy) == before


def test_the_code_of_a_policy_that_is_not_used_does_not_count(folder: Path) -> None:
    before, used = name_of("fcfs"), name_of("packed")
    (folder / "pack_of_mine" / "line.py").write_text(LINE + "# changed\n")
    assert name_of("fcfs") == before
    assert name_of("packed") != used


def test_an_installed_policy_that_cannot_be_loaded_is_one_line(folder: Path) -> None:
    (folder / "pack_of_mine" / "line.py").write_text("pass\n")
    with pytest.raises(BadInput, match=r"policy: 'packed' cannot be loaded: ImportError: cannot import name 'Line'"):
        slotstep.parse(TINY | {"policy": "packed"})
