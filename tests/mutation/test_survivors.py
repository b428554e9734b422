"""The list of mutants that no test can kill names code that is there, and says why each changes nothing."""

from importlib import import_module
from inspect import getsource

import yaml
from repository import ROOT

GROUPS = yaml.safe_load((ROOT / "tests" / "mutation" / "survivors.yaml").read_text())


def source_of(where):
    """The lines of a function, without indentation."""
    parts = where.split(".")
    depth = next(end for end in range(len(parts), 0, -1) if ROOT.joinpath(*parts[:end]).with_suffix(".py").exists())
    found = import_module(".".join(parts[:depth]))
    for name in parts[depth:]:
        found = getattr(found, name, None)
    return "\n".join(line.strip() for line in getsource(found).splitlines()) if found else ""


def test_every_line_is_in_the_function_that_it_is_said_to_be_in():
    listed = [entry for group in GROUPS for entry in group["mutants"]]
    assert not [entry for entry in listed if entry["was"] not in source_of(entry["where"])]


def test_every_group_has_a_reason_and_every_mutant_a_change():
    assert all(group["why"].strip() for group in GROUPS)
    assert all(entry["was"] != entry["now"] for group in GROUPS for entry in group["mutants"])
