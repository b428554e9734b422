"""Clocks: seconds, milliseconds, microseconds, nanoseconds and ISO 8601, exact to the nanosecond."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.reading.columns import times


def one(reading):
    values, bad = reading
    return None if bad[0] else int(values[0])


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("1746748172.0435476", "s", 1_746_748_172_043_547_600),
        ("19440110.0", "s", 19_440_110 * 10**9),
        ("0", "s", 0),
        ("5.", "s", 5 * 10**9),
        ("0.0000000019", "s", 1),
        ("1e-05", "s", 10_000),
        ("1.5E3", "ms", 1_500_000_000),
        ("3000", "ms", 3 * 10**9),
        ("0.25", "us", 250),
        ("1782183938210545", "us", 1_782_183_938_210_545_000),
        ("1762551534797067827", "ns", 1_762_551_534_797_067_827),
        ("1.9", "ns", 1),
        ("4611686018427387904", "ns", 2**62),
        ("4611686018427387905", "ns", None),
        ("9223372036854775808", "ns", None),
        ("9223372037", "s", None),
        ("-1", "s", None),
        ("nan", "s", None),
        ("inf", "s", None),
        ("1e999", "s", None),
        ("", "s", None),
        (" 1", "s", None),
        ("1_0", "s", None),
        ("0x10", "s", None),
        ("1" * 400, "s", None),
        ("1.2.3", "s", None),
        ("٣", "s", None),
    ],
)
def test_numbers_of_any_unit_are_exact(text, unit, expected):
    assert one(times.decimal(pa.array([text]), unit)) == expected
    assert one(times.decimal(pa.array([text, "7"]), unit)) == expected
    assert times.exact(text, unit) == expected


@given(st.integers(0, 2**62), st.sampled_from(["s", "ms", "us", "ns"]))
def test_any_time_written_out_reads_back(nanoseconds, unit):
    text = f"{Decimal(nanoseconds).scaleb(-times.DIGITS[unit]):f}"
    assert one(times.decimal(pa.array([text]), unit)) == nanoseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01 00:00:00", 0),
        ("2023-11-16 18:15:46.6805900", 1_700_158_546_680_590_000),
        ("2024-05-12 00:00:00+00:00", 1_715_472_000 * 10**9),
        ("2024-10-15T12:00:00.269Z", 1_728_993_600_269_000_000),
        ("2024-10-15T14:00:00.269+02:00", 1_728_993_600_269_000_000),
        ("2024-10-15T07:30:00-0430", 1_728_993_600 * 10**9),
        ("2024-10-15T12:00:00.1234567899999", 1_728_993_600_123_456_789),
        ("2023-02-29 00:00:00", None),
        ("2023-02-28 24:00:00", None),
        ("1969-12-31 23:59:59", None),
        ("2200-01-01 00:00:00", None),
        ("2024-10-15", None),
        ("2024-10-15 12:00", None),
        ("2024-10-15 12:00:00.", None),
        ("noon", None),
        ("", None),
    ],
)
def test_iso_times_of_any_precision_are_exact(text, expected):
    assert one(times.iso(pa.array([text]))) == expected
    assert one(times.iso(pa.array([text, "2024-10-15T12:00:00Z"]))) == expected


@given(st.integers(0, 4 * 10**15), st.integers(-14 * 60, 14 * 60), st.sampled_from(["T", " "]))
def test_any_zone_is_the_same_instant(microseconds, minutes, between):
    instant = datetime(1970, 1, 2, tzinfo=UTC) + timedelta(microseconds=microseconds)
    text = instant.astimezone(timezone(timedelta(minutes=minutes))).isoformat(between)
    assert one(times.iso(pa.array([text]))) == (microseconds + 86_400 * 10**6) * 1000


def test_one_bad_text_does_not_spoil_the_others():
    values, bad = times.decimal(pa.array(["1", "x", "2.5", "", "1e2"]), "s")
    assert bad.tolist() == [False, True, False, True, False]
    assert values[~bad].tolist() == [10**9, 2_500_000_000, 100 * 10**9]
    values, bad = times.iso(pa.array(["1970-01-01T00:00:01Z", "2023-02-30 00:00:00", "1970-01-01 00:00:02"]))
    assert bad.tolist() == [False, True, False]
    assert np.array_equal(values[~bad], [10**9, 2 * 10**9])
