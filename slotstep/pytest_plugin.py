"""The pytest plugin: the fixture `slotstep_run`. Loaded by every pytest, so it imports nothing until it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from slotstep.runs.result import Result


@pytest.fixture
def slotstep_run(pytestconfig: pytest.Config) -> Callable[..., Result]:
    """Simulate: `slotstep_run("chat.yaml", "engine.slots=32", policy="fair")`, or a mapping instead of a file.

    A relative file name starts at pytest's root directory. A scenario that is wrong fails with its one line.
    """

    def run(scenario: str | Path | Mapping[str, Any], *settings: str, policy: str | None = None) -> Result:
        __tracebackhide__ = True
        import slotstep
        from traces.errors import BadInput

        if isinstance(scenario, Mapping) and settings:
            raise ValueError("settings beside a mapping; expected them in it")
        try:
            if isinstance(scenario, Mapping):
                return slotstep.run(slotstep.parse(scenario), policy)
            return slotstep.run(slotstep.load(pytestconfig.rootpath / scenario, settings), policy)
        except BadInput as error:
            raise error.with_traceback(None) from None

    return run
