"""Times as text to exact integer nanoseconds: decimal numbers of any unit, and ISO 8601.

No conversion uses floats: `1746748172.0435476` s is 1746748172043547600 ns. Digits beyond the nanosecond are
truncated.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from traces.limits import LATEST

DIGITS = {"s": 9, "ms": 6, "us": 3, "ns": 0}
DECIMAL = r"^[0-9]{1,19}(\.[0-9]*)?$"
ISO_UTC = r"^(1[6-9]|2[0-2])\d{2}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?$"
ISO = (
    r"^(?P<seconds>(?:1[6-9]|2[0-2])\d{2}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2})"
    r"(?:\.(?P<fraction>\d{1,60}))?(?P<zone>Z|[+-]\d{2}:?\d{2})?$"
)
Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def decimal(texts: Any, unit: str) -> tuple[Numbers, Mask]:
    """Nanoseconds (int64) of numbers written in `unit` ("s", "ms", "us", "ns"), and which texts are invalid.

    A valid number is from 0 to 2^62 ns.
    """
    digits = DIGITS[unit]
    good = pc.match_substring_regex(texts, DECIMAL)
    parts = pc.split_pattern(pc.if_else(good, texts, "0"), ".", max_splits=1)
    whole = pc.list_element(parts, 0)
    values = np.zeros(len(texts), np.int64)
    length = np.asarray(pc.utf8_length(whole))
    nine = np.asarray(pc.starts_with(whole, "9"), bool)
    too_long = (length > 19 - digits) | ((length == 19 - digits) & nine)
    seconds = pc.if_else(pa.array(too_long), "0", whole)
    values += pc.cast(seconds, pa.int64()).to_numpy(zero_copy_only=False) * 10**digits
    if digits and pc.any(pc.greater(pc.list_value_length(parts), 1)).as_py():
        dotted = pc.equal(pc.list_value_length(parts), 2)
        pairs = pc.if_else(dotted, parts, pa.scalar(["0", "0"], parts.type))
        fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.list_element(pairs, 1), digits, "0"), 0, digits)
        values += pc.cast(fraction, pa.int64()).to_numpy(zero_copy_only=False)
    bad = ~np.asarray(good, bool) | too_long
    for row in np.flatnonzero(bad):
        found = exact(texts[int(row)].as_py(), unit)
        if found is not None:
            values[row], bad[row] = found, False
    return values, bad | (values > LATEST) | (values < 0)


def exact(value: object, unit: str) -> int | None:
    """Nanoseconds of one number or its text; None if it is not a number from 0 to 2^62 ns."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = repr(value) if isinstance(value, int | float) else value
    if len(text) > 60 or not re.fullmatch(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?", text):
        return None
    result = Decimal(text).scaleb(DIGITS[unit])
    return int(result) if result <= LATEST else None


def iso(texts: Any) -> tuple[Numbers, Mask]:
    """Nanoseconds since 1970 (int64) of ISO 8601 times, and which texts are invalid.

    Any number of fraction digits, "T" or a space, "Z", an offset or no zone, which means UTC. A valid time is from
    1970 to 2^62 ns later (in 2116).
    """
    if pc.all(pc.match_substring_regex(texts, ISO_UTC)).as_py():
        try:
            values = _cast(texts)
            return values, (values < 0) | (values > LATEST)
        except pa.ArrowInvalid:
            pass
    fields = pc.extract_regex(texts, ISO)
    values, bad = np.zeros(len(texts), np.int64), ~np.asarray(pc.is_valid(fields), bool)
    good = np.flatnonzero(~bad)
    found = fields.take(pa.array(good))
    seconds, fraction, zone = (pc.struct_field(found, name) for name in ("seconds", "fraction", "zone"))
    nanos = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.fill_null(fraction, ""), 9, "0"), 0, 9)
    try:
        instants = _cast(seconds)
    except pa.ArrowInvalid:
        instants, wrong = _cast_one_by_one(seconds)
        bad[good[wrong]] = True
    values[good] = instants + pc.cast(nanos, pa.int64()).to_numpy(zero_copy_only=False)
    values[good] -= _offsets(zone)
    return values, bad | (values < 0) | (values > LATEST)


def _cast(texts: Any) -> Numbers:
    result: Numbers = pc.cast(texts, pa.timestamp("ns")).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return result


def _cast_one_by_one(texts: Any) -> tuple[Numbers, Mask]:
    values, bad = np.zeros(len(texts), np.int64), np.zeros(len(texts), bool)
    for row in range(len(texts)):
        try:
            values[row] = _cast(texts[row : row + 1])[0]
        except pa.ArrowInvalid:
            bad[row] = True
    return values, bad


def _offsets(zones: Any) -> Numbers:
    """Nanoseconds east of UTC of "Z", "+hh:mm", "-hhmm", "" or null."""
    found = pc.dictionary_encode(pc.fill_null(zones, ""))
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    east = np.zeros(max(len(found.dictionary), 1), np.int64)
    for number, zone in enumerate(found.dictionary.to_pylist()):
        if zone not in ("", "Z"):
            minutes = int(zone[1:3]) * 60 + int(zone[-2:])
            east[number] = (-1 if zone[0] == "-" else 1) * minutes * 60 * 10**9
    result: Numbers = east[found.indices.to_numpy(zero_copy_only=False)]
    return result
