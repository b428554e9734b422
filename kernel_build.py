"""Compiles the kernel: `python kernel_build.py [FOLDER]`, by default into `sim/compiled`, where it is looked for.

Needs mypy, setuptools and a C compiler. The Python sources stay what they are: mypyc compiles them, all of COMPILED
into one library. A module in C is an entry of C_MODULES. `sim.kernel` imports what is compiled here.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
FOLDER = ROOT / "sim" / "compiled"
SUFFIX = EXTENSION_SUFFIXES[0]

PACKAGES = ("log", "memory", "engine")
ALONE = ("sequence", "cost/shape", "service/replica", "service/transfers")
PYTHON = (
    "engine/config",  # cached properties of a frozen dataclass
    "engine/apart/config",
    "log/merged_runs",  # numpy alone
    "memory/eviction",  # compares tuples by identity
    "memory/numbered",  # for real pages
    "memory/radix_node",
    "memory/radix_tree",
    "memory/radix",
)
COMPILED = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (
        *(path for package in PACKAGES for path in (ROOT / "sim" / package).rglob("*.py")),
        *(ROOT / "sim" / f"{name}.py" for name in ALONE),
    )
    if path.name != "__init__.py" and path.relative_to(ROOT / "sim").with_suffix("").as_posix() not in PYTHON
)
"""The modules that mypyc compiles: those of some packages, but for a few that stay Python."""

C_MODULES = {
    "sim.service.core.native": sorted(
        path.relative_to(ROOT).as_posix() for path in (ROOT / "sim/service/core/c").glob("*.[ch]")
    ),
}
"""Modules in C: the sources of each, headers too, by its name. They are loaded by ctypes, which needs POSIX here."""

EXACT = ["-ffp-contract=off", "-Wno-error"]
"""Flags of every extension. No fused multiply-add: it rounds once where Python rounds twice."""


def extensions(generated: Path) -> list[Any]:
    """The extension modules; what mypyc generates is written to a folder."""
    from mypyc.build import mypycify
    from setuptools import Extension

    made: list[Any] = mypycify(
        ["--config-file=", "--ignore-missing-imports", *COMPILED],
        opt_level="2",
        debug_level="0",
        target_dir=str(generated),
        group_name="slotstep_kernel",
    )
    made += [
        Extension(
            name,
            [source for source in sources if source.endswith(".c")],
            depends=sources,
            libraries=["m"],
            extra_compile_args=["-O2", "-std=c99"],
        )
        for name, sources in C_MODULES.items()
        if os.name == "posix"
    ]
    for extension in made:
        extension.extra_compile_args += EXACT
    return made


def build(folder: Path) -> None:
    """Replace `folder` by the compiled kernel. Raises SystemExit, with a message, where a compiler fails."""
    import setuptools

    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch, "made")
        setuptools.setup(
            name="kernel",
            packages=[],
            py_modules=[],
            ext_modules=extensions(Path(scratch, "c")),
            script_args=["--quiet", "build_ext", f"--build-lib={made}", f"--build-temp={scratch}/o"],
        )
        files = {
            ".".join(path.relative_to(made).parts).removesuffix(SUFFIX): path for path in made.rglob(f"*{SUFFIX}")
        }
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, path in files.items():
            shutil.copy(path, folder / f"{name}{SUFFIX}")
    sources = [*COMPILED, *(source for several in C_MODULES.values() for source in several)]
    digests = {source: hashlib.sha256((ROOT / source).read_bytes()).hexdigest() for source in sources}
    write_manifest(folder, modules=sorted(files), suffix=SUFFIX, sources=digests)


def write_manifest(folder: Path, obstacle: str = "", **content: Any) -> None:
    """Say in `folder` what is compiled there, for `sim.kernel`; or why nothing is."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"obstacle": obstacle, **content}, indent=1) + "\n")


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve() if sys.argv[1:] else FOLDER)
