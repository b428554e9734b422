"""Where the tests find the data they are checked against, and how many examples a property is tried on.

Properties are tried on 50 examples, the same every time; `--hypothesis-profile=thorough` tries 300, `soak`
(`make soak`) 5,000, and `mutants` (`make mutants`) 10, without a search for the smallest that fails. None is timed: a
machine may be busy with something else. Only under `mutants` a test fails after 5 s of CPU time, as a mutant may not
end. Properties carry the mark `property`; what takes long for another reason carries `slow`, and `simulation` or
`kernels` besides where `make test-compiled` runs it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

NOT_TIMED = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", NOT_TIMED, max_examples=50)
settings.register_profile("thorough", NOT_TIMED, max_examples=300)
settings.register_profile("soak", NOT_TIMED, max_examples=5000)
settings.register_profile("mutants", NOT_TIMED, max_examples=10, phases=[Phase.generate])
settings.load_profile("quick")

ROOT = Path(__file__).parent.parent

os.environ.setdefault("SLOTSTEP_KERNEL", "python")  # the sources as they are; `make test-compiled` sets it


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public traces and measurements: SLOTSTEP_DATA, or ../shared/data beside the repository."""
    folder = Path(os.environ.get("SLOTSTEP_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no public data at {folder}; set SLOTSTEP_DATA to its folder")
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test of a mutant has 5 s of CPU time."""
    if item.config.getoption("--hypothesis-profile") != "mutants":
        return (yield)
    signal.signal(signal.SIGPROF, lambda *_: pytest.fail("took more than 5 s of CPU time"))
    signal.setitimer(signal.ITIMER_PROF, 5, 1)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Properties are marked as such."""
    for item in items:
        if hasattr(getattr(item, "obj", None), "hypothesis"):
            item.add_marker("property")
