"""Compiles the core by itself, as it is or with a line changed, for tests beside either kernel."""

from __future__ import annotations

import shutil
import subprocess

from repository import ROOT

from sim.service.core import binding

SOURCES = ROOT / "sim" / "service" / "core" / "c"
COMPILER = shutil.which("cc")


def build(folder, change=None):
    """The library, made in an empty folder; `change`: (file, old text, which is there once, new text)."""
    made = shutil.copytree(SOURCES, folder / "c")
    if change is not None:
        file, old, new = change
        text = (made / file).read_text()
        assert text.count(old) == 1, f"{old} is not in {file} once"
        (made / file).write_text(text.replace(old, new))
    command = [COMPILER, "-O2", "-std=c99", "-fPIC", "-shared", "-ffp-contract=off"]
    subprocess.run([*command, "core.c", "-o", "core.so", "-lm"], cwd=made, check=True)
    return binding.load(made / "core.so")
