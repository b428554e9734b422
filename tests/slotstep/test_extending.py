"""docs/extending.md: its files in an empty folder, its tests by pytest, its commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

PAGE = (ROOT / "docs" / "extending.md").read_text()
FILES = {
    name: block for block, name in re.findall(r"```(?:python|yaml)\n(# (\S+\.(?:py|yaml))\n.*?)```", PAGE, re.DOTALL)
}
COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[0].splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the page."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def done(folder: Path, *command: str) -> str:
    """What a command prints in that folder. Fails if its exit code is not 0."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "COV"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    found = subprocess.run(
        command, cwd=folder, env=kept | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def test_the_page_has_an_example_of_each_and_a_test_for_it() -> None:
    assert list(FILES) == [
        "paid_first.py",
        "by_size.py",
        "room_to_grow.py",
        "paid_stay.py",
        "service.yaml",
        "test_rules.py",
    ]
    classes = [name for text in FILES.values() for name in re.findall(r"^class (\w+)", text, re.MULTILINE)]
    used = set(re.findall(r"\w+:([A-Z]\w+)", FILES["service.yaml"]))
    assert used == set(classes) == set(re.findall(r"\w+:([A-Z]\w+)", FILES["test_rules.py"]))


@pytest.mark.slow
def test_the_tests_of_the_page_pass(folder: Path) -> None:
    printed = done(folder, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".")
    assert "5 passed" in printed


@pytest.mark.slow
def test_the_commands_of_the_page_run(folder: Path) -> None:
    for command in COMMANDS:
        assert "paid_first:PaidFirst" in done(folder, *command.split())
