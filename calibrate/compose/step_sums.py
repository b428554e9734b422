"""A table of whole steps from steps given as sums by class of operator, in aiconfigurator's terms.

One row a step: `kind` (decode, prefill, or one that begins with mixed), `batch` decodes with `context_len` cached
positions each, `chunk_prefill_tokens` of a prompt, and `gemm_ms`, `attn_ms`, `other_ms`. Reads no file.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator

from calibrate.compose.compose import Composed, knots, lines, never_falling, rounded
from sim.cost.shape import Shape
from sim.cost.table import Table, table

COLUMNS = ("kind", "batch", "context_len", "chunk_prefill_tokens", "step_ms", "gemm_ms", "attn_ms", "other_ms")


def compose_sums(steps: pd.DataFrame) -> Composed:
    """The table of whole steps. Raises ValueError for missing columns and for too few steps.

    Matrix products and the rest, by tokens, are those of the prefills, and below the smallest of decodes; what
    decodes pay more than a prefill of as many tokens is the output head, by sequences. The rise of a chunk's
    attention with its start is not among the steps: it is taken as what the second half of a prompt twice as long
    costs more than the first.
    """
    if missing := [column for column in COLUMNS if column not in steps]:
        raise ValueError(f"{missing[0]}: no such column; expected {', '.join(COLUMNS)}")
    decode = steps[steps["kind"] == "decode"]
    prefill = steps[steps["kind"] == "prefill"].sort_values("chunk_prefill_tokens")
    if decode.empty or len(prefill) < 2:
        raise ValueError(f"found {len(decode)} decode and {len(prefill)} prefill steps; expected some of both")
    by_batch = (decode["gemm_ms"] + decode["other_ms"]).groupby(decode["batch"]).mean() * 1e6
    sizes = prefill["chunk_prefill_tokens"].to_numpy(np.int64)
    shared = (prefill["gemm_ms"] + prefill["other_ms"]).to_numpy() * 1e6
    few = by_batch[by_batch.index < sizes[0]]
    dense = knots([*few.index, *sizes], [*few.to_numpy(), *shared])
    heads = by_batch - np.interp(by_batch.index, dense["at"], dense["ns"])
    weight = pd.Series(1 / decode["step_ms"] / 1e6, index=decode.index)
    rows = decode.assign(ns=decode["attn_ms"] * 1e6)
    content: dict[str, Any] = {
        "dense": dense,
        "sequences": knots(by_batch.index, np.maximum(heads.to_numpy(), 0)),
        "decode": lines(rows, weight, "batch", "context_len"),
        "chunk": chunk(sizes, prefill["attn_ms"].to_numpy(np.float64) * 1e6),
    }
    content["launch"] = content["chunk"]["ns"][0]
    content = rounded(content)
    extent: dict[str, float] = {
        "sequences": int(decode["batch"].max()),
        "context": int((decode["batch"] * decode["context_len"]).max()),
        "tokens": int(sizes[-1]),
        "position": int(sizes[-1]),
    }
    return Composed(content, residuals(steps, table(content)), extent)


def chunk(sizes: Any, attention: Any) -> dict[str, list[float]]:
    """Lines of a chunk's attention: its own as given, the rise with its start from prompts twice as long."""
    launch = attention[0]
    twice = PchipInterpolator(sizes, attention)(np.minimum(2 * sizes, sizes[-1]))
    rise = np.maximum(twice - 2 * attention + launch, 0) / sizes
    inside = 2 * sizes <= sizes[-1]
    rise[~inside] = rise[inside][-1] * sizes[~inside] / sizes[inside][-1]
    return {
        "at": sizes.tolist(),
        "ns": never_falling(attention.tolist()),
        "per_position": never_falling(rise.tolist()),
    }


def residuals(steps: pd.DataFrame, made: Table) -> dict[str, float]:
    """Relative errors of the table on all steps, by kind: the mean of their sizes, and the largest."""
    errors: dict[str, list[float]] = {}
    rows = steps[["kind", "batch", "context_len", "chunk_prefill_tokens", "step_ms"]]
    for kind, batch, context, tokens, ms in rows.itertuples(index=False):
        shape = Shape()
        if kind != "prefill":
            shape.decodes, shape.context = int(batch), int(batch * context)
        for place in range(0, int(tokens), prompt(str(kind), int(tokens))):
            shape.add_chunk(0, min(prompt(str(kind), int(tokens)), int(tokens) - place))
        errors.setdefault(str(kind).split("_")[0], []).append(abs(made.step(shape) / 1e6 / ms - 1))
    found: dict[str, float] = {}
    for kind, sizes in errors.items():
        found |= {f"{kind}_mean": round(float(np.mean(sizes)), 4), f"{kind}_worst": round(float(np.max(sizes)), 4)}
    return found


def prompt(kind: str, tokens: int) -> int:
    """Tokens of one prompt in a step of this kind: `mixed_isl512_osl128` has prompts of 512, a prefill has one."""
    said = re.search(r"_isl(\d+)", kind)
    return int(said[1]) if said else max(1, tokens)
