"""An empty current directory for third-party policies."""

import sys

import pytest

from policies import third_party


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current directory; modules that are imported from it are removed afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    third_party.load.cache_clear()
    yield tmp_path
    third_party.load.cache_clear()
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
