"""Ratios of prefill and decode workers: gpt-oss-120b on 8 H200 under SGLang, four workers of two GPUs.

Source: dstackai/benchmarks, comparison/pd_ratio (`pd_ratio_sglang_8xh200.csv`). One cost for all rows, from the rows
with two workers of each kind: the decode step from their ITL and output rate, the time of a prompt token from the
TTFT of the row that prompts load most, the delay of a request from that of the row with the least load. The law of
output lengths is not published: here an answer ends with equal probability at every token, and at its limit; its mean
is that of the row. The router is not published either: here round robin.

The client gets the first token from the decode worker, once the KV is there: TTFT counts to then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import exp
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import slotstep

FILE = "pd_ratio_sglang_8xh200.csv"
KV_BYTES = 36 * 2 * 8 * 64 * 2
"""Of a position: 36 layers, keys and values, 8 heads of 64, 2 bytes (gpt-oss-120b's config.json)."""
LINK = 64e9
"""Bytes/s between workers: PCIe 5.0 x16, the part of the way that goes through the host."""
PAGES = 150_000
"""Pages of 16 positions of a worker: 0.88 of 282 GB less 65 GB of weights, over KV_BYTES."""
SEED = 0


@dataclass(frozen=True)
class Cost:
    """The cost of a worker in ms: base + per_sequence x decoding sequences + per_token x prompt tokens a step.

    delay  of every request, outside of the engines
    """

    base: float
    per_sequence: float
    per_token: float
    delay: float


def outputs(mean: float, limit: int, count: int) -> list[int]:
    """Lengths of an answer that ends at every token with equal probability, and at `limit`, with the mean given."""
    low, high = 1.0, 1e7
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * (1 - exp(-limit / middle)) < mean else (low, middle)
    drawn = np.random.default_rng(SEED).exponential(low, count)
    return [int(tokens) for tokens in np.clip(np.round(drawn), 1, limit)]


def scenario(row: Mapping[Any, Any], cost: Cost) -> dict[str, Any]:
    """A row as a scenario."""
    lengths = outputs(row["mean_output"], int(row["output"]), int(row["num_prompts"]))
    prefill = {"base": f"{cost.base}ms", "per_prefill_token": f"{cost.per_token}ms"}
    decode = prefill | {"per_sequence": f"{cost.per_sequence}ms"}
    engine = {"slots": 512, "token_budget": 8192, "pages": PAGES, "page_size": 16, "async_scheduling": True}
    return {
        "workload": {"requests": [{"prompt": round(row["mean_input"]), "output": tokens} for tokens in lengths]},
        "clients": {"closed": {"clients": int(row["concurrency"])}, "delay": f"{cost.delay}ms"},
        "engine": engine,
        "cost": {"affine": decode},
        "cluster": {
            "prefill": {"replicas": [{"count": int(row["prefill"]), "cost": {"affine": prefill}}]},
            "decode": {"replicas": [{"count": int(row["decode"]), "cost": {"affine": decode}}]},
            "transfer": {"per_token": f"{1e9 * KV_BYTES / LINK:.1f}ns", "pull": True},
        },
    }


def simulated(row: Mapping[Any, Any], cost: Cost) -> dict[str, float]:
    """Mean TTFT and TPOT in ms, and output tokens per second, as the row states them."""
    result = slotstep.run(slotstep.parse(scenario(row, cost)))
    log, frame = result.service_log, result.requests
    assert log is not None
    request, since, until = log.table("kept").T[:3]
    kept_s = np.zeros(len(frame))
    np.add.at(kept_s, request, (until - since) / 1e9)
    ttft = frame["ttft_s"].to_numpy(float) + cost.delay / 1e3 + kept_s
    end = frame["e2e_s"].to_numpy(float) + cost.delay / 1e3
    tokens = frame["tokens"].to_numpy()
    several = tokens > 1
    tpot = (end - ttft)[several] / (tokens[several] - 1)
    rate = result.summary["rates"]["output_tokens_per_s"]
    return {
        "ttft_mean_ms": float(1e3 * ttft.mean()),
        "tpot_mean_ms": float(1e3 * tpot.mean()),
        "output_tok_s": float(rate),
    }


def decode_step(rows: pd.DataFrame) -> tuple[float, float]:
    """(base, per sequence) in ms, least squares of relative errors; a worker runs rate x ITL sequences (Little)."""
    running = rows["output_tok_s"] * rows["itl_mean_ms"] / 1e3 / rows["decode"]
    weight = 1 / rows["itl_mean_ms"]
    columns = np.column_stack((weight, running * weight))
    base, per_sequence = np.linalg.lstsq(columns, np.ones(len(rows)), rcond=None)[0]
    return float(base), float(per_sequence)


def root(rises: Callable[[float], float], low: float, high: float, rounds: int = 7) -> float:
    """Where a function that rises passes 0, by bisection."""
    for _ in range(rounds):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) < 0 else (low, middle)
    return (low + high) / 2


