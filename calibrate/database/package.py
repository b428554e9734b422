"""The optional package aiconfigurator-core: imported here alone, and only when a profile is made of its tables."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from types import ModuleType

NAME = "aiconfigurator-core"
MODULE = "aiconfigurator_core"
EXPECTED = "0.12"
INSTALL = "pip install 'slotstep[aiconfigurator]'"
BACKENDS = ("vllm", "sglang", "trtllm")


def installed() -> str:
    """The version of the package; raises ValueError, with what to do, if it is missing or another one."""
    try:
        found = version(NAME)
    except PackageNotFoundError:
        raise ValueError(f"{NAME} is not installed; it has the measured tables: {INSTALL}") from None
    if not found.startswith(f"{EXPECTED}."):
        raise ValueError(f"{NAME} {found} is installed; expected {EXPECTED}.*: {INSTALL}")
    return found


def sdk(name: str) -> ModuleType:
    """A module of the package's SDK; its log is for its developers and is kept off the terminal."""
    installed()
    logging.getLogger(MODULE).setLevel(logging.CRITICAL)
    return importlib.import_module(f"{MODULE}.sdk.{name}")


def systems() -> list[str]:
    """The systems that have measured tables, sorted."""
    folder = files(MODULE) / "systems" / "data"
    return sorted(each.name for each in folder.iterdir() if backends(each.name))


def backends(system: str) -> list[str]:
    """The backends whose attention was measured on a system."""
    folder = files(MODULE) / "systems" / "data" / system / "attention"
    return [backend for backend in BACKENDS if (folder / backend).is_dir()]


def resolved_version(system: str, backend: str, wanted: str | None) -> str:
    """The version of a backend whose tables are taken: the wanted one, or the current one.

    Raises ValueError, one line that names what is there, for a system, backend or version without tables.
    """
    installed()
    one_of("system", system, systems(), "measured systems")
    one_of("backend", backend, backends(system), f"measured on {system}")
    slots = sdk("perf_database").get_version_slots(system, backend) or {}
    listed = list(dict.fromkeys(slots.values()))
    chosen = slots.get("current") if wanted is None else slots.get(wanted, wanted)
    if chosen not in listed:
        raise ValueError(f"version {wanted}: {backend} on {system} is not listed in it; listed: {', '.join(listed)}")
    return str(chosen)


def one_of(what: str, given: str, known: Iterable[str], of: str) -> None:
    """Raise ValueError unless `given` is one of the known names."""
    names = list(known)
    if given not in names:
        raise ValueError(f"{what} {given}: no tables of it; {of}: {', '.join(names)}")
