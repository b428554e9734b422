"""YAML to plain values: what counts as a number, what is an error and where, and overrides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotstep.scenario import document
from traces.errors import BadInput


def test_scalars_are_what_they_look_like() -> None:
    text = "{a: 1e3, b: 1_000, c: no, d: 1:30, e: 2023-01-01, f: 5ms, g: true, h: ~, i: '1e3', j: 010, k: .5}"
    assert document.parse(text) == {
        "a": 1000.0,
        "b": 1000,
        "c": "no",
        "d": "1:30",
        "e": "2023-01-01",
        "f": "5ms",
        "g": True,
        "h": None,
        "i": "1e3",
        "j": 10,
        "k": 0.5,
    }


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufeff"))
looks_like_something_else = st.sampled_from(
    ["1e3", "no", "1:30", "true", "0x1", "1_0", "", "~", "5.", "<<", "2023-01-01"]
)


@pytest.mark.slow
@given(st.dictionaries(texts, scalars | texts | looks_like_something_else | st.lists(scalars)))
def test_what_is_dumped_is_read_back(mapping: dict[str, Any]) -> None:
    assert document.parse(document.dump(mapping)) == mapping


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\na: 2\n", ", line 2, column 1: invalid YAML: the key a is given twice"),
        ("x:\n  a: 1\n  'a': 2\n", ", line 3, column 3: invalid YAML: the key a is given twice"),
        ("a: [1, 2\n", ", line 2, column 1: invalid YAML: expected ',' or ']', but got '<stream end>'"),
        ("a: b: c\n", ", line 1, column 5: invalid YAML: mapping values are not allowed here"),
        ("a: &x [*x]\n", ", line 1, column 4: invalid YAML: found unconstructable recursive node"),
        ("a: 1\n---\nb: 2\n", ", line 2, column 1: invalid YAML: but found another document"),
        (f"a: {'9' * 5000}\n", ", line 1, column 4: invalid YAML: too many digits"),
        ("a: \x01\n", ": invalid YAML: unacceptable character #x0001"),
        ("", ": the file is empty; expected a scenario"),
        ("# nothing\n", ": the file is empty; expected a scenario"),
        ("- a\n", ": found ['a']; expected keys such as workload and cost"),
    ],
)
def test_a_broken_file_is_named_with_the_place_of_the_fault(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "chat.yaml"
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        document.read(file)
    assert str(caught.value).startswith(f"{file}{complaint}")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_text_is_named_with_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    file.write_bytes(b"name: \xff\n")
    with pytest.raises(BadInput) as caught:
        document.read(file)
    assert str(caught.value) == f"{file}: byte 6 is not UTF-8 text"


def test_overrides_reach_into_mappings_and_lists_and_make_what_is_missing() -> None:
    mapping: dict[str, Any] = {"policy": "fcfs", "workload": {"requests": [{"output": 1}, {"output": 2}]}}
    settings = ["engine.slots=8", "policy.fair.max_wait=30s", "workload.requests.1.output=9", "name=a=b"]
    document.override(mapping, settings)
    assert mapping == {
        "policy": {"fair": {"max_wait": "30s"}},
        "workload": {"requests": [{"output": 1}, {"output": 9}]},
        "engine": {"slots": 8},
        "name": "a=b",
    }


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("engine.slots", "--set engine.slots: expected KEY=VALUE, such as engine.slots=8"),
        ("engine..slots=8", "--set engine..slots=8: expected KEY=VALUE, such as engine.slots=8"),
        ("=8", "--set =8: expected KEY=VALUE, such as engine.slots=8"),
        ("a.2=8", "--set a.2=8: a is a list; its positions are 0 to 1"),
        ("a.x=8", "--set a.x=8: a is a list; its positions are 0 to 1"),
        ("b=[8", "--set b=[8, line 1, column 3: invalid YAML: expected ',' or ']', but got '<stream end>'"),
    ],
)
def test_an_override_that_is_none_is_refused(setting: str, complaint: str) -> None:
    with pytest.raises(BadInput) as caught:
        document.override({"a": [1, 2]}, [setting])
    assert str(caught.value) == complaint
