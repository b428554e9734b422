"""Registries: names of built-in entries, of installed packages, and `module:object`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from sim import registry
from sim.registry import Registry


def only_numbers(name: str, found: object) -> float:
    if not isinstance(found, float):
        raise ValueError(f"{name!r} is {found!r}; expected a number")
    return found


@pytest.fixture
def constants(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry[float]]:
    """Two built-in numbers, and a package that offers one more and one under a name that is taken."""
    offered = {"tau": "math:tau", "pi": "math:e", "broken": "math:nothing", "module": "math"}
    points = [EntryPoint(name, value, "constants") for name, value in offered.items()]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == "constants" else [])
    registry.installed.cache_clear()
    yield Registry("constant", "constants", {"pi": "math:pi", "e": "math:e"}, only_numbers)
    registry.installed.cache_clear()


def test_as_a_mapping_it_has_the_built_in_entries_in_their_order(constants: Registry[float]) -> None:
    assert list(constants) == ["pi", "e"]
    assert dict(constants) == {"pi": pytest.approx(3.14159, abs=1e-5), "e": pytest.approx(2.71828, abs=1e-5)}
    with pytest.raises(KeyError):
        constants["tau"]


def test_an_entry_is_found_by_name_by_entry_point_and_by_reference(constants: Registry[float]) -> None:
    assert constants.find("tau") == 2 * constants.find("pi")
    assert constants.find("math:tau") == constants.find("tau")
    assert constants.find("sys:float_info.epsilon") == 2.0**-52
    assert [constants.reference(name) for name in ("e", "tau", "a:b", "module")] == [
        "math:e",
        "math:tau",
        "a:b",
        "math",
    ]


def test_a_built_in_name_stays_what_it_is(constants: Registry[float]) -> None:
    assert constants.find("pi") == constants["pi"]
    assert constants.names() == ["pi", "e", "tau", "broken", "module"]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("taus", r"'taus' is unknown; did you mean tau\?"),
        ("omega", "'omega' is unknown; known are pi, e, tau, broken, module"),
        ("broken", "'broken' cannot be loaded: AttributeError: module 'math' has no attribute 'nothing'"),
        ("module", "'module' is <module 'math'"),
        ("math:floor", "'math:floor' is <built-in function floor>; expected a number"),
        ("nowhere:pi", "'nowhere:pi' cannot be loaded: ModuleNotFoundError: No module named 'nowhere'"),
        ("math:", "'math:' cannot be loaded: AttributeError"),
        (":pi", "':pi' cannot be loaded: ValueError"),
    ],
)
def test_what_is_not_found_is_one_line(constants: Registry[float], name: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as error:
        constants.find(name)
    assert "\n" not in str(error.value)


def test_entry_points_are_read_for_unknown_names_and_lists_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(registry, "entry_points", lambda group: asked.append(group) or [])
    registry.installed.cache_clear()
    constants = Registry("constant", "constants", {"pi": "math:pi"}, only_numbers)
    constants.find("pi")
    constants.find("math:e")
    assert constants.knows("math:e")
    assert list(constants.items())
    assert asked == []
    assert constants.everything() == dict(constants)
    assert not constants.knows("tau")
    assert asked == ["constants"]
    registry.installed.cache_clear()
