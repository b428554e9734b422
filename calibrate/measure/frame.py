"""A measurement as a frame: one row per point, its shape, and the robust figures of its samples by one clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from calibrate.measure.points import read
from calibrate.measure.robust import Drift, drift, robust
from calibrate.measure.run_log import CONTROL

CLOCKS = ("device", "cpu", "wall")
COLUMN = {clock: place + 1 for place, clock in enumerate(CLOCKS)}


def by_point(lines: Sequence[dict[str, Any]], clock: str) -> pd.DataFrame:
    """The points of a measurement's lines, a row each.

    Columns: those of `calibrate.fit.step_log`, and point, name, kind, held_out, n, mad_ns, low_ns, high_ns, doubt
    (half the interval over the median).

    Raises ValueError if the clock was not read, or nothing was measured.
    """
    visits: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        if line["kind"] == "visit":
            visits.setdefault(line["name"], []).append(line)
    if not visits:
        raise ValueError("nothing was measured")
    rows = []
    for name, of_it in visits.items():
        samples = [sample for line in of_it for sample in line["samples"]]
        found = robust([on(line["samples"], clock) for line in of_it])
        point = read(of_it[0]["point"])
        grown = float(np.mean([sample[0] for sample in samples]))
        shape = point.shape
        shape["context"] += grown * shape["decodes"]
        rows.append(
            {
                **shape,
                "duration_ns": found.median,
                "point": point,
                "name": name,
                "kind": point.kind,
                "held_out": of_it[0]["held_out"],
                "n": found.n,
                "mad_ns": found.mad,
                "low_ns": found.low,
                "high_ns": found.high,
                "doubt": found.doubt,
            }
        )
    return pd.DataFrame(rows)


def drift_of(lines: Sequence[dict[str, Any]], clock: str) -> Drift:
    """The drift of the control points by one clock: of the one that changed most."""
    looks: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        if line["kind"] == CONTROL:
            looks.setdefault(line.get("name", ""), []).append(line)
    found = [
        drift([line["at"] for line in of_it], [float(np.median(on(line["samples"], clock))) for line in of_it])
        for of_it in looks.values()
    ]
    return max(found, key=lambda each: abs(each.trend), default=Drift(0, 0.0, 0.0))


def contention(lines: Sequence[dict[str, Any]]) -> float | None:
    """Wall time over CPU time of the thread that computes, the median of all samples; None without CPU time."""
    samples = [sample for line in lines for sample in line.get("samples", ()) if sample[COLUMN["cpu"]]]
    if not samples:
        return None
    return float(np.median([sample[COLUMN["device"]] / sample[COLUMN["cpu"]] for sample in samples]))


def on(samples: Sequence[Sequence[int | None]], clock: str) -> list[float]:
    """The durations of samples by a clock. Raises ValueError if it was not read."""
    if clock not in COLUMN:
        raise ValueError(f"clock {clock}: unknown; expected one of {', '.join(CLOCKS)}")
    found = [sample[COLUMN[clock]] for sample in samples]
    if any(value is None for value in found):
        raise ValueError(f"clock {clock}: was not read on this device; expected device or wall")
    return [float(value) for value in found if value is not None]
