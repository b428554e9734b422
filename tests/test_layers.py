"""The structure of the code: who may import whom, no circles, folders and modules of a readable size."""

import ast
import re
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("sim", "policies", "traces", "calibrate", "reports", "slotstep")
PATHS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}
KERNEL = (
    "kernel",
    "subclassing",
    "registry",
    "request",
    "log",
    "sequence",
    "memory",
    "policy",
    "cost",
    "engine",
    "service",
)
KERNEL += ("accounting",)
"""The rooms of `sim`, each of which may import those before it.

`kernel` finds the modules, compiled or not; `subclassing` marks classes for the compiler; `registry` finds entries by
name."""
IMPURE = {"time", "datetime", "random", "secrets", "logging", "os", "io", "sys", "pathlib", "simpy"}
ONE_FILE_AN_ENTRY = ("policies", "traces/formats")
UNPLACEABLE = ("crowd", "warmth", "lives", "trail", "plain", "gates", "lanes", "journeys", "reuse", "guess", "cell")
UNPLACEABLE += ("pace", "specimen")


@cache
def tree(module):
    return ast.parse(PATHS[module].read_text())


@cache
def imports(module):
    """The names a module imports, anywhere in it and for types too: our modules in full, others by their package."""
    found = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            found.update(
                full if (full := f"{node.module}.{alias.name}") in PATHS else node.module for alias in node.names
            )
    return {name if name in PATHS else name.split(".")[0] for name in found}


def named(module):
    """The modules that a registry names, as `module:object` or `module`."""
    texts = {node.value for node in ast.walk(tree(module)) if isinstance(node, ast.Constant)}
    references = {text.partition(":")[0] for text in texts if isinstance(text, str)}
    return {name for name in references if name in PATHS and "." in name}


def importers(package):
    return {module for module in PATHS if package in imports(module)}


def room(module):
    """The part of the kernel that a module of `sim` belongs to."""
    return module.split(".")[1]


def test_every_package_is_there():
    assert {module.split(".")[0] for module in PATHS} == set(PACKAGES)


def test_a_module_imports_only_what_lies_below_it():
    allowed = {"sim": {"sim"}, "slotstep": set(PACKAGES)}
    wrong = [
        (module, name)
        for module in PATHS
        for name in imports(module) | named(module)
        if (layer := name.split(".")[0]) in PACKAGES
        and layer not in allowed.get(module.split(".")[0], {"sim", module.split(".")[0]})
    ]
    assert not wrong


def test_a_room_of_the_kernel_imports_only_those_before_it():
    wrong = [
        (module, name)
        for module in PATHS
        if module.startswith("sim.")
        for name in imports(module)
        if name.startswith("sim.") and KERNEL.index(room(name)) > KERNEL.index(room(module))
    ]
    assert not wrong


def test_the_accounts_know_the_logs_and_not_who_wrote_them():
    accounts = [module for module in PATHS if module.startswith("sim.accounting.")]
    seen = {room(name) for module in accounts for name in imports(module) if name.startswith("sim.")}
    assert seen <= {"registry", "request", "log", "memory", "cost", "accounting"}


def test_nobody_imports_in_a_circle():
    graph = {module: {name for name in imports(module) if name in PATHS} - {module} for module in PATHS}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        raise AssertionError(" -> ".join(circle.args[1])) from None


def test_only_the_clock_knows_simpy():
    assert importers("simpy") == {"sim.service.clock"}


def test_only_the_front_door_knows_pydantic():
    assert importers("pydantic")
    assert all(module.startswith("slotstep.") for module in importers("pydantic"))


def test_only_calibration_knows_torch():
    assert all(module.startswith("calibrate.") for module in importers("torch"))


def test_the_scheduler_and_what_it_is_made_of_are_pure():
    others = ("kernel", "registry", "service", "accounting")
    parts = [module for module in PATHS if module.startswith("sim.") and room(module) not in others]
    assert len(parts) > 10
    assert not [(module, found) for module in parts if (found := imports(module) & IMPURE)]


