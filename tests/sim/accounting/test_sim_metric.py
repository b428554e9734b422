"""The declaration of a metric: its columns, its line, its JSON schema."""

import pytest

from sim.accounting.metric import Metric, Value
from sim.accounting.metrics import METRICS, chosen


def test_a_single_value_is_a_column_and_a_line_of_its_own():
    share = Value(unit="share")
    metric = Metric("wasted", "what was wasted", len, {"": share})
    assert list(metric.columns) == [(("wasted",), share)]
    assert metric.subject == "wasted"
    assert Metric("wasted", "", len, {"": share}, line="waste").subject == "waste"
    assert metric.schema == {"description": "what was wasted", "type": ["number", "null"], "unit": "share"}


def test_several_values_are_columns_below_the_key_and_have_no_line():
    metric = Metric("parts", "", len, {"a.b": Value("int64"), "c": Value("string", column=False)})
    assert [path for path, _ in metric.columns] == [("parts", "a", "b")]
    assert metric.subject == ""
    assert metric.schema["properties"]["a"]["properties"]["b"] == {"type": ["integer", "null"]}


def test_values_of_any_name_and_of_lists_are_no_columns():
    metric = Metric("many", "", len, {"*.n": Value("int64"), "[].n": Value("int64")})
    assert list(metric.columns) == []
    assert Metric("list", "", len, {"[].n": Value("int64")}).schema["items"] == {
        "type": ["object", "null"],
        "properties": {"n": {"type": ["integer", "null"]}},
    }


def test_every_built_in_metric_is_listed_under_its_key_and_explained():
    assert [metric.key for metric in METRICS.values()] == list(METRICS)
    assert all(metric.about and not metric.about.endswith(".") for metric in METRICS.values())
    assert all(metric.values for metric in METRICS.values())


def test_a_key_is_taken_once():
    with pytest.raises(ValueError, match=r"run:STEPS' has the key 'steps', which is taken"):
        chosen(["sim.accounting.keys.run:STEPS"])
