"""How long the steps of a measured run took, from its requests alone, beside what its profile says of such steps.

    python -m benchmarks.fidelity.step_rate DATA

A decoding request gets one token a step, so between its first token and its last the engine made as many steps as it
had tokens to go: every request says how far the count of steps went between two instants. The count is the
smoothest one, piecewise linear in seconds, that fits them all. Only for runs without preemptions.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.fidelity.operators import RUNS, Measured, measurements
from calibrate.profile import named
from sim.cost import Shape

Floats = npt.NDArray[np.float64]

SMOOTH = 0.3
"""Weight of the second differences of the count, in steps."""
QUIET_S = 0.7
"""No prompt may have been computed so near to a second whose steps are compared: they then only decode."""


def step_count(first: Floats, last: Floats, tokens: Floats) -> tuple[Floats, Floats]:
    """(seconds, steps begun by then) of a run whose requests got so many tokens from their first to their last."""
    at = np.arange(0, np.ceil(last.max()) + 1, 1.0)
    passed = np.array([hat(at, end) - hat(at, begin) for begin, end in zip(first, last, strict=True)])
    bend = np.diff(np.eye(len(at)), n=2, axis=0)
    rows = np.vstack([passed, SMOOTH * bend, np.eye(1, len(at))])
    wanted = np.concatenate([tokens, np.zeros(len(bend) + 1)])
    return at, np.linalg.lstsq(rows, wanted, rcond=None)[0]


def hat(at: Floats, instant: float) -> Floats:
    """Weights of a piecewise linear function's values at whole seconds in its value at an instant."""
    weights = np.zeros(len(at))
    place = min(int(instant), len(at) - 2)
    weights[place], weights[place + 1] = 1 - (instant - at[place]), instant - at[place]
    return weights


def decode_steps(data: Path, run: Measured) -> pd.DataFrame:
    """Seconds of a run without a prompt: sequences, contexts, and a step as measured and by the profile."""
    found = measurements(data, run)
    began = found["queued_ns"].min()
    first, last = (((found[name] - began) / 1e9).to_numpy(np.float64) for name in ("first_ns", "last_ns"))
    prompt, tokens = (found[name].to_numpy(np.float64) for name in ("prompt", "output"))
    at, count = step_count(first, last, tokens - 1)
    cost = named(run.profile).cost(graph_sizes=tuple(run.graphs or ()))
    rows = []
    for instant in at[:-1] + 0.5:
        present = (first < instant) & (last > instant)
        if not present.any() or (np.abs(first - instant) < QUIET_S).any():
            continue
        contexts = prompt[present] + np.interp(instant, at, count) - np.interp(first[present], at, count)
        shape = Shape()
        shape.decodes, shape.context = int(present.sum()), int(contexts.sum())
        steps = np.interp(instant + 0.5, at, count) - np.interp(instant - 0.5, at, count)
        rows.append(
            {
                "second": instant,
                "sequences": shape.decodes,
                "context": shape.context,
                "longest / mean": contexts.max() / contexts.mean(),
                "measured ms": 1e3 / steps,
                "profile ms": cost.step(shape) / 1e6,
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    """Print them for the run on the RTX PRO 6000."""
    table = decode_steps(Path(sys.argv[1]), RUNS[1])
    table["error"] = (table["profile ms"] / table["measured ms"] - 1).map("{:+.0%}".format)
    print(table.round({"longest / mean": 2, "measured ms": 1, "profile ms": 1}).to_string(index=False))


if __name__ == "__main__":
    main()