def test_nobody_draws_from_a_global_stream():
    """numpy.random.default_rng(seed) and random.Random(seed) are streams; np.random.normal() is not."""
    streams = {"default_rng", "Generator", "SeedSequence", "PCG64", "Philox"}
    wrong = []
    for module in PATHS:
        seeded = {
            (call.func.lineno, call.func.col_offset)
            for call in ast.walk(tree(module))
            if isinstance(call, ast.Call) and (call.args or call.keywords)
        }
        for node in ast.walk(tree(module)):
            if not isinstance(node, ast.Attribute):
                continue
            drawn_from = ast.unparse(node.value)
            unseeded = node.attr == "default_rng" and (node.lineno, node.col_offset) not in seeded
            if drawn_from == "random" and node.attr != "Random":
                wrong.append((module, node.lineno))
            if drawn_from in ("np.random", "numpy.random") and (node.attr not in streams or unseeded):
                wrong.append((module, node.lineno))
    assert not wrong


def test_no_folder_holds_more_than_fifteen_modules():
    sizes = Counter(path.parent.relative_to(ROOT).as_posix() for path in PATHS.values() if path.name != "__init__.py")
    assert not {folder: size for folder, size in sizes.items() if size > 15 and folder not in ONE_FILE_AN_ENTRY}


def functions(module):
    """(name, lines) of every function of a module, with the lines of its signature and docstring."""
    return [
        (node.name, node.end_lineno - node.lineno + 1)
        for node in ast.walk(tree(module))
        if isinstance(node, ast.FunctionDef)
    ]


def attributes(node):
    """The attributes of a class that are its own: assigned on self, or declared in its body."""
    assigned = {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and ast.unparse(each.value) == "self"
    }
    return assigned | {each.target.id for each in node.body if isinstance(each, ast.AnnAssign)}


def test_no_function_of_the_kernel_is_longer_than_fifty_lines():
    kernel = [module for module in PATHS if module.startswith("sim.")]
    long = [(module, name, lines) for module in kernel for name, lines in functions(module) if lines > 50]
    assert not long


def test_no_class_of_the_kernel_has_more_than_fifteen_attributes_of_its_own():
    wide = [
        (module, node.name, len(attributes(node)))
        for module in PATHS
        if module.startswith("sim.")
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ClassDef) and len(attributes(node)) > 15
    ]
    assert not wide


STATE = (
    "sequence",
    "engine.batch",
    "engine.counters",
    "engine.decoding",
    "engine.intake",
    "engine.queue",
    "engine.state",
)


def stores(module):
    """(attribute, whether on self, function) of everything that the functions of a module assign to an attribute."""
    return [
        (each.attr, ast.unparse(each.value) == "self", node.name)
        for node in ast.walk(tree(module))
        if isinstance(node, ast.FunctionDef)
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    ]


def test_a_field_of_the_engines_state_is_written_by_one_module():
    """Its class sets it first; after that its own methods, or one other module, write it.

    Not so what is measured of a batch, and not in passes of one kind, which have a state of their own.
    """
    classes = [
        (node.name, f"sim.{part}", attributes(node))
        for part in STATE
        for node in ast.walk(tree(f"sim.{part}"))
        if isinstance(node, ast.ClassDef)
    ]
    measured = {"tokens"}.union(*(names for name, _, names in classes if name == "Row"))
    held = Counter(name for _, _, names in classes for name in names)
    owners = {name: module for _, module, names in classes for name in names - measured if held[name] == 1}
    writers = {name: set() for name in owners}
    for module in PATHS:
        if not re.match(r"sim\.(sequence|engine\.(?!apart)|service\.(replica|failure))", module):
            continue
        for name, own, function in stores(module):
            if name in owners and not (own and (function == "__init__" or module != owners[name])):
                writers[name].add(module)
    assert not {name: sorted(found) for name, found in writers.items() if len(found) > 1}


def test_no_module_is_longer_than_three_hundred_lines():
    lengths = {module: len(path.read_text().splitlines()) for module, path in PATHS.items()}
    assert not {module: length for module, length in lengths.items() if length > 300}


def test_modules_have_names_that_can_be_placed():
    named = {module: re.split(r"[_.]", module.rsplit(".", 1)[-1]) for module in PATHS}
    assert not [module for module, words in named.items() if set(words) & set(UNPLACEABLE)]


def test_every_folder_says_what_is_in_it():
    packages = [module for module, path in PATHS.items() if path.name == "__init__.py"]
    assert not [module for module in packages if not ast.get_docstring(tree(module))]
