"""Durations to nanoseconds and back, exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotstep.scenario import units


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("5ms", 5_000_000),
        ("20us", 20_000),
        ("1.5s", 1_500_000_000),
        ("300ns", 300),
        ("2m", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        (" 30 s ", 30_000_000_000),
        ("1e3us", 1_000_000),
        ("9007199254740993ns", 2**53 + 1),
        ("1.000000001s", 1_000_000_001),
        ("1.6ns", 2),
        (0, 0),
        ("0", 0),
    ],
)
def test_a_time_is_whole_nanoseconds_to_the_last_digit(written: object, expected: int) -> None:
    assert units.nanoseconds(written) == expected


@pytest.mark.parametrize(("written", "expected"), [("53.0ns", 53.0), ("0.32ns", 0.32), ("3.2e-1ns", 0.32)])
def test_a_coefficient_keeps_its_fraction_of_a_nanosecond(written: str, expected: float) -> None:
    assert units.coefficient(written) == expected


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        (5, "found 5, without a unit; expected a duration such as 5ms (units: ns, us, ms, s, m, h)"),
        ("7.5", "found '7.5', without a unit"),
        ("5min", "found '5min'; expected one of the units ns, us, ms, s, m, h"),
        ("-5ms", "found '-5ms'; expected a duration of at least 0"),
        ("soon", "found 'soon'; expected a duration such as 5ms"),
        (True, "found True; expected a duration"),
        (float("nan"), "found nan; expected a duration"),
        ("1e30s", "less than 292 years"),
        ("1e999999999s", "less than 292 years"),
    ],
)
def test_what_is_no_duration_is_refused_with_what_would_be(written: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=r"^found") as caught:
        units.nanoseconds(written)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("length", "written"),
    [(1_500_000_000, "1.5s"), (5e6, "5ms"), (0.32, "0.32ns"), (0, "0ns"), (999, "999ns")],
)
def test_a_length_is_written_in_the_largest_unit_it_fills(length: float, written: str) -> None:
    assert units.text(length) == written


@given(st.integers(0, 2**63 - 1))
def test_every_time_survives_being_written(length: int) -> None:
    assert units.nanoseconds(units.text(length)) == length


@given(st.floats(0, 2**62))
def test_every_coefficient_survives_being_written(length: float) -> None:
    assert units.coefficient(units.text(length)) == length
