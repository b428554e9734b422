"""Triton kernels are interpreted here: the tests need no GPU. Set before anything imports triton."""

from __future__ import annotations

import os

os.environ.setdefault("TRITON_INTERPRET", "1")
