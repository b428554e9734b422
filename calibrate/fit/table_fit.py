"""From measured points to the cost of a step: tables read off the grid, and their errors at every point.

Every batch of decodes is a line in their mean context, every size of chunk a line in its start; what both have in
common, the matrix products of as many tokens, is the dense table. A chunk that starts at 0 reads itself, on average
half of it, as a later one reads what came before; the rest of its time is dense. Mixed steps, where there are enough
of them, say what attention of decodes takes beside a chunk, and what several chunks pay once. Ragged ones are held
out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression, nnls

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
    made |= mixed_terms(made, used[used["kind"] == "mixed"])
    ragged = raggedness(table(made), used[used["kind"] == "uneven"])
    return made | ({"raggedness": ragged} if ragged else {})


def mixed_terms(made: Content, points: pd.DataFrame) -> Content:
    """`launch` from steps of two chunks, and `beside` from steps of decodes and a chunk; {} where they are too few.

    `beside` is the line of each batch through what a step took beyond its matrix products and its chunk; it needs two
    contexts of two batches. A table with it is only kept if it predicts these steps better.
    """
    if points.empty:
        return {}
    several = points[[len(point.chunks) > 1 and not point.decodes for point in points["point"]]]
    mixed = points[[bool(point.decodes) for point in points["point"]]]
    found: Content = {}
    if len(several):
        excess = predicted(table(made), several) - several["duration_ns"].to_numpy(np.float64)
        launch = float(np.median(excess / (several["chunks"].to_numpy(np.float64) - 1)))
        found["launch"] = min(max(0.0, launch), min(made["chunk"]["ns"]))
    contexts = mixed.groupby("decodes")["context"].nunique()
    batches = contexts[contexts >= 2].index
    if len(batches) < 2:
        return found
    alone = mixed[mixed["decodes"].isin(batches)].copy()
    without = table({**made, **found, "decode": {"at": [1], "ns": [0.0], "per_position": [0.0]}})
    whole = alone["duration_ns"].to_numpy(np.float64)
    rest = np.maximum(whole - predicted(without, alone), 0.0)
    lines: dict[int, Line] = {}
    for batch in sorted(batches):
        of_it = (alone["decodes"] == batch).to_numpy()
        at = alone["context"].to_numpy(np.float64)[of_it] / batch
        weight = 1 / whole[of_it]
        solution, _ = nnls(np.column_stack([weight, weight * at / at.max()]), weight * rest[of_it])
        lines[int(batch)] = Line(float(solution[0]), float(solution[1]) / float(at.max()))
    beside = {"at": list(lines), "ns": rising([line.base for line in lines.values()]),
              "per_position": rising([line.rise for line in lines.values()])}  # fmt: skip
    with_it = {**found, "beside": beside}
    off = [np.abs(predicted(table({**made, **each}), alone) / whole - 1).mean() for each in (found, with_it)]
    return with_it if off[1] < off[0] else found


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
    return dict(zip(found, rising(list(found.values())), strict=True))


def rising(values: list[float]) -> list[float]:
    """The values that never fall and are nearest to these, by least squares."""
    return [float(value) for value in isotonic_regression(np.array(values, np.float64)).x]


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
