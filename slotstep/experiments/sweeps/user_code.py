"""The code behind a scenario that is not part of slotstep: what its names refer to, and the files of it.

A scenario names policies, predictors, admission and victim rules, routers, cost forms, trace formats and metrics.
Each may be `module:object` or belong to an installed package.
"""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from calibrate.profiles.forms import FORMS
from policies import registry as policies
from policies.admissions import ADMISSIONS
from policies.base.choices import choice
from policies.predictors.registry import PREDICTORS
from policies.routers import ROUTERS
from policies.victims import VICTIMS
from sim.accounting.metrics import METRICS
from sim.registry import Registry
from slotstep.runs import profiles
from slotstep.scenario.cluster import POOLS, group_sections
from slotstep.scenario.workload import AUTO, TRACE_OPTIONS
from traces.reading.registry import FORMATS, detect

CODE = (".py", ".so", ".pyd")


def modules(settings: Mapping[str, Any]) -> dict[str, str]:
    """The module of each name in a resolved scenario that is not built in, by what it is and its name."""
    return {
        f"{known.what} {name}": known.reference(name).partition(":")[0]
        for known, name in names(settings)
        if name not in known
    }


def names(settings: Mapping[str, Any]) -> Iterator[tuple[Registry[Any], str]]:
    """The registries and names of all choices of a resolved scenario."""
    for name, options in policies.layers(*choice(settings["policy"])):
        yield policies.POLICIES, name
        yield from predictors(options)
    cluster = settings["cluster"]
    for pool in (cluster, *(cluster[name] for name in POOLS if name in cluster)):
        if "router" in pool:
            yield ROUTERS, choice(pool["router"])[0]
    yield from formats(settings["workload"])
    yield from ((METRICS, name) for name in settings.get("metrics", ()))
    for section in (settings, *group_sections(settings)):
        yield from forms(section.get("cost") or {})
        engine = section["engine"]
        yield ADMISSIONS, choice(engine["admission"])[0]
        if "victim" in engine:
            rule, given = choice(engine["victim"])
            yield VICTIMS, rule
            yield from predictors(given)


def formats(workload: Mapping[str, Any]) -> Iterator[tuple[Registry[Any], str]]:
    """The trace formats of a workload; a detected one if it may be that of an installed package."""
    for kind, file in workload.get("trace", {}).items():
        if kind not in (*TRACE_OPTIONS, AUTO):
            yield FORMATS, kind
        elif kind == AUTO and len(FORMATS.names()) > len(FORMATS):
            yield FORMATS, detect(Path(file))
    for part in workload.get("merge", {}).values():
        yield from formats(part)


def forms(cost: Mapping[str, Any]) -> Iterator[tuple[Registry[Any], str]]:
    """The cost form of a cost: the one that it names, or that of its profile."""
    if "form" in cost:
        yield FORMS, choice(cost["form"])[0]
    if "profile" in cost:
        yield FORMS, profiles.find(cost["profile"]).kind


def predictors(options: Mapping[str, Any]) -> Iterator[tuple[Registry[Any], str]]:
    """The predictor among the options of a policy or a victim rule; none if `predict` means something else there."""
    given = options.get("predict")
    name = next(iter(given), None) if isinstance(given, Mapping) else given
    if isinstance(name, str) and PREDICTORS.knows(name):
        yield PREDICTORS, name


def sources(module: str) -> dict[str, Path]:
    """The source files of a module that is not part of slotstep, by their path relative to its folder.

    These are its module or whole package and what those import from the same folder; of an installed package only the
    package itself.
    """
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
