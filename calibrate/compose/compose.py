"""From the parts of a step to a table of whole steps: the dense part by tokens, attention as lines.

Decodes, chunks, and decodes beside a chunk are fitted separately: their kernels differ, and one fit of all is wrong
for each. Every fit is non-negative and minimises errors relative to the whole step. Reads no file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression, nnls

from calibrate.compose.operators import ALL_REDUCE, Operators
from calibrate.hardware.attained import Efficiency
from calibrate.models.architecture import Architecture, dtype_bytes
from calibrate.profiles.profile import Profile, profile
from calibrate.profiles.shapes import all_reduces_ns
from sim.cost.shape import Shape
from sim.cost.table import Table, table

Points = dict[str, list[float]]

FEWEST = 3
"""Contexts of a batch, or starts of a chunk, that make a line."""


@dataclass(frozen=True)
class Composed:
    """A table of whole steps as a profile holds it, how far it is from its parts, and the largest of these."""

    content: dict[str, Any]
    residuals: dict[str, float]
    range: dict[str, float]


def compose(operators: Operators, unsplit: int | None = None) -> Composed:
    """The table of whole steps made of these operators.

    `unsplit`: decodes from which the kernel no longer splits a context (`unsplit_from`); with it, the table has what
    the longest of them costs. Raises ValueError where the operators are too few for it.
    """
    attention = operators.attention
    dense = knots(operators.dense["tokens"], operators.dense["ns"])
    content: dict[str, Any] = {"dense": dense}
    if len(operators.sequences):
        content["sequences"] = knots(operators.sequences["sequences"], operators.sequences["ns"])

    tokens = attention["chunk"] + attention["decodes"]
    weight = pd.Series(1 / (attention["ns"] + np.interp(tokens, dense["at"], dense["ns"])), index=attention.index)
    alone = attention["chunk"] == 0
    chunks = (attention["decodes"] == 0) & ~alone
    mixed = ~alone & ~chunks
    content["decode"] = lines(attention[alone], weight[alone], "decodes", "context")
    content["chunk"] = lines(attention[chunks], weight[chunks], "chunk", "start")
    content["launch"] = content["chunk"]["ns"][0]
    if mixed.any():
        rows = attention[mixed]
        sizes = zip(rows["chunk"], rows["start"], strict=True)
        rest = rows["ns"] - [chunk_ns(content["chunk"], tokens, start) for tokens, start in sizes]
        content["beside"], content["crossing"] = beside(rows, rest, weight[mixed])
    if unsplit is not None:
        content["unsplit"] = unsplit
        content["per_tail_token"] = alone_in_a_block(attention[mixed], weight[mixed])
    content = rounded(content)
    return Composed(content, residuals(attention, table(content)), extent(operators))


def lines(rows: pd.DataFrame, weight: pd.Series[float], by: str, along: str) -> Points:
    """For each value of `by` the line in `along` of least relative errors, neither falling with `by`.

    Raises ValueError if no value of `by` has `FEWEST` different ones of `along`.
    """
    at: list[float] = []
    base: list[float] = []
    rise: list[float] = []
    for value in sorted(rows[by].unique().tolist()):
        group = rows[rows[by] == value]
        if group[along].nunique() < FEWEST:
            continue
        w = weight[group.index].to_numpy()
        design = np.column_stack([np.ones(len(group)), group[along]]) * w[:, None]
        (here, slope), _ = nnls(design, group["ns"].to_numpy() * w)
        at.append(int(value))
        base.append(float(here))
        rise.append(float(slope))
    if not at:
        raise ValueError(f"attention: no number of {by} with {FEWEST} values of {along} or more; expected some")
    return {"at": at, "ns": never_falling(base), "per_position": never_falling(rise)}


def beside(rows: pd.DataFrame, rest: pd.Series[float], weight: pd.Series[float]) -> tuple[Points, float]:
    """The decodes' part of mixed steps: a line for each batch, and what each decode adds for each chunk token.

    `rest`: nanoseconds that the attention of the chunk alone does not explain.
    """
    batches = sorted(rows["decodes"].unique())
    design = np.zeros((len(rows), 2 * len(batches) + 1))
    for place, batch in enumerate(batches):
        here = (rows["decodes"] == batch).to_numpy()
        design[here, 2 * place] = 1
        design[here, 2 * place + 1] = rows["context"][here]
    design[:, -1] = rows["decodes"] * rows["chunk"]
    w = weight.to_numpy()
    found, _ = nnls(design * w[:, None], np.maximum(rest.to_numpy(), 0) * w, maxiter=100 * design.shape[1])
    base, rise = found[0:-1:2].tolist(), found[1:-1:2].tolist()
    line: Points = {"at": [int(b) for b in batches], "ns": never_falling(base), "per_position": never_falling(rise)}
    return line, float(found[-1])


def alone_in_a_block(rows: pd.DataFrame, weight: pd.Series[float]) -> float:
    """Nanoseconds of one more position of a long context that one block reads alone.

    Beside a chunk no context is split, so steps of one decode and the smallest chunk, at its earliest start, give it.
    Raises ValueError if no such steps were measured.
    """
    found = rows[rows["decodes"] == 1]
    if found.empty:
        raise ValueError(
            "attention: no step of a chunk and one decode; expected some, to derive the cost of a long one"
        )
    smallest = found[(found["chunk"] == found["chunk"].min()) & (found["start"] == found["start"].min())]
    return float(lines(smallest, weight, "decodes", "context")["per_position"][0])


def unsplit_from(multiprocessors: int, kv_heads: int) -> int:
    """Decodes from which FlashAttention 2 gives each context and KV head to one block.

    Its `num_splits_heuristic` (Dao-AILab/flash-attention, csrc/flash_attn/flash_api.cpp) splits contexts while there
    are fewer blocks, one for each sequence and KV head, than 80% of two on each multiprocessor.
    """
    return ceil(0.8 * 2 * multiprocessors / kv_heads)


def chunk_ns(content: Points, tokens: int, start: int) -> float:
    """Attention of a chunk of a measured size, by its line."""
    place = content["at"].index(tokens)
    return content["ns"][place] + content["per_position"][place] * start


def residuals(attention: pd.DataFrame, made: Table) -> dict[str, float]:
    """Relative errors of whole steps (without what is done for each sequence): mean of sizes, and the largest."""
    found: dict[str, float] = {}
    for name, rows in kinds(attention).items():
        if rows.empty:
            continue
        errors = []
        for chunk, start, decodes, context, ns in rows[["chunk", "start", "decodes", "context", "ns"]].to_numpy():
            shape = Shape()
            shape.decodes, shape.context = int(decodes), int(decodes * context)
            if chunk:
                shape.add_chunk(int(start), int(chunk))
            heads = made.sequences(shape.decodes + shape.chunks) if made.sequences else 0.0
            shared = made.dense(shape.decodes + shape.chunk_tokens)
            errors.append(abs(made.step(shape) - heads - shared - ns) / (shared + ns))
        found |= {f"{name}_mean": float(np.mean(errors)), f"{name}_worst": float(np.max(errors))}
    return {key: round(value, 4) for key, value in found.items()}


def kinds(attention: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The measured steps by what they do."""
    decode, chunk = attention["decodes"] > 0, attention["chunk"] > 0
    return {
        "decode": attention[decode & ~chunk],
        "prefill": attention[chunk & ~decode],
        "mixed": attention[decode & chunk],
    }


