"""Slices of a log for which a service is planned: its busiest stretches, by requests, prompt and output tokens.

A service that bears the busiest stretch bears the others. Which stretch is the busiest depends on what a GPU is short
of: arithmetic (prompts), or reads (outputs). A stretch is as long as it takes for enough requests; of more than
enough a part is drawn, which is what the router of several replicas does to one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.request import SECOND
from traces.errors import BadInput
from traces.reading.table import Trace

ENOUGH = 1000
"""Requests of a slice."""
MINUTE = 60.0
FEWEST_BINS = 20
"""A log of fewer minutes is divided into so many parts."""
SAME = 0.5
"""Two stretches that overlap by more than this share are one."""


@dataclass(frozen=True)
class Slice:
    """A stretch of a log.

    names     by what it is the busiest
    begin, end  seconds after the first request
    requests  of the log in it
    rate      requests/s of the log in it
    prompt, output, held  means in tokens, as `sim.cost.full_batch.Load`
    kept      the share of its requests that is simulated
    file      where they are
    """

    names: tuple[str, ...]
    begin: float
    end: float
    requests: int
    rate: float
    prompt: float
    output: float
    held: float
    kept: float = 1.0
    file: str = ""


@dataclass(frozen=True)
class Demand:
    """Requests, prompt and output tokens of a log in bins of `width` seconds."""

    width: float
    requests: NDArray[np.float64]
    prompt: NDArray[np.float64]
    output: NDArray[np.float64]

    @property
    def rates(self) -> list[float]:
        """Requests/s in each bin."""
        found: list[float] = (self.requests / self.width).tolist()
        return found


def demand(frame: pd.DataFrame) -> Demand:
    """A log's demand over time. Raises BadInput for fewer than two requests, or if all come at once."""
    times = frame["arrival_ns"].to_numpy(np.int64) / SECOND
    if len(times) < 2 or times[-1] <= times[0]:
        raise BadInput("found no two times of arrival; expected a log over some time")
    span = float(times[-1] - times[0])
    width = min(MINUTE, span / FEWEST_BINS)
    bins = max(int(span / width), 1)
    place = np.minimum(((times - times[0]) / width).astype(np.int64), bins - 1)

    def sums(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(place, weights, bins).astype(np.float64)

    prompt, output = (frame[name].to_numpy(np.float64) for name in ("prompt", "output"))
    return Demand(width, sums(np.ones(len(times))), sums(prompt), sums(output))


def choose(frame: pd.DataFrame, found: Demand) -> list[Slice]:
    """The busiest stretches of a log, sorted by arrival; the whole log if it has few requests."""
    bins = len(found.requests)
    length = int(min(max(np.ceil(ENOUGH / found.requests.max()), 1), bins))
    starts: dict[int, list[str]] = {}
    for name, weights in (
        ("prompt tokens", found.prompt), ("output tokens", found.output), ("requests", found.requests)
    ):  # fmt: skip
        sums = np.convolve(weights, np.ones(length), "valid")
        start = int(sums.argmax())
        same = [other for other in starts if abs(other - start) < (1 - SAME) * length]
        starts.setdefault(same[0] if same else start, []).append(name)
    return [
        of(frame, found, start, length, tuple(names)) for start, names in sorted(starts.items(), key=lambda it: it[0])
    ]


def of(frame: pd.DataFrame, found: Demand, start: int, length: int, names: tuple[str, ...]) -> Slice:
    """The slice of `length` bins from bin `start` on."""
    begin = start * found.width
    end = begin + length * found.width
    inside = frame[within(frame, begin, end)]
    prompt, output = (inside[name].to_numpy(np.float64) for name in ("prompt", "output"))
    held = float((output * (prompt + output / 2)).sum() / output.sum())
    kept = min(1.0, 1.25 * ENOUGH / len(inside))
    rate = len(inside) / (end - begin)
    return Slice(
        names, begin, end, len(inside), rate, float(prompt.mean()), float(output.mean()), held, round(kept, 4)
    )


def within(frame: pd.DataFrame, begin: float, end: float) -> NDArray[np.bool_]:
    """Which rows arrive from `begin` to before `end`, seconds after the first."""
    times = (frame["arrival_ns"] - frame["arrival_ns"].iloc[0]).to_numpy(np.int64) / SECOND
    last = float(times[-1])
    inside: NDArray[np.bool_] = (times >= begin) & ((times < end) | ((times == last) & (end >= last)))
    return inside


def write(trace: Trace, chosen: Sequence[Slice], folder: Path) -> list[Slice]:
    """Write the requests of each slice into a file of `folder`; returns the slices with their files."""
    from traces.writers import write as write_trace

    written = []
    frame = trace.workload
    assert frame is not None
    for number, each in enumerate(chosen, 1):
        inside = frame[within(frame, each.begin, each.end)].reset_index(drop=True)
        if each.kept < 1:
            drawn = np.random.default_rng(number).random(len(inside)) < each.kept
            inside = inside[drawn].reset_index(drop=True)
        inside["arrival_ns"] -= inside["arrival_ns"].iloc[0]
        path = folder / f"slice-{number}.parquet"
        write_trace(replace(trace, workload=inside, measurements=None, tables={}), path)
        written.append(replace(each, file=str(path.absolute())))
    return written
