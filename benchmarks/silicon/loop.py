"""A measured closed loop, simulated: InferenceX's client and its server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zlib import crc32

import numpy as np

import slotstep
from benchmarks.silicon import servers
from benchmarks.silicon.rows import Row

PROMPTS_A_CLIENT = 10
SHORTEST = 0.8
"""Lengths of prompts and outputs are uniform from this share of the nominal one to all of it."""


def lengths(row: Row) -> list[dict[str, int]]:
    """The requests of a row, drawn by its id."""
    draw = np.random.default_rng(crc32(row.id.encode()))
    count = PROMPTS_A_CLIENT * row.clients
    prompts, outputs = (
        draw.integers(int(SHORTEST * most), most + 1, size=count).tolist() for most in (row.prompt, row.output)
    )
    return [{"prompt": prompt, "output": output} for prompt, output in zip(prompts, outputs, strict=True)]


def simulated(row: Row, cost: Mapping[str, Any], engine: Mapping[str, Any] | None = None) -> tuple[float, float]:
    """(mean TTFT, mean TPOT) in seconds; `engine`: the engine section, that of the row's server if not given.

    A rank of data-parallel attention is a replica. Where a server holds prompts back (`steps_held`), the TTFT has so
    many times the TPOT; an engine section that is given holds nothing back.
    """
    scenario = slotstep.parse(
        {
            "workload": {"requests": lengths(row)},
            "clients": {"closed": {"clients": row.clients}},
            "engine": servers.engine(row) if engine is None else engine,
            "cost": dict(cost),
            "cluster": {"replicas": row.data_parallel, "router": "least_requests"},
        }
    )
    requests = slotstep.run(scenario).requests
    tpot = float(requests["tpot_s"].mean())
    held = servers.steps_held(row) if engine is None else 0.0
    return float(requests["ttft_s"].mean()) + held * tpot, tpot