def extent(operators: Operators) -> dict[str, float]:
    """The largest measured values, by the names of `sim.accounting.extrapolation.BOUNDS`."""
    attention = operators.attention
    return {
        "sequences": int(attention["decodes"].max()),
        "context": int((attention["decodes"] * attention["context"]).max()),
        "tokens": int(operators.dense["tokens"].max()),
        "position": int((attention["chunk"] + attention["start"]).max()),
    }


def knots(at: Iterable[float], ns: Iterable[float], most: int = 160) -> Points:
    """Points of a function that does not fall, in least squares; of more than `most` points some, spread by ratio."""
    points, values = np.array(list(at), np.int64), np.array(list(ns), np.float64)
    values = np.array(never_falling(values.tolist()))
    if len(points) > most:
        wanted = np.geomspace(max(1, points[0]), points[-1], most)
        kept = np.unique(np.abs(points[:, None] - wanted[None, :]).argmin(axis=0))
        points, values = points[kept], values[kept]
    return {"at": [int(x) for x in points], "ns": values.tolist()}


def never_falling(values: list[float]) -> list[float]:
    """The sequence that does not fall and is closest in squares (pool adjacent violators)."""
    return [float(value) for value in isotonic_regression(values).x]


def rounded(content: dict[str, Any]) -> dict[str, Any]:
    """Every time to a picosecond or six digits, whichever is finer: what is measured has fewer."""
    if isinstance(content, dict):
        return {key: rounded(value) for key, value in content.items()}
    if isinstance(content, list):
        return [rounded(value) for value in content]
    return float(f"{content:.6g}") if isinstance(content, float) else content


