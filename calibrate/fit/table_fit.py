"""From measured points to the cost of a step: tables read off the grid, and their errors at every point.

Every batch of decodes is a line in their mean context, every size of chunk a line in its start; what both have in
common, the matrix products of as many tokens, is the dense table. A chunk that starts at 0 reads itself, on average
half of it, as a later one reads what came before; the rest of its time is dense. Mixed steps are not fitted: they
test whether the parts add up. Ragged ones are held out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from calibrate.arrays import Floats
from calibrate.measure.points import Point
from sim.cost.forms import Curve
from sim.cost.table import Table, table

Content = dict[str, Any]

SUREST = 0.005
"""The precision assumed of a median is no better than this, relatively: a repeatable median may still be biased."""
PRIOR = 0.1


@dataclass(frozen=True)
class Line:
    """ns = base + rise x position, at one batch or size."""

    base: float
    rise: float


def tabulate(points: pd.DataFrame) -> Content:
    """The table, as `sim.cost.table.table` reads it, of measured points (`calibrate.measure.frame.by_point`).

    `raggedness` is what uneven decodes cost beyond even ones of the same mean, where there are any. Held-out points
    are not looked at. Raises ValueError without a decode point or without a chunk.
    """
    used = points[~points["held_out"]]
    decodes = lines_of(used[used["kind"] == "decode"], "decodes", used_context)
    chunks = lines_of(used[used["kind"] == "chunk"], "chunk_tokens", chunk_start)
    if not decodes or not chunks:
        raise ValueError("a table needs points of kind decode and of kind chunk")
    dense = dense_of(decodes, chunks)
    made: Content = {
        "dense": {"at": list(dense), "ns": list(dense.values())},
        "decode": {
            "at": list(decodes),
            "ns": [max(0.0, line.base - dense[batch]) for batch, line in decodes.items()],
            "per_position": rising([line.rise for line in decodes.values()]),
        },
        "chunk": {
            "at": list(chunks),
            "ns": [max(0.0, line.base - dense[size]) for size, line in chunks.items()],
            "per_position": rising([line.rise for line in chunks.values()]),
        },
    }
    ragged = raggedness(table(made), used[used["kind"] == "uneven"])
    return made | ({"raggedness": ragged} if ragged else {})


def raggedness(even: Table, points: pd.DataFrame) -> float:
    """How much a position counts by which the longest row exceeds the others: relative least squares, at least 0."""
    shapes = [point.to_shape(context) for point, context in zip(points["point"], points["context"], strict=True)]
    lasts = points["duration_ns"].to_numpy(np.float64)
    excess = np.array([even.slope(shape) * shape.excess for shape in shapes]) / lasts
    missing = 1 - np.array([float(even.step(shape)) for shape in shapes]) / lasts
    return max(0.0, float((missing * excess).sum() / (excess**2).sum())) if (excess**2).sum() else 0.0


def lines_of(points: pd.DataFrame, by: str, position: Any) -> dict[int, Line]:
    """The line of each batch or size, in order: all at once, by relative non-negative least squares.

    A point is weighted by its precision. Lines are taken to rise in proportion to their size, give or take `PRIOR` of
    the duration of a step: where a size has few or noisy points, the slopes of its neighbours are used.
    """
    if points.empty:
        return {}
    size = points[by].to_numpy(np.int64)
    sizes = sorted(set(size.tolist()))
    place = np.searchsorted(sizes, size)
    at = np.array([position(row["point"], row) for row in points.to_dict("records")])
    lasts = points["duration_ns"].to_numpy(np.float64)
    trust = 1 / np.maximum(points["doubt"].to_numpy(np.float64), SUREST)
    count, reach = len(sizes), max(float(at.max()), 1.0)
    rows = np.zeros((len(points) + count, 2 * count + 1))
    rows[np.arange(len(points)), place] = trust / lasts
    rows[np.arange(len(points)), count + place] = trust * at / reach / lasts
    for number, each in enumerate(sizes):
        weight = 1 / PRIOR / float(np.median(lasts[place == number]))
        rows[len(points) + number, count + number] = weight
        rows[len(points) + number, 2 * count] = -weight * each / sizes[-1]
    found, _ = nnls(rows, np.concatenate([trust, np.zeros(count)]))
    return {
        each: Line(float(found[number]), float(found[count + number]) / reach) for number, each in enumerate(sizes)
    }


def dense_of(decodes: Mapping[int, Line], chunks: Mapping[int, Line]) -> dict[int, float]:
    """Matrix products by tokens: never more than a step of as many tokens took without any context."""
    own = {size: max(line.base - line.rise * size / 2, line.base / 2) for size, line in chunks.items()}
    sizes, of_chunks = np.array(list(own), np.float64), np.array(list(own.values()))
    batches, of_decodes = np.array(list(decodes), np.float64), np.array([line.base for line in decodes.values()])
    found: dict[int, float] = {}
    for tokens in sorted({*decodes, *chunks}):
        upper = []
        if tokens in decodes:
            upper.append(decodes[tokens].base)
        if tokens in own:
            upper.append(own[tokens])
        if sizes.min() <= tokens <= sizes.max():
            upper.append(float(np.interp(tokens, sizes, of_chunks)))
        if batches.min() <= tokens <= batches.max():
            upper.append(float(np.interp(tokens, batches, of_decodes)))
        found[tokens] = min(upper)
    floor = np.minimum.accumulate(np.array(list(found.values()))[::-1])[::-1]
    return dict(zip(found, floor.tolist(), strict=True))


def rising(values: list[float]) -> list[float]:
    """The values, each at least the one before."""
    return [float(value) for value in np.maximum.accumulate(np.array(values))]


def used_context(_: Point, row: Mapping[str, Any]) -> float:
    """The mean context of the decodes of a point, as it was measured."""
    return float(row["context"]) / float(row["decodes"])


def chunk_start(point: Point, _: Mapping[str, Any]) -> float:
    """Where the chunk of a point starts."""
    return float(point.chunks[0][0])


def predicted(cost: Curve, points: pd.DataFrame) -> Floats:
    """What each point costs, ns."""
    return np.array(
        [
            float(cost.step(point.to_shape(context)))
            for point, context in zip(points["point"], points["context"], strict=True)
        ]
    )


def errors(cost: Curve, points: pd.DataFrame) -> pd.Series:
    """Predicted over measured, less 1, by the point's name."""
    found = predicted(cost, points) / points["duration_ns"].to_numpy(np.float64) - 1
    return pd.Series(found, index=points["name"].to_list())


