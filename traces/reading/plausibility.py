"""Checks for implausible times: latencies that are 0 in every row, and arrivals that are years apart.

A latency of exactly 0 in every row of a run was not measured, for instance by a client that does not stream. A span
or gap of years, or a gap a thousand times the median that is a tenth of the whole, suggests two clocks in one column;
a pause of minutes in an hour of a busy service does not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.request import SECOND
from traces.reading.pieces import objects
from traces.reading.report import Report
from traces.reading.table import Trace

Integers = NDArray[np.int64]

YEAR = 365 * 24 * 3600 * SECOND
FAR = 1000
SHARE = 0.1
FEWEST = 3


def drop_zeros(frame: pd.DataFrame, report: Report) -> None:
    """Set latencies that are exactly 0 in every row of a run to missing.

    Where TPOT is 0 in every row, answers were not streamed, and the recorded first token is the last one.
    """
    runs = frame["run"] if "run" in frame else pd.Series("", index=frame.index)
    for rows in frame.groupby(runs, sort=False, dropna=False).groups.values():
        if "tpot_s" in frame and all_zero(frame.loc[rows, "tpot_s"]):
            whole = rows[frame.loc[rows, "tpot_s"] == 0]
            report.change("tpot_s is 0 in every row: answers were not streamed, without TTFT and TPOT", len(whole))
            frame.loc[whole, [name for name in ("ttft_s", "tpot_s") if name in frame]] = np.nan
        for name in ("ttft_s", "e2e_s"):
            if name in frame and all_zero(frame.loc[rows, name]):
                report.change(f"{name} is 0 in every row: not measured", int(frame.loc[rows, name].notna().sum()))
                frame.loc[rows, name] = np.nan
        gaps = frame.loc[rows, "itl_s"].tolist() if "itl_s" in frame else []
        if any(map(len, gaps)) and not any(np.any(each) for each in gaps):
            report.change("itl_s is 0 in every row: not measured", sum(map(bool, map(len, gaps))))
            frame.loc[rows, "itl_s"] = pd.Series(objects(each[:0] for each in gaps), rows)


def all_zero(values: pd.Series[float]) -> bool:
    """Whether there are values and all are exactly 0."""
    known = values.dropna()
    return bool(len(known)) and bool((known == 0).all())


def far_off(planned: Integers, started: Integers, ended: Integers) -> NDArray[np.bool_]:
    """Which planned starts (ns) are on another clock than the real starts and ends (ns) of the same run.

    These are farther from the run than its duration and than a minute.
    """
    real = np.concatenate([started, ended])
    if not len(real):
        return np.zeros(len(planned), bool)
    first, last = int(real.min()), int(real.max())
    away = max(last - first, 60 * SECOND)
    found: NDArray[np.bool_] = (planned < first - away) | (planned > last + away)
    return found


def warn(trace: Trace) -> None:
    """Add a warning to the trace's report for each run whose requests are implausibly far apart."""
    for name, times in times_by_run(trace):
        for found in implausible(times):
            trace.report.warn((f"run {name}: " if name else "") + found)


def times_by_run(trace: Trace) -> Iterator[tuple[str, Integers]]:
    """The name and sorted arrivals (ns) of each run; send times where the file has no arrivals."""
    for frame, clock in ((trace.workload, "arrival_ns"), (trace.measurements, "sent_ns")):
        if frame is not None and clock in frame:
            names = frame["run"] if len(trace.runs) > 1 else pd.Series("", index=frame.index)
            for name, times in frame[clock].dropna().groupby(names, sort=False):
                yield str(name), np.sort(times.to_numpy(np.int64))
            return


def implausible(times: Integers) -> Iterator[str]:
    """A warning for an implausible span of these times, or else for an implausible gap."""
    gaps = np.diff(times)
    if not len(gaps):
        return
    place = int(gaps.argmax())
    longest, span = int(gaps[place]), int(times[-1] - times[0])
    where = f"after {place + 1:,} of {len(times):,} requests: are these times of one clock?"
    usual = int(np.median(gaps[gaps > 0])) if longest else 0
    if span > YEAR:
        yield f"requests over {span / YEAR:,.1f} years, the longest gap {longest / YEAR:,.1f} years, {where}"
    elif len(gaps) >= FEWEST and longest > max(FAR * usual, SHARE * span):
        yield f"a gap of {longest / SECOND:,.4g} s, {longest / usual:,.0f} times the median one, {where}"