def with_all_reduces(operators: Operators, model: Architecture, devices: int, link: float, size: int) -> Operators:
    """The operators with two all-reduces a layer added, computed from shapes: a ring over `link` bytes/s."""
    efficiency = Efficiency()
    tokens = operators.dense["tokens"].tolist()
    more = [all_reduces_ns(model, link, count, size, efficiency, devices) for count in tokens]
    dense = operators.dense.assign(ns=operators.dense["ns"] + more)
    missing = tuple(part for part in operators.missing if part != ALL_REDUCE)
    return replace(operators, dense=dense, missing=missing)


def composed_profile(
    operators: Operators,
    model: Architecture,
    *,
    name: str = "profile",
    link: float | None = None,
    multiprocessors: int | None = None,
    **about: Any,
) -> Profile:
    """A profile of the table of whole steps made of these operators; `about` has its remaining keys.

    `link`: bytes/s between the devices, for the all-reduces, which no layout has; None: they stay missing.
    `multiprocessors`: of a device; with it the cost of a long sequence among short ones is derived. Raises ValueError
    as `compose`, and for keys that a profile does not have.
    """
    devices, size = int(about["tensor_parallel"]), dtype_bytes(model.activation_dtype(str(about["dtype"])))
    if link is not None and devices > 1:
        operators = with_all_reduces(operators, model, devices, link, size)
    heads = max(1, model.kv_heads // devices)
    made = compose(operators, unsplit_from(multiprocessors, heads) if multiprocessors else None)
    method = (
        f"Whole steps composed of the operators of {operators.layout}'s layout: dense ones by tokens, those of each "
        f"sequence by sequences, attention as lines fitted to decodes, to chunks and to decodes beside a chunk, each "
        f"times {model.layers} layers. Residuals are of the whole step against the sum of the measured parts."
    )
    if link is not None and devices > 1:
        efficiency = Efficiency()
        method += (
            f" All-reduces are not measured: two a layer, a ring over {link / 1e9:g} GB/s at {efficiency.link:.0%}, "
            f"at least {efficiency.all_reduce_s * 1e6:g} us each."
        )
    if multiprocessors:
        method += (
            f" The longest of uneven decodes is read by one block, on one of {multiprocessors} multiprocessors, as "
            f"fast as a single decode beside the smallest chunk: the kernel's rule, for no uneven batch was measured."
        )
    return profile(
        {"table": made.content},
        name=name,
        **{
            "model": model.described(),
            "method": method,
            "residuals": made.residuals,
            "range": made.range,
            "not_included": [*HOST, *(() if multiprocessors else (EVEN,)), *operators.missing],
            **about,
        },
    )


HOST = ("host time between steps", "scheduling", "output processing")
EVEN = "ragged batches: every decode had one context"
