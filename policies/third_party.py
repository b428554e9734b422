"""Third-party policies: by entry point, or as `module:Class` from the current directory.

A package offers a policy under the entry-point group `slotstep.policies`; a file needs no packaging. Either names
an `Order` class or an `Entry`. The parameters of the class's constructor are its options; a parameter `seed` receives
the scenario's seed, and parameters listed in the class attribute `durations` are durations. An `Entry` also allows
options of other kinds, a victim rule and a predictor's name.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from policies.base.entry import Entry, Option
from sim.policy.base import Order

GROUP = "slotstep.policies"
CODE = (".py", ".so", ".pyd")


def offered() -> dict[str, EntryPoint]:
    """The entry points of installed packages, by policy name."""
    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def load(name: str) -> Entry | None:
    """The entry of a policy given as `module:Class` or by the name of an entry point; None if it is neither.

    The current directory is searched last, after everything installed. Raises ValueError, in one line, if the module
    cannot be imported or the object is not a policy.
    """
    point = offered().get(name)
    if ":" not in name and point is None:
        return None
    module, _, attribute = name.partition(":")
    here = os.getcwd()
    if point is None and here not in sys.path:
        sys.path.append(here)
    try:
        found = getattr(importlib.import_module(module), attribute) if point is None else point.load()
    except Exception as error:
        raise ValueError(f"{name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    return entry(name, found)


def entry(name: str, found: object) -> Entry:
    """The entry of a policy given as a class or as an entry. Raises ValueError for any other object."""
    if isinstance(found, Entry):
        return found
    if not (inspect.isclass(found) and issubclass(found, Order)) or inspect.isabstract(found):
        raise ValueError(f"{name!r} is {found!r}; expected a class of sim.policy.base.Order, complete, or an Entry")
    parameters = inspect.signature(found).parameters
    needed = [key for key, parameter in parameters.items() if key != "seed" and parameter.default is parameter.empty]
    if needed:
        raise ValueError(f"{name!r} has no default for its option {needed[0]!r}; expected one")
    durations = tuple(getattr(found, "durations", ()))
    unknown = [key for key in durations if key not in parameters]
    if unknown:
        raise ValueError(f"{name!r} has a duration {unknown[0]!r}, which is not one of its options")
    order: type[Order] = found

    def make(seed: int, **options: object) -> Order:
        return order(**options, **({"seed": seed} if "seed" in parameters else {}))

    about = (inspect.getdoc(found) or "No description.").splitlines()[0]
    options = {
        key: Option(parameter.default, "duration" if key in durations else "value")
        for key, parameter in parameters.items()
        if key != "seed"
    }
    return Entry(about=about, make=make, options=options)


def sources(name: str) -> dict[str, Path]:
    """The source files of a third-party policy, by their path relative to the folder of its module.

    These are its module or whole package and what those import from the same folder; of an installed package only the
    package itself.
    """
    module = name.partition(":")[0] if ":" in name else offered()[name].module
    top = module.partition(".")[0]
    spec = find_spec(top)
    places = (
        [] if spec is None else [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.origin else [])]
    )
    folder = Path(places[0]).parent if places else Path()
    installed = str(folder) in sysconfig.get_paths().values()
    found: dict[str, Path] = {}
    wanted = [top] if places else []
    while wanted:
        for file in files(folder, wanted.pop()):
            key = file.relative_to(folder).as_posix()
            if key not in found:
                found[key] = file
                wanted += [] if installed else imported(file)
    return dict(sorted(found.items()))


def files(folder: Path, module: str) -> list[Path]:
    """The files of a module or package in this folder; empty if it is not there."""
    package = folder / module
    places = package.rglob("*") if package.is_dir() else folder.glob(f"{module}.*")
    return sorted(place for place in places if place.suffix in CODE and place.is_file())


def imported(file: Path) -> Iterator[str]:
    """The top-level names of the modules that a Python file imports."""
    try:
        tree = ast.parse(file.read_bytes()) if file.suffix == ".py" else ast.Module([], [])
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
