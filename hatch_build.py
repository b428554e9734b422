"""The build hook: a wheel gets the compiled kernel where a C compiler is found, otherwise the reason why it has none.

An editable install gets none, as its sources change: `make compiled` compiles them in place. Where SLOTSTEP_KERNEL is
`python`, nothing is compiled.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NEEDS = ["mypy>=2.4,<2.5", "setuptools>=77", "numpy>=1.26", "simpy>=4.1"]
"""The compiler, and the packages whose types the kernel's sources use."""


def obstacle() -> str:
    """Why nothing is to be compiled; empty if it is.

    A compiler is the one that this Python was made with, or its like.
    """
    if os.environ.get("SLOTSTEP_KERNEL") == "python":
        return "SLOTSTEP_KERNEL was python"
    own = (sysconfig.get_config_var("CC") or "cl").split()[0]
    return "" if any(map(shutil.which, (own, "cc", "gcc", "clang"))) else "no C compiler was found"


class KernelHook(BuildHookInterface):
    """Compiles the kernel (`kernel_build.py`) into a folder of its own, which becomes `sim/compiled` of the wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What has to be there for the build besides hatchling."""
        return [] if obstacle() else NEEDS

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless the install is editable."""
        if version == "editable":
            return
        self.folder = Path(tempfile.mkdtemp())
        made = self.folder / "compiled"
        reason = obstacle() or self.compile(made)
        if reason:
            self.app.display_warning(f"the kernel is not compiled: {reason}")
            script("kernel_build", self.root).write_manifest(made, reason)
        else:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
        build_data["force_include"][str(made)] = "sim/compiled"

    def compile(self, made: Path) -> str:
        """Compile into a folder; returns why that failed, empty if it did not."""
        command = [sys.executable, "kernel_build.py", str(made)]
        ended = subprocess.run(command, cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if not ended.returncode:
            return ""
        self.app.display_warning(ended.stdout)
        return "compiling it failed: " + ended.stdout.strip().rpartition("\n")[2][:200]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what is in the wheel now."""
        if version != "editable":
            shutil.rmtree(self.folder, ignore_errors=True)


def script(name: str, root: str) -> Any:
    """A module of the project's root, which is not on the path of a build."""
    spec = importlib.util.spec_from_file_location(name, Path(root, f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
