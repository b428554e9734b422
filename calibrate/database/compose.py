"""From the parts of a step to a table of whole steps, and how far its steps are from those that the source sums.

The part that depends on tokens is sampled at every whole number and kept at few (`calibrate.database.points`).
Attention is a bent line in the context for each of `DECODES`, and in the start for each of `CHUNKS`. What several
prompts in one step pay once is the median of what steps of `PROMPTS` prompts show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from calibrate.compose.compose import Composed, rounded
from calibrate.database.points import sampled
from calibrate.database.steps import Steps
from sim.cost.shape import Shape
from sim.cost.table import Table, table

DECODES = (
    *(1, 2, 3, 4, 6, 8, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 127, 128, 129, 192, 255, 256, 257, 384),
    *(511, 512, 513, 768, 1024),
)
"""Both sides of the powers of two, where kernels change."""
CHUNKS = (1, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
PROMPTS = (2, 4, 8)
CONTEXTS = tuple(sorted({round(32 * 2 ** (half / 2)) for half in range(25)}))
"""Positions of decodes, and starts of chunks besides 0: 32 to 131,072, two in each octave."""
CHECKED = 300
"""Random steps of each kind that the table is compared with."""


@dataclass(frozen=True)
class Extent:
    """How far a table reaches: tokens of a step, positions of a sequence, positions of all decodes."""

    tokens: int
    position: int
    context: int


def compose(steps: Steps, extent: Extent) -> Composed:
    """The table of whole steps, its residuals against whole steps of the source, and its range."""
    content: dict[str, Any] = {"dense": sampled(steps.shared, extent.tokens)}
    alone = [steps.decode_shared(decodes) for decodes in DECODES]
    if not np.allclose(alone, [steps.shared(decodes) for decodes in DECODES], rtol=1e-6):
        content["decode_dense"] = sampled(steps.decode_shared, DECODES[-1])
    content["sequences"] = sampled(steps.heads, DECODES[-1])
    contexts = [context for context in CONTEXTS if context <= extent.position]
    content["decode"] = attention(DECODES, contexts, steps.decode, steps.decode_shared)
    if steps.shares_projections:
        rows = content["decode"]["ns"]
        content["beside"] = {**content["decode"], "ns": [[max(each - row[0], 0.0) for each in row] for row in rows]}
    starts = [0, *contexts]
    content["chunk"] = attention(CHUNKS, starts, steps.chunk, steps.shared)
    content["launch"] = launch(steps, content["chunk"])
    content = rounded(content)
    reached: dict[str, float] = {
        "sequences": DECODES[-1],
        "context": extent.context,
        "tokens": extent.tokens,
        "position": extent.position,
    }
    return Composed(content, residuals(steps, table(content), extent), reached)


def attention(
    at: Sequence[int], along: Sequence[int], of: Callable[[int, int], float], rest: Callable[[int], float]
) -> dict[str, Any]:
    """Attention by number and position; where it falls with the number, the closest that does not.

    Closest in squares relative to whole steps; `rest(x)`: what such a step has besides.
    """
    ns = np.array([[of(x, position) for position in along] for x in at], np.float64)
    weights = 1 / (ns + np.array([[rest(x)] for x in at], np.float64)) ** 2
    columns = [isotonic_regression(each, weights=w).x for each, w in zip(ns.T, weights.T, strict=True)]
    return {"at": list(at), "along": list(along), "ns": np.array(columns).T.tolist()}


def launch(steps: Steps, chunk: dict[str, Any]) -> float:
    """What each of several prompts in a step has in its base and the step pays once; at most the smallest base."""
    bases: list[float] = [row[0] for row in chunk["ns"]]
    once = []
    for tokens, base in zip(CHUNKS, bases, strict=True):
        if 64 <= tokens <= 2048:
            once += [(prompts * base - steps.chunk(tokens, 0, prompts)) / (prompts - 1) for prompts in PROMPTS]
    return min(max(0.0, median(once)), bases[0])


def residuals(steps: Steps, made: Table, extent: Extent) -> dict[str, float]:
    """Relative errors of random steps: mean, median and 99th percentile of their sizes, by kind of step."""
    draw = np.random.default_rng(0)
    errors: dict[str, list[float]] = {"decode": [], "prefill": [], "mixed": []}
    for _ in range(CHECKED):
        decodes = logarithmic(draw, 1, 512)
        context = logarithmic(draw, 64, max(128, min(extent.position, extent.context // decodes)))
        tokens, start = logarithmic(draw, 16, 8192), 0
        if draw.random() < 0.5:
            start = logarithmic(draw, 64, max(128, min(extent.position - tokens, 16384)))
        whole_mixed = steps.whole_mixed(tokens, decodes, context)
        wholes = (
            ("decode", decodes, 0, 0, steps.whole_decode(decodes, context)),
            ("prefill", 0, tokens, start, steps.whole_prefill(tokens, start)),
            ("mixed", decodes, tokens, 0, whole_mixed),
        )
        for kind, beside, chunk, at, whole in wholes:
            if whole is None:
                continue
            shape = Shape()
            shape.decodes, shape.context = beside, beside * context
            if chunk:
                shape.add_chunk(at, chunk)
            errors[kind].append(abs(made.step(shape) / whole - 1))
    found: dict[str, float] = {}
    for kind, sizes in errors.items():
        if sizes:
            found |= {f"{kind}_mean": float(np.mean(sizes)), f"{kind}_median": float(np.median(sizes))}
            found[f"{kind}_p99"] = float(np.quantile(sizes, 0.99))
    return {key: round(value, 4) for key, value in found.items()}


def logarithmic(draw: np.random.Generator, low: int, high: int) -> int:
    """A whole number whose logarithm is uniform."""
    return round(float(np.exp(draw.uniform(np.log(low), np.log(high)))))
