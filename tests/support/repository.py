"""Where the repository is, for tests that read its examples and pages."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
