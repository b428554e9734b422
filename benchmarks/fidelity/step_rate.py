"""Durations of single steps of a measured run, from its requests alone, beside those of its profile.

    python -m benchmarks.fidelity.step_rate DATA

At the end of a run no prompt is left and every step gives each request one token, so two requests that end one after
the other are a whole number of steps apart. For a few steps that number is certain: the time between, over the step
that the profile predicts, is rounded. Counted back from the last token, the context of every request is then known.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.fidelity.operators import RUNS, Measured, measurements
from calibrate.arrays import Floats
from calibrate.profiles.profile import named
from sim.cost.forms import Curve
from sim.cost.shape import Shape

SAME_S = 0.003
"""Requests that end within this time of each other ended in one step."""
SURE = 12
"""Steps between two ends that are counted with certainty: one more or less would change a step by a twelfth."""


def ends(last: Floats) -> Floats:
    """The instants at which requests end, sorted, each once."""
    sorted_ends = np.sort(last)
    return sorted_ends[np.diff(sorted_ends, prepend=-np.inf) > SAME_S]


def batch(decodes: int, context: int, longest: int) -> Shape:
    """A step that only decodes."""
    shape = Shape()
    shape.decodes, shape.context, shape.longest = decodes, context, longest
    return shape


def counted(first: Floats, last: Floats, total: Floats, cost: Curve) -> pd.DataFrame:
    """Intervals between ends after the last first token: steps, sequences, contexts, ms of a step, and by `cost`.

    Contexts and costs are those of the last of the steps, which reads all but the last two tokens.

    first, last, total   seconds of the first and last token of each request, and its tokens, prompt and output
    """
    instants = ends(last)
    to_go = np.zeros(len(last))  # tokens of each request that come after the instant looked at
    rows = []
    off = 1.0  # how far the profile was from the steps just counted
    for begin, end in zip(instants[-2::-1], instants[:0:-1], strict=True):
        if begin < first.max():
            break
        present = last > begin + SAME_S
        contexts = (total - to_go - 2)[present]
        shape = batch(len(contexts), int(contexts.sum()), int(contexts.max()))
        expected = cost.step(shape) / 1e9
        steps = max(1, round((end - begin) / (expected * off)))
        off = (end - begin) / steps / expected
        even = batch(shape.decodes, shape.context, shape.context // shape.decodes)
        rows.append(
            {
                "second": begin,
                "steps": steps,
                "sequences": shape.decodes,
                "mean": shape.context / shape.decodes,
                "longest": shape.longest,
                "measured ms": (end - begin) / steps * 1e3,
                "profile ms": expected * 1e3,
                "if even ms": cost.step(even) / 1e6,
            }
        )
        to_go[present] += steps
    return pd.DataFrame(rows[::-1])


def decode_steps(data: Path, run: Measured) -> pd.DataFrame:
    """The steps of a run after its last first token, where at most SURE of them are between two ends."""
    found = measurements(data, run)
    began = found["queued_ns"].min()
    first, last = (((found[name] - began) / 1e9).to_numpy(np.float64) for name in ("first_ns", "last_ns"))
    total = (found["prompt"] + found["output"]).to_numpy(np.float64)
    cost = named(run.profile).cost(graph_sizes=tuple(run.graphs or ()))
    table = counted(first, last, total, cost)
    return table[table["steps"] <= SURE].reset_index(drop=True)


def main() -> None:
    """Print them for both runs."""
    for run in RUNS:
        table = decode_steps(Path(sys.argv[1]), run)
        table["error"] = (table["profile ms"] / table["measured ms"] - 1).map("{:+.0%}".format)
        print(run.folder)
        print(table.round({"second": 2, "mean": 0, "measured ms": 1, "profile ms": 1, "if even ms": 1}).to_string())


if __name__ == "__main__":
    main()
