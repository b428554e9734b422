"""One run of DynoSim, the offline replay of NVIDIA Dynamo's engine simulator: `python dynosim.py REQUESTS [cache]`.

Needs ai-dynamo-runtime, of which it was written for 1.6.1, and nothing of slotstep.
"""

from __future__ import annotations

import json
import sys

import dynamo._core as core  # type: ignore[import-not-found,unused-ignore]


def run(requests: int, cache: bool) -> None:
    """Simulate poisson arrivals at 20/s of 512 prompt and 128 output tokens on 256 slots and 100,000 pages of 16."""
    engine = {
        "num_gpu_blocks": 100_000,
        "block_size": 16,
        "max_num_seqs": 256,
        "max_num_batched_tokens": 2048,
        "enable_prefix_caching": cache,
    }
    settings = core._normalize_mocker_config({"engine": engine})
    core.run_mocker_synthetic_trace_replay(
        512,
        128,
        requests,
        extra_engine_args=json.loads(settings) if isinstance(settings, str) else settings,
        request_rate=20.0,
        arrival_seed=0,
        capture_per_request=False,
        capture_planner_details=False,
    )


if __name__ == "__main__":
    run(int(sys.argv[1]), "cache" in sys.argv[2:])
