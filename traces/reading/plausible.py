"""What a file's times cannot mean: latencies that are 0 in every row, and arrivals that are years apart.

A latency of exactly 0 in every row of a run was not measured, as by a client that does not stream. A span or gap of
years, or a gap a thousand times the median one that is a tenth of the whole, is more likely two clocks in one column
than a workload; a pause of minutes in an hour of a busy service is none.
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
    """Make latencies that are exactly 0 in every row of a run missing.

    Where no token took time after the first, answers came whole, and what stands for the first token is the last.
    """
    runs = frame["run"] if "run" in frame else pd.Series("", index=frame.index)
    for rows in frame.groupby(runs, sort=False, dropna=False).groups.values():
        if "tpot_s" in frame and all_zero(frame.loc[rows, "tpot_s"]):
            whole = rows[frame.loc[rows, "tpot_s"] == 0]
            report.change("tpot_s is 0 in every row: answers came whole, without TTFT and TPOT", len(whole))
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
    """Whether there are values, and each is exactly 0."""
    known = values.dropna()
    return bool(len(known)) and bool((known == 0).all())


def far_off(planned: Integers, started: Integers, ended: Integers) -> NDArray[np.bool_]:
    """Which planned starts cannot be on the clock of the real starts and ends, ns, of the same run.

    They are farther from the run than it lasts, and than a minute.
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
    for name, times in instants(trace):
        for found in doubts(times):
            trace.report.warn((f"run {name}: " if name else "") + found)


def instants(trace: Trace) -> Iterator[tuple[str, Integers]]:
    """The arrivals of each run, or where the file has none when its requests were sent, ns, in order."""
    for frame, clock in ((trace.workload, "arrival_ns"), (trace.measurements, "sent_ns")):
        if frame is not None and clock in frame:
            names = frame["run"] if len(trace.runs) > 1 else pd.Series("", index=frame.index)
            for name, times in frame[clock].dropna().groupby(names, sort=False):
                yield str(name), np.sort(times.to_numpy(np.int64))
            return


def doubts(times: Integers) -> Iterator[str]:
    """What is implausible about these instants: their span, else their longest gap."""
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