def left_out(points: pd.DataFrame) -> dict[str, float]:
    """How far off each decode and chunk point is in a table made without it, or how unsure it is, if that is more."""
    used = points[~points["held_out"] & points["kind"].isin(["decode", "chunk"])]
    found: dict[str, float] = {}
    for place in range(len(used)):
        name = str(used["name"].iloc[place])
        doubt = float(used["doubt"].iloc[place])
        others = used.drop(used.index[place])
        try:
            cost = table(tabulate(others))
        except ValueError:
            found[name] = doubt
            continue
        found[name] = max(doubt, abs(float(errors(cost, used.iloc[[place]]).iloc[0])))
    return found


def residuals(cost: Curve, points: pd.DataFrame) -> Content:
    """Mean and largest relative error of each kind of grid point, and of the held-out ones."""
    found: Content = {}
    off = errors(cost, points).abs().to_numpy(np.float64)
    for kind in ("decode", "chunk", "mixed", "uneven", "ragged"):
        chosen = off[(points["kind"] == kind).to_numpy()]
        if len(chosen):
            name = "held_out" if kind == "ragged" else kind
            found |= {
                f"{name}_mean": float(chosen.mean()),
                f"{name}_max": float(chosen.max()),
                f"{name}_n": len(chosen),
            }
    return found
