"""Speculative decoding: GLM-5.2 on 4 MI355X under SGLang, with a forced acceptance length.

Source: AMD-AGI/Infera, examples/glm52_fake_tp4ep4_goodput (`speculation_glm52_mi355x.csv`): EAGLE, 6 positions a
verification (5 drafts), prompts that cost nothing, outputs of 500, a closed loop of clients.

    step = base + experts x (1 - (1 - 8/256)^tokens) + per_sequence x batch

`experts` is the time to read all experts once: 75 layers of 256 experts of 3 x 6144 x 2048 weights (the model's
config.json) of 17/32 byte (MXFP4), a quarter on each GPU, at the 8 TB/s of its data sheet. A verification reads those
that its tokens choose, each 8 of 256, here independently and with equal chances; tokens are padded to the captured
batch sizes. `base` and `per_sequence` are fitted to the mean gap between chunks of the rows with the fewest and the
most clients; all other rows are predictions. Drafting is part of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

import slotstep

FILE = "speculation_glm52_mi355x.csv"
DRAFTS = 5
POSITIONS = 1 + DRAFTS
EXPERTS, CHOSEN = 256, 8
EXPERT_BYTES = 75 * EXPERTS * 3 * 6144 * 2048 * 17 / 32 / 4
"""Of all experts, on each GPU."""
BANDWIDTH = 8e12
"""Bytes/s of an MI355X (AMD's data sheet)."""
OUTPUT = 500
COMPARED = ("tpot_mean_ms", "tpot_p90_ms", "chunk_gap_mean_ms", "output_tok_s")
NAMES = ("mean TPOT", "p90 TPOT", "gap between chunks", "output rate")


def read_experts(tokens: int) -> float:
    """Milliseconds to read the experts that so many tokens choose."""
    return EXPERT_BYTES / BANDWIDTH * 1e3 * (1 - (1 - CHOSEN / EXPERTS) ** tokens)


def fitted(fewest: Mapping[str, Any], most: Mapping[str, Any]) -> tuple[float, float]:
    """(base, per_sequence) in ms, from the gaps between chunks of two rows."""
    rest = [row["chunk_gap_mean_ms"] - read_experts(POSITIONS * row["concurrency"]) for row in (fewest, most)]
    slope = (rest[1] - rest[0]) / (most["concurrency"] - fewest["concurrency"])
    return rest[0] - slope * fewest["concurrency"], slope


def simulated(row: Mapping[str, Any], base: float, per_sequence: float) -> dict[str, float]:
    """The row as slotstep simulates it."""
    sizes = [POSITIONS * int(size) for size in row["graphs"].split(",")]
    tokens = sorted({1, *range(1, 65), *sizes})
    nothing = {"at": [1], "ns": [0.0], "per_position": [0.0]}
    table = {
        "dense": {"at": tokens, "ns": [(base + read_experts(each)) * 1e6 for each in tokens]},
        "decode": nothing,
        "chunk": nothing,
        "per_sequence": per_sequence * 1e6,
        "graph_sizes": sizes,
    }
    scenario = slotstep.parse(
        {
            "engine": {
                "slots": max(int(row["concurrency"]), 1),
                "speculation": {"tokens": DRAFTS, "acceptance": {"length": row["accept_length"]}},
            },
            "cost": {"table": table},
            "clients": {"closed": {"clients": int(row["concurrency"])}},
            "workload": {
                "synthetic": {"requests": int(row["requests"]), "arrivals": "at_once", "prompt": 1, "output": OUTPUT}
            },
        }
    )
    summary = slotstep.run(scenario).summary
    return {
        "tpot_mean_ms": summary["tpot_s"]["mean"] * 1e3,
        "tpot_p90_ms": summary["tpot_s"]["p90"] * 1e3,
        "chunk_gap_mean_ms": summary["itl_s"]["mean"] * 1e3,
        "output_tok_s": summary["tokens"]["output"] / summary["makespan_s"],
    }


def report(data: Path) -> str:
    """Measured and simulated, by number of clients, as Markdown."""
    table = pd.read_csv(data / FILE).sort_values("concurrency")
    rows = [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]
    base, per_sequence = fitted(rows[0], rows[-1])
    lines = [
        f"base {base:.2f} ms, {per_sequence:.3f} ms a sequence; {read_experts(10**6):.1f} ms for all experts.",
        "",
        "| clients | | " + " | ".join(NAMES) + " |",
        "|---|---|" + "---|" * len(NAMES),
    ]
    for row in rows:
        found = simulated(row, base, per_sequence)
        cells = (f"{row[key]:.4g} → {found[key]:.4g} ({found[key] / row[key] - 1:+.1%})" for key in COMPARED)
        kind = "fitted" if row in (rows[0], rows[-1]) else "predicted"
        lines.append(f"| {row['concurrency']:.0f} | {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
