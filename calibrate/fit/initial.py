"""A first guess of a roofline from measured requests: the right order of magnitude, by arithmetic on latencies.

Knows no device. What it gets wrong, the fit has to find.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from sim.cost.forms import Roofline

SECOND = 1e9
PAIR = 5e-5
"""Work of one attention pair over that of one token's matrix products: 1 / (6 x width) for a width of about 4000."""


def guess(runs: Sequence[pd.DataFrame]) -> Roofline:
    """A roofline from runs with `prompt`, `output`, `sent_s`, `e2e_s` and perhaps `ttft_s`, `tpot_s`, s.

    The fastest decoding seen is a step with little in it: most of it the weights. The fastest first token is the
    arithmetic of a prompt; half of what decoding takes longer in the busiest run is its context.
    """
    whole = pd.concat(runs, ignore_index=True)
    pace = step_times(whole)
    base = float(np.percentile(pace, 5)) * SECOND
    prompt = max(float(whole["prompt"].median()), 1.0)
    first = first_token(whole, base)
    busiest = max(runs, key=concurrency)
    tokens = concurrency(busiest) * (float(busiest["prompt"].mean()) + float(busiest["output"].mean()) / 2)
    slower = max(float(step_times(busiest).mean()) * SECOND - base, 0.1 * base)
    return Roofline(
        weight_pass=0.8 * base,
        host=0.1 * base,
        per_token=0.7 * first / prompt,
        per_sequence=1e-3 * base,
        per_context_token=0.5 * slower / max(tokens, 1.0),
        per_chunk=0.1 * base,
        per_chunk_work=PAIR * 0.7 * first / prompt,
    )


def step_times(run: pd.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Seconds per token of each request: its TPOT, or its share of the whole where that is not known."""
    shares = run["e2e_s"] / run["output"].astype(np.float64)
    found = run["tpot_s"].where(run["tpot_s"] > 0, shares) if "tpot_s" in run else shares
    values = found.to_numpy(np.float64)
    return values[values > 0]


def first_token(run: pd.DataFrame, base: float) -> float:
    """A fast first token, ns; a few steps where none was measured."""
    known = run["ttft_s"].dropna() if "ttft_s" in run else pd.Series(dtype=np.float64)
    return float(np.percentile(known, 10)) * SECOND if len(known) else 3 * base


def concurrency(run: pd.DataFrame) -> float:
    """Requests in the system on average, by Little's law."""
    span = float((run["sent_s"] + run["e2e_s"]).max() - run["sent_s"].min())
    return float(run["e2e_s"].sum()) / span if span > 0 else 1.0
