"""Starvation under shortest job first: a heavy-tailed load with and without a cap on waiting.

    python examples/starvation.py [FILE.png]

Prints the waits under each cap; with a file, draws wait over output length. One engine of 16 slots, steps of 20 ms, a
load slightly above its capacity.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame

from policies.registry import build
from sim.accounting.frames import requests_frame
from sim.cost.forms import Unit
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.pool import PagePool
from sim.policy.base import Policy
from sim.request import SECOND, Request
from sim.service.cluster import simulate

SLOTS, STEP = 16, SECOND // 50
CAPS = (None, 120, 60, 30, 10, 0)
"""Seconds; None: no cap."""


def load(seed: int = 0, count: int = 3000) -> list[Request]:
    """Pareto outputs (shape 1.2, at most 4000 tokens), Poisson arrivals at 1.05 times the engine's capacity."""
    rng = np.random.default_rng(seed)
    outputs = np.minimum(1 + 60 * rng.pareto(1.2, count), 4000).astype(int)
    gaps = rng.exponential(outputs.mean() * STEP / SLOTS / 1.05, count)
    arrivals = np.cumsum(gaps).astype(np.int64)
    return [
        Request(str(place), int(arrival), 100, int(output))
        for place, (arrival, output) in enumerate(zip(arrivals, outputs, strict=True))
    ]


def served(requests: list[Request], cap: int | None) -> DataFrame:
    """The requests after a run under shortest job first with this cap on waiting (s; None: no cap)."""
    order = build("sjf", {}, 0) if cap is None else build("max_wait", {"max_wait": cap * SECOND}, 0)
    scheduler = Scheduler(Policy(order), PagePool(10**6, 16), EngineConfig(slots=SLOTS, token_budget=10**6))
    return requests_frame(simulate(requests, scheduler, Unit(STEP)))


def row(name: str, frame: DataFrame) -> str:
    """Mean wait and E2E, the mean wait of the requests with the longest 1% of outputs, and the longest wait."""
    longest = frame[frame.output >= frame.output.quantile(0.99)]
    figures = (frame.wait_s.mean(), frame.e2e_s.mean(), longest.wait_s.mean(), frame.wait_s.max())
    return f"{name:>12}" + "".join(f"{figure:>12.1f}" for figure in figures)


def draw(frames: dict[str, DataFrame]) -> Figure:
    """Wait over output length, a panel per cap."""
    figure = Figure(figsize=(3.2 * len(frames), 3), layout="constrained")
    for axes, (name, frame) in zip(figure.subplots(1, len(frames), sharey=True), frames.items(), strict=True):
        axes.plot(frame.output, frame.wait_s, ".", markersize=2)
        axes.set(xscale="log", title=name, xlabel="output, tokens")
    figure.axes[0].set_ylabel("wait, s")
    return figure


def main() -> None:
    """Print the table, and draw the figure if a file is given."""
    requests = load()
    frames = {"no cap" if cap is None else f"{cap} s": served(requests, cap) for cap in CAPS}
    print(f"{'cap':>12}{'mean wait':>12}{'mean e2e':>12}{'longest 1%':>12}{'worst wait':>12}  (seconds)")
    for name, frame in frames.items():
        print(row(name, frame))
    if len(sys.argv) > 1:
        draw({name: frames[name] for name in ("no cap", "60 s", "10 s")}).savefig(sys.argv[1], dpi=120)


if __name__ == "__main__":
    main()
