"""Which kernel runs: the Python sources, or extension modules compiled from them, faster and with the same log.

`choose`, or the variable SLOTSTEP_KERNEL, says which: `auto` (compiled, where that can be used), `python` or
`compiled`. Both have modules of the same names. A process has one of them: it is settled when the first of these
modules is imported, and cannot be changed afterwards. Extension modules that were compiled from other sources than
those installed, or for another Python, are not used.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Literal, get_args

Choice = Literal["auto", "python", "compiled"]
Kernel = Literal["python", "compiled"]

VARIABLE = "SLOTSTEP_KERNEL"
FOLDER = Path(__file__).parent / "compiled"
MANIFEST = "manifest.json"
SUFFIX = EXTENSION_SUFFIXES[0]


class KernelError(ValueError):
    """The kernel that was chosen cannot be had."""


@dataclass(frozen=True)
class Compiled:
    """The compiled kernel: the names of its modules, and why it cannot be used; empty if it can."""

    modules: frozenset[str] = frozenset()
    obstacle: str = ""


@cache
def compiled() -> Compiled:
    """What the manifest in FOLDER says, written where the kernel was compiled (`kernel_build.py`)."""
    try:
        manifest = json.loads((FOLDER / MANIFEST).read_bytes())
    except FileNotFoundError:
        return Compiled(obstacle="none was compiled")
    if manifest["obstacle"]:
        return Compiled(obstacle=f"none was compiled: {manifest['obstacle']}")
    modules = frozenset(manifest["modules"])
    if manifest["suffix"] != SUFFIX:
        return Compiled(modules, f"it was compiled for another Python: {manifest['suffix']}")
    for source, digest in manifest["sources"].items():
        if sha256(FOLDER.parent.parent / source) != digest:
            return Compiled(modules, f"{source} has changed since it was compiled")
    return Compiled(modules)


def sha256(file: Path) -> str:
    """Digest of a source (hex); empty if the file is not there."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def settled(choice: str) -> Kernel:
    """The kernel of a choice. Raises KernelError if it cannot be had, and for a choice that is none."""
    if choice not in get_args(Choice):
        raise KernelError(f"kernel is {choice!r}; expected auto, python or compiled")
    obstacle = compiled().obstacle
    if choice == "compiled" and obstacle:
        raise KernelError(f"no compiled kernel can be used: {obstacle}")
    return "python" if choice == "python" or obstacle else "compiled"


def chosen() -> str:
    """The choice, for another process to make the same one."""
    return os.environ.get(VARIABLE, "auto")


@cache
def path() -> Kernel:
    """The kernel of this process, by SLOTSTEP_KERNEL. Raises KernelError if it cannot be had."""
    return settled(chosen())


def choose(choice: str) -> None:
    """Choose the kernel of this process, and of the processes that it will start.

    Raises KernelError for `compiled` where that cannot be used, and once modules of another kernel are imported.
    """
    found = settled(choice)
    if compiled().modules & sys.modules.keys() and path() != found:
        raise KernelError(f"the kernel is {path()} already; choose it before anything else of sim is imported")
    os.environ[VARIABLE] = choice
    path.cache_clear()


class Finder:
    """Finds the modules of the compiled kernel, where that is the one that runs."""

    @staticmethod
    def find_spec(
        name: str, parents: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The extension module of a name; None: it is found as any other module."""
        if name not in compiled().modules or path() == "python":
            return None
        return spec_from_file_location(name, FOLDER / f"{name}{SUFFIX}")


def install() -> None:
    """Have imports ask `Finder` first."""
    sys.meta_path.insert(0, Finder)


def described() -> str:
    """The kernel of this process in words, with what is in the way of the compiled one."""
    kernel, obstacle = path(), compiled().obstacle
    return f"{kernel} ({obstacle})" if obstacle else kernel
