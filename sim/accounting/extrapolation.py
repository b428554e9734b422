"""The share of steps outside the measured range of a cost: larger than the largest values measured.

A pure function of the log and of these values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sim.log.events import EventLog, Integers

BOUNDS = ("sequences", "context", "tokens", "position")
"""Sizes of a step: decoding sequences, cached positions that they read, positions computed, largest position at which
a chunk ends."""


def beyond(logs: Sequence[EventLog], most: Mapping[str, float]) -> dict[str, float] | None:
    """Shares of all steps that are beyond `most` in any of `BOUNDS` (`any`), and in each of those given.

    None if `most` is empty: the range is unknown. Raises ValueError for a key that is not of `BOUNDS`.
    """
    if unknown := [key for key in most if key not in BOUNDS]:
        raise ValueError(f"{unknown[0]}: unknown bound; expected one of {', '.join(BOUNDS)}")
    if not most:
        return None
    outside = dict.fromkeys(("any", *most), 0)
    for log in logs:
        sizes = sizes_by_step(log)
        anywhere = np.zeros(log.steps, bool)
        for key, bound in most.items():
            larger = sizes[key] > bound
            outside[key] += int(np.count_nonzero(larger))
            anywhere |= larger
        outside["any"] += int(np.count_nonzero(anywhere))
    total = sum(log.steps for log in logs)
    return {key: count / total if total else 0.0 for key, count in outside.items()}


def sizes_by_step(log: EventLog) -> dict[str, Integers]:
    """The sizes of each step by the names of `BOUNDS`: int64 of shape (steps,)."""
    runs = log.run_table()
    steps = runs["steps"]
    within = np.arange(log.steps) - np.repeat(np.cumsum(steps) - steps, steps)
    position = np.zeros(log.steps, np.int64)
    chunks = log.chunk_table()
    np.maximum.at(position, chunks[:, 0], chunks[:, 2] + chunks[:, 3])
    return {
        "sequences": np.repeat(runs["decode"] + runs["held"], steps),
        "context": np.repeat(runs["context"], steps) + within * np.repeat(runs["decode"], steps),
        "tokens": np.repeat(runs["tokens"], steps),
        "position": position,
    }
