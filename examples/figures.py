"""Draws the picture of the README, docs/eight.png: `make figures`.

Eight answers in eight slots, for as long as the longest takes. A static batch holds every slot until then; with
continuous batching and a backlog, a slot that is free goes to the next in line.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import slotstep
from reports.figures.png import write_png
from reports.figures.timeline import slot_timeline

HERE = Path(__file__).parent
STEPS = 120
END_NS = STEPS * 1_000_000


def main() -> None:
    """Draw both examples in one figure."""
    drawn = slot_timeline(*panels())
    print(*write_png({"eight": drawn}, HERE.parent / "docs"))


def panels() -> tuple[dict[str, tuple[pd.DataFrame, int]], dict[str, float]]:
    """By title: the stays in the first STEPS steps of each example with its number of slots, and its occupancy."""
    shown, occupancy = {}, {}
    for name, scenario in (("static", "eight-static"), ("continuous, with a backlog", "eight-continuous")):
        result = slotstep.run(slotstep.load(HERE / f"{scenario}.yaml"))
        slots = result.scenario.engine.slots
        stays, steps = result.slots[result.slots["admitted_ns"] < END_NS], result.steps.iloc[:STEPS]
        title = f"{name}: {(stays['completed_ns'] <= END_NS).sum()} answers in {STEPS} steps"
        ends = stays[["completed_ns", "released_ns"]].clip(upper=END_NS)
        shown[title] = (stays.assign(completed_ns=ends["completed_ns"], released_ns=ends["released_ns"]), slots)
        occupancy[title] = int(steps["decode"].sum() + steps["prefill"].sum()) / (slots * STEPS)
    return shown, occupancy


if __name__ == "__main__":
    main()
