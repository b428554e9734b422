"""The constants of each engine that suit open rows best: a grid, and the medians of the sizes of errors on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.silicon.loop import simulated
from benchmarks.silicon.rows import Row

HOSTS = (0.0, 0.4, 0.8, 1.2)
PROMPTS = (1.0, 1.1, 1.2, 1.3)
DELAYS = tuple(range(0, 61, 2))
"""Milliseconds of host and delay, and factors of steps that compute any prompt."""


def fitted(rows: Sequence[Row], profile: Callable[[Row, float], Path]) -> str:
    """A line for each engine, host and factor: the errors, and the delay that suits the TTFT best.

    `profile(row, factor)`: the file of the row's profile.
    """
    found = []
    for row in rows:
        for host in HOSTS:
            for factor in PROMPTS:
                ttft, tpot = simulated(row, {"profile": str(profile(row, factor)), "host": f"{host}ms"})
                found.append((row.backend, host, factor, ttft, row.ttft_s, tpot / row.tpot_s - 1))
    columns = ["engine", "host ms", "prompts", "ttft", "measured", "tpot"]
    table = pd.DataFrame(found, columns=columns)
    lines = []
    for key, group in table.groupby(columns[:3]):
        sizes = {
            delay: float(np.median(np.abs((group["ttft"] + delay / 1e3) / group["measured"] - 1))) for delay in DELAYS
        }
        delay = min(sizes, key=lambda each: sizes[each])
        errors = group["tpot"]
        lines.append((*key, delay, sizes[delay], errors.abs().median(), errors.median(), len(group)))
    heads = [*columns[:3], "delay ms", "TTFT", "TPOT", "TPOT signed", "rows"]
    return str(pd.DataFrame(lines, columns=heads).round(3).to_string(index=False))
