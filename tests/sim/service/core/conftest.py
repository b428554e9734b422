"""The tests of the core compile it, whichever kernel runs: they compare it with that one."""

import core_build
import pytest

from sim.service.core import binding


@pytest.fixture(scope="session")
def compiled_core(tmp_path_factory):
    """The core, compiled for these tests."""
    if core_build.COMPILER is None:
        pytest.skip("there is no C compiler")
    return core_build.build(tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="module", autouse=True)
def core(compiled_core):
    """In the place of what is installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binding, "library", lambda: compiled_core)
        yield
