"""`python -m benchmarks.stability`: share of runs in which `queue_grows` is true, by load, in one pool and in two.

Poisson arrivals, outputs of 128 tokens, 16 slots, steps of 5 ms and 200 us for each sequence: at most 15.24 requests
a second. The second pool is such an engine; the first computes prompts one at a time, at the same highest rate.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from scipy.stats import binomtest

import slotstep
from slotstep.experiments.sweeps.backends import compute

OUTPUT, PROMPT, SLOTS = 128, 128, 16
STEP = 0.005 + SLOTS * 0.0002
LIMIT = SLOTS / (STEP * OUTPUT)
"""Requests a second that either pool can serve."""
CASES = ((300, 0.5), (300, 0.8), (300, 0.9), (3000, 0.9), (3000, 1.05))
"""Requests and load."""


def scenario(pools: int, requests: int, load: float) -> dict[str, Any]:
    """A service at a share of its limit."""
    engine = {"slots": SLOTS}
    cost: dict[str, Any] = {"base": "5ms", "per_sequence": "200us"}
    found: dict[str, Any] = {"engine": engine}
    if pools == 2:
        cost["per_prefill_token"] = f"{(1 / LIMIT - 0.0052) / PROMPT * 1e6}us"
        found["cluster"] = {"prefill": {"replicas": [{"engine": {"slots": 1}}]}, "decode": {}, "transfer": {}}
    return found | {
        "workload": {
            "synthetic": {
                "requests": requests,
                "arrivals": {"poisson": {"rate": load * LIMIT}},
                "prompt": PROMPT,
                "output": OUTPUT,
            }
        },
        "cost": {"affine": cost},
    }


def grows(pools: int, requests: int, load: float, seed: int) -> bool | None:
    """What one run says."""
    return slotstep.run(slotstep.parse({**scenario(pools, requests, load), "seed": seed})).queue_grows


def share(pools: int, requests: int, load: float, seeds: int, jobs: int | None = 1) -> tuple[int, float, float]:
    """The number of runs in which the queue grows, of `seeds` runs, and the 95% interval of their share."""
    calls = [(pools, requests, load, seed) for seed in range(seeds)]
    grown = sum(found is True for found in compute(grows, calls, "local", None, jobs))
    interval = binomtest(grown, seeds).proportion_ci()
    return grown, float(interval.low), float(interval.high)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each number of pools, requests and load."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stability", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="runs for each row")
    parser.add_argument("--jobs", type=int, default=None, help="runs at once; as many as there are cores")
    options = parser.parse_args(arguments)
    print("| pools | requests | load | runs | said to grow | 95% interval |\n|---:|---:|---:|---:|---:|---:|")
    for pools in (1, 2):
        for requests, load in CASES:
            grown, low, high = share(pools, requests, load, options.seeds, options.jobs)
            print(
                f"| {pools} | {requests:,} | {load:.0%} | {options.seeds} | {grown / options.seeds:.1%} "
                f"| {low:.1%} to {high:.1%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
