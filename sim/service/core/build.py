"""Compiles the core with the C compiler: `python -m sim.service.core.build`."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from sim.service.core.binding import LIBRARY

SOURCE = Path(__file__).parent / "c" / "core.c"
FLAGS = ("-std=c99", "-O2", "-fPIC", "-shared", "-ffp-contract=off")
"""Without contraction: a fused multiply-add rounds once where Python rounds twice."""


def build(library: Path = LIBRARY, source: Path = SOURCE) -> Path:
    """Compile the core into `library`, by the compiler of the environment variable CC, or else cc; returns it.

    Raises OSError where there is no such compiler, and CalledProcessError where it fails.
    """
    compiler = shlex.split(os.environ.get("CC", "cc"))
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        made = Path(scratch, library.name)
        subprocess.run([*compiler, *FLAGS, str(source), "-o", str(made), "-lm"], check=True, capture_output=True)
        return made.replace(library)


if __name__ == "__main__":
    print(build())
