"""A log of steps as a frame: what each step computed, as a cost takes it, and its duration.

Columns, one row per step in the order they ran:

    decodes       sequences that compute one new token each
    context       cached positions those read, without the new ones
    chunks        sequences that compute part of a prompt, or recompute
    chunk_tokens  positions those compute
    chunk_work    sum of n x (start + n / 2) over the chunks: attention pairs
    duration_ns   duration of the step

`traces.reading.step_logs` reads such logs from files.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibrate.arrays import Floats
from sim.cost.forms import Affine, Roofline
from sim.cost.shape import Shape
from sim.log.events import EventLog

COLUMNS = ("decodes", "context", "chunks", "chunk_tokens", "chunk_work", "duration_ns")


def of_log(log: EventLog) -> pd.DataFrame:
    """The steps of a simulated run as a step log.

    One position past the prompt counts as decoding, also where a preemption had thrown it away.
    """
    runs, steps = log.run_table(), log.run_table()["steps"]
    within = np.arange(log.steps) - np.repeat(np.cumsum(steps) - steps, steps)
    step, request, start, tokens = log.chunk_table().T
    prompts = np.array([asked.prompt for asked in log.requests], np.int64)
    single = (tokens == 1) & (start >= prompts[request])

    def summed(values: NDArray[Any], chosen: NDArray[np.bool_]) -> Floats:
        total: Floats = np.bincount(step[chosen], values[chosen], log.steps).astype(np.float64)
        return total

    chunk_tokens = summed(tokens, ~single)
    context = np.repeat(runs["context"], steps) + within * np.repeat(runs["decode"], steps)
    return pd.DataFrame(
        {
            "decodes": np.repeat(runs["tokens"], steps) - chunk_tokens.astype(np.int64),
            "context": context + summed(start, single).astype(np.int64),
            "chunks": summed(np.ones(len(step)), ~single).astype(np.int64),
            "chunk_tokens": chunk_tokens.astype(np.int64),
            "chunk_work": summed(tokens * (start + tokens / 2), ~single),
            "duration_ns": log.step_durations().copy(),
        }
    )


def predicted(cost: Affine | Roofline, steps: pd.DataFrame) -> Floats:
    """What each of the steps costs, ns, before it is rounded to whole nanoseconds."""
    chunks, tokens = (steps[name].to_numpy(np.float64) for name in ("chunks", "chunk_tokens"))
    decodes = steps["decodes"].to_numpy(np.float64)
    if isinstance(cost, Affine):
        exact = cost.base + cost.host + cost.per_prefill_token * tokens + cost.per_sequence * decodes
    else:
        arithmetic = cost.per_token * (decodes + tokens)
        exact = cost.host + (cost.weight_pass**4 + arithmetic**4) ** 0.25
        exact = exact + cost.per_sequence * (decodes + chunks) + cost.per_chunk * chunks
    exact = exact + cost.per_context_token * steps["context"].to_numpy(np.float64)
    total: Floats = exact + cost.per_chunk_work * steps["chunk_work"].to_numpy(np.float64)
    return total


def shape(step: pd.Series) -> Shape:
    """One row as the shape that a cost takes."""
    made = Shape()
    made.decodes, made.context = int(step["decodes"]), int(step["context"])
    made.chunks, made.chunk_tokens = int(step["chunks"]), int(step["chunk_tokens"])
    made.double_work = round(2 * step["chunk_work"])
    return made
