"""An empty current directory for modules that a scenario names."""

import sys

import pytest

from sim import registry


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current directory; modules that are imported from it are removed afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    registry.installed.cache_clear()
    yield tmp_path
    registry.installed.cache_clear()
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
