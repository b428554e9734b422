"""A measured closed loop, simulated: InferenceX's client and the settings of the engine's family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

import slotstep
from benchmarks.silicon.rows import Row

PROMPTS_A_CLIENT = 10
SHORTEST = 0.8
"""Lengths of prompts and outputs are uniform from this share of the nominal one to all of it."""


@dataclass(frozen=True)
class Constants:
    """What the tables do not have, fitted to open rows (`python -m benchmarks.silicon --fit`).

    host     ms of every step
    prompts  factor of the kernels of a step that computes any prompt (`with_prompt_factor`)
    delay    ms of every request, the client's
    """

    host: float = 0.0
    prompts: float = 1.0
    delay: float = 0.0


CONSTANTS: Mapping[str, Constants] = {
    "vllm": Constants(0.8, 1.2, 6.0),
    "sglang": Constants(0.8, 1.2, 6.0),
    "trtllm": Constants(0.0, 1.1, 4.0),
}
"""By engine; SGLang has vLLM's, for no open row of a dense model is of it."""


def engine(row: Row) -> dict[str, Any]:
    """The engine section of a row's family; InferenceX switches prefix caches off.

    vLLM: its server's defaults. SGLang: vLLM's decisions. TensorRT-LLM: whole prompts, pages reserved, and tokens for
    one prompt of the nominal length beside all clients, as InferenceX's scripts set max_num_tokens.
    """
    if row.backend == "trtllm":
        budget = (row.clients + row.prompt + 64 + 63) // 64 * 64
        return {
            "slots": max(row.clients, 256),
            "token_budget": budget,
            "chunked": False,
            "admission": "reserve",
            "async_scheduling": True,
            "fit": 0.9,
        }
    return {"preset": "vllm", "prefix_cache": False, "fit": 0.9}


def lengths(row: Row) -> list[dict[str, int]]:
    """The requests of a row, drawn by its id."""
    draw = np.random.default_rng(crc32(row.id.encode()))
    count = PROMPTS_A_CLIENT * row.clients
    prompts, outputs = (
        draw.integers(int(SHORTEST * most), most + 1, size=count).tolist() for most in (row.prompt, row.output)
    )
    return [{"prompt": prompt, "output": output} for prompt, output in zip(prompts, outputs, strict=True)]


def simulated(row: Row, cost: Mapping[str, Any], **changed: Any) -> tuple[float, float]:
    """(mean TTFT, mean TPOT) of the engine in seconds; `changed`: keys of the engine section.

    A rank of data-parallel attention is a replica.
    """
    scenario = slotstep.parse(
        {
            "workload": {"requests": lengths(row)},
            "clients": {"closed": {"clients": row.clients}},
            "engine": engine(row) | changed,
            "cost": dict(cost),
            "cluster": {"replicas": row.data_parallel, "router": "least_requests"},
        }
    )
    requests = slotstep.run(scenario).requests
    return float(requests["ttft_s"].mean()), float(requests["tpot_s"].mean())