def fitted(rows: pd.DataFrame) -> Cost:
    """The cost from the rows with two workers of each kind."""
    base, per_sequence = decode_step(rows)
    records = rows.to_dict("records")
    loaded = max(records, key=lambda row: row["input"] / row["output"] * row["concurrency"])
    least = min(records, key=lambda row: row["input"] * row["concurrency"])

    def too_long(per_token: float) -> float:
        found = simulated(loaded, Cost(base, per_sequence, per_token, 0.0))["ttft_mean_ms"]
        return found - float(loaded["ttft_mean_ms"])

    per_token = root(too_long, 0.005, 0.06)
    alone = simulated(least, Cost(base, per_sequence, per_token, 0.0))["ttft_mean_ms"]
    return Cost(base, per_sequence, per_token, max(0.0, least["ttft_mean_ms"] - alone))


def compared(rows: pd.DataFrame) -> tuple[Cost, list[dict[Any, Any]]]:
    """The cost, and every row with what is simulated of it under `simulated`, by shape, clients and ratio."""
    cost = fitted(rows[(rows["prefill"] == 2) & (rows["decode"] == 2)])
    ordered = rows.sort_values(["input", "output", "concurrency", "prefill"]).to_dict("records")
    return cost, [row | {"simulated": simulated(row, cost)} for row in ordered]


def report(data: Path) -> str:
    """Every row, measured and simulated, and the best ratio of each shape of traffic."""
    cost, records = compared(pd.read_csv(data / FILE))
    heads = ("prompt / output limit", "clients", "prefill:decode", "TTFT measured", "simulated", "TPOT measured")
    lines = [
        f"Decode step {cost.base:.2f} ms + {cost.per_sequence:.4f} ms a sequence, {1e3 * cost.per_token:.1f} us a "
        f"prompt token, {cost.delay:.0f} ms of every request.",
        "",
        f"| {' | '.join(heads)} | simulated | error | tok/s measured | simulated |",
        "|---|" + "---:|" * (len(heads) + 3),
    ]
    for row in records:
        mine = row["simulated"]
        cells = (
            f"{row['input']} / {row['output']}",
            row["concurrency"],
            ratio(row),
            *(f"{each['ttft_mean_ms']:.0f} ms" for each in (row, mine)),
            *(f"{each['tpot_mean_ms']:.1f} ms" for each in (row, mine)),
            f"{mine['tpot_mean_ms'] / row['tpot_mean_ms'] - 1:+.0%}",
            *(f"{each['output_tok_s']:,.0f}" for each in (row, mine)),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    loads = ("prompt / output limit", "clients", "shortest TTFT, measured", "simulated", "most tok/s, measured")
    lines += ["", f"| {' | '.join(loads)} | simulated |", "|---|" + "---:|" * len(loads)]
    lines += [f"| {' | '.join(map(str, cells))} |" for cells in best(records)]
    return "\n".join(lines)


def ratio(row: Mapping[Any, Any]) -> str:
    """Prefill to decode workers."""
    return f"{row['prefill']}:{row['decode']}"


def best(records: Sequence[dict[Any, Any]]) -> list[tuple[str, int, str, str, str, str]]:
    """For each shape and number of clients the best ratio in TTFT, and in tokens per second: measured, simulated."""
    found = []
    for (prompt, output, clients), group in groupby(records, key=itemgetter("input", "output", "concurrency")):
        rows = list(group)
        shortest = (
            ratio(min(rows, key=lambda row: row["ttft_mean_ms"])),
            ratio(min(rows, key=lambda row: row["simulated"]["ttft_mean_ms"])),
        )
        most = (
            ratio(max(rows, key=lambda row: row["output_tok_s"])),
            ratio(max(rows, key=lambda row: row["simulated"]["output_tok_s"])),
        )
        found.append((f"{prompt} / {output}", clients, *shortest, *most))
    return found
