"""The command line as a test calls it: its exit code, its JSON answer, its one line of complaint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slotstep.cli import app


def code_of(*arguments: str | Path) -> int:
    """The exit code of a command line."""
    with pytest.raises(SystemExit) as caught:
        app.main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    """The JSON object that a command line prints; nothing else is printed."""
    assert code_of(*arguments, "--json") == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    return printed


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The one line on standard error with which a command line fails, without its `error: `."""
    assert code_of(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    return printed.err.removeprefix("error: ").removesuffix("\n")
