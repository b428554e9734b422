"""An empty current directory for modules that a scenario names."""

import sys

import pytest
from repository import ROOT

from sim import registry


def forget(folder):
    """Forget the modules that were imported from a folder: another of the same name may be imported."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current directory; modules that are imported from it, or from examples before, are forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    registry.installed.cache_clear()
    forget(ROOT / "examples")
    yield tmp_path
    registry.installed.cache_clear()
    forget(tmp_path)
