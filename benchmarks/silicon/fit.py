"""The constants of each engine that suit open rows best: grids, and the medians of the sizes of errors on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.silicon.constants import Constants, constants
from benchmarks.silicon.loop import simulated
from benchmarks.silicon.rows import Row

HOSTS = (0.0, 0.4, 0.8, 1.2)
PROMPTS = (1.0, 1.1, 1.2, 1.3)
LEASTS = (0.0, 60.0, 75.0, 90.0, 120.0, 160.0, 200.0, 240.0, 280.0, 320.0)
DELAYS = tuple(range(0, 61, 2))
"""Milliseconds of host and delay, and of `least`; factors of steps that compute any prompt."""


def fitted(rows: Sequence[Row], profile: Callable[[Row, Constants], Path]) -> str:
    """A line for each engine, host and factor: the errors, and the delay that suits the TTFT best.

    `profile(row, constants)`: the file of the row's profile.
    """
    found = []
    for row in rows:
        for host in HOSTS:
            for factor in PROMPTS:
                of = replace(constants(row), prompts=factor)
                ttft, tpot = simulated(row, {"profile": str(profile(row, of)), "host": f"{host}ms"})
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


def fitted_least(rows: Sequence[Row], profile: Callable[[Row, Constants], Path]) -> str:
    """A line for each engine, system and `least`: the errors of the rows whose tables exist."""
    found = []
    for row in rows:
        known = constants(row)
        try:
            for least in LEASTS:
                file = profile(row, replace(known, least=least))
                ttft, tpot = simulated(row, {"profile": str(file), "host": f"{known.host}ms"})
                error = (ttft + known.delay / 1e3) / row.ttft_s - 1
                found.append((row.backend, row.system, least, abs(error), abs(tpot / row.tpot_s - 1), error))
        except ValueError:
            continue
    columns = ["engine", "system", "least ms", "TTFT", "TPOT", "TTFT signed"]
    groups = pd.DataFrame(found, columns=columns).groupby(columns[:3])
    table = groups.median().assign(rows=groups.size())
    return str(table.round(3).reset_index().to_string(index=False))
