"""Who may import whom: the layers, and what each keeps out. Read from the source, nothing is imported."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("sim", "policies", "traces", "calibrate", "reports", "slotstep")
PURE = ("scheduler", "residents", "decoders", "waiting", "batch", "memory", "prefix", "policy", "request", "static")
MODULES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def imports(path):
    """The top-level names that a module imports, anywhere in it; a relative import is its own package."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(path.relative_to(ROOT).parts[0] if node.level else node.module.split(".")[0])
    return names


def module(path):
    return path.relative_to(ROOT).as_posix()


def importers(name):
    return {module(path) for path in MODULES if name in imports(path)}


def test_every_package_is_there():
    assert {path.relative_to(ROOT).parts[0] for path in MODULES} == set(PACKAGES)


@pytest.mark.parametrize("path", MODULES, ids=module)
def test_a_module_imports_only_what_lies_below_it(path):
    package = path.relative_to(ROOT).parts[0]
    ours = imports(path) & set(PACKAGES)
    allowed = {"sim": {"sim"}, "slotstep": set(PACKAGES)}.get(package, {"sim", package})
    assert ours <= allowed


def test_only_the_replica_knows_simpy():
    assert importers("simpy") == {"sim/service/replica.py"}


def test_only_the_front_door_knows_pydantic():
    assert importers("pydantic")
    assert all(name.startswith("slotstep/") for name in importers("pydantic"))


def test_only_calibration_knows_torch():
    assert all(name.startswith("calibrate/") for name in importers("torch"))


@pytest.mark.parametrize("name", PURE)
def test_the_scheduler_and_what_it_is_made_of_are_pure(name):
    found = imports(ROOT / "sim" / f"{name}.py")
    assert not found & {"time", "datetime", "random", "secrets", "logging", "os", "io", "sys", "pathlib", "simpy"}


@pytest.mark.parametrize("path", MODULES, ids=module)
def test_nobody_draws_from_a_global_stream(path):
    """numpy.random.default_rng(seed) and random.Random(seed) are streams; np.random.normal() is not."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "random":
            assert node.attr == "Random"
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
            assert node.attr in ("default_rng", "Generator", "SeedSequence", "PCG64", "Philox")
            assert node.attr != "default_rng" or takes_a_seed(path, node)


def takes_a_seed(path, attribute):
    """Whether default_rng is called with an argument, here."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    here = [
        call for call in calls if (call.func.lineno, call.func.col_offset) == (attribute.lineno, attribute.col_offset)
    ]
    return any(call.args or call.keywords for call in here)
