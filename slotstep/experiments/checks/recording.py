"""Recorded values in the text of a baseline: replaced in place, so that comments and layout stay."""

from __future__ import annotations

import json
from collections.abc import Iterable

import yaml

from slotstep.experiments.metric_path import Value
from slotstep.scenario import document
from traces.errors import BadInput


def place(text: str, check: str, metric: str) -> yaml.Node:
    """The node of a metric in the text of a baseline."""
    node: yaml.Node | None = yaml.compose(text, Loader=document.Loader)
    for key in ("checks", check, "metrics", metric):
        node = entry(node, key)
        if node is None:
            raise BadInput(f"{key}: is not written where it is used; expected it without << in a baseline")
    assert node is not None
    return node


def entry(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """The value of a key in a mapping node; None if it is not there."""
    assert isinstance(node, yaml.MappingNode)
    return next((value for name, value in node.value if str(name.value) == key), None)


def line(text: str, check: str, metric: str) -> int:
    """The line, from 1, on which a value is recorded."""
    node = place(text, check, metric)
    value = entry(node, "value") if isinstance(node, yaml.MappingNode) else None
    return int((value or node).start_mark.line) + 1


def recorded(text: str, values: Iterable[tuple[str, str, Value]]) -> str:
    """The text of a baseline with new values, each (check, metric, value); everything else stays.

    A metric that has a tolerance and no value gets its value before the tolerance.
    """
    edits = [edit(text, place(text, check, name), written(value)) for check, name, value in values]
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def edit(text: str, node: yaml.Node, value: str) -> tuple[int, int, str]:
    """Where a metric's value goes: the start and the end of the text that it replaces, and its own text."""
    if isinstance(node, yaml.MappingNode):
        inner = entry(node, "value")
        if inner is None:
            start = node.start_mark
            if node.flow_style:
                return start.index + 1, start.index + 1, f"value: {value}, "
            return start.index, start.index, f"value: {value}\n{' ' * start.column}"
        node = inner
    start, end = node.start_mark.index, node.end_mark.index
    return start, end, (" " if text[start - 1] == ":" else "") + value


def written(value: Value) -> str:
    """A value as YAML that reads back the same."""
    return "null" if value is None else json.dumps(value, ensure_ascii=False)
