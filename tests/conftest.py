"""Where the tests find the public traces and measurements they are checked against."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public traces and measurements: SLOTSTEP_DATA, or ../shared/data beside the repository."""
    folder = Path(os.environ.get("SLOTSTEP_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no public data at {folder}; set SLOTSTEP_DATA to its folder")
    return folder
