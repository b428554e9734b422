"""What the numbers of a run may depend on beside its scenario: slotstep, Python, the machine's kind, packages."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, requires, version

from slotstep.experiments.sweeps import identity


def environment() -> dict[str, str]:
    """Versions by name: `slotstep` with a digest of its code, `python`, `system`, and the packages it depends on."""
    found = {
        "slotstep": identity.code(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    for requirement in requires("slotstep") or ():
        name, _, extra = requirement.partition(";")
        package = re.split(r"[^\w.-]", name.strip(), maxsplit=1)[0]
        if "extra" not in extra:
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                found[package] = "not installed"
    return found


def differences(recorded: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """A line for each version that differs: `numpy: 2.1.0 -> 2.3.4`."""
    names = list(dict.fromkeys([*recorded, *now]))
    return [
        f"{name}: {recorded.get(name, 'absent')} -> {now.get(name, 'absent')}"
        for name in names
        if recorded.get(name) != now.get(name)
    ]
