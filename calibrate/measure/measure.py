"""A whole measurement of one engine: its ceilings, the grid in rounds, then what is least known; into a folder.

Every stage has its deadline, and what is measured is in the folder at once: a run that is killed, or out of time,
goes on when it is started again. Knows no command line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from calibrate.decoder.engine.protocol import Engine
from calibrate.fit.table_fit import left_out
from calibrate.measure.frame import by_point
from calibrate.measure.points import Point, grid, held_out
from calibrate.measure.run_log import RunLog
from calibrate.measure.sampling_plan import SamplingPlan
from calibrate.measure.step_timer import StepTimer


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    batch, tokens  the largest step: rows, and positions
    rounds         visits of every point, at most
    steps          timed steps of a visit
    ragged         points held out
    factor         between neighbours of the grid (4 between contexts, sizes and starts for 2)
    seconds        for everything; the rounds get three quarters of it, what is left goes where it is needed
    extra          visits there at most; None: as many as there is time for
    """

    batch: int
    tokens: int
    rounds: int = 5
    steps: int = 3
    ragged: int = 16
    factor: float = 2.0
    seconds: float = 240.0
    extra: int | None = None
    seed: int = 0


def measure(
    engine: Engine[Any],
    vocabulary: int,
    about: dict[str, Any],
    folder: Path | None,
    plan: Plan,
    *,
    ceilings: Callable[[], dict[str, float]] | None = None,
    read_state: Callable[[], dict[str, Any]] = dict,
    clock: str = "device",
    say: Callable[[str], None] = lambda _: None,
    beside: Sequence[Point] = (),
) -> RunLog:
    """Measure an engine into `folder`, or go on with it; returns the run_log, closed.

    `clock` is the one by which points that are predicted badly are found, `beside` are points beside the grid. Raises
    ValueError for a folder of something else, and for a plan with which nothing can be measured.
    """
    began = time.monotonic()
    sampling = prepared(engine, vocabulary, about, folder, plan, read_state=read_state, say=say)
    sampling.points += [point for point in beside if point not in sampling.points and sampling.limits.allow(point)]
    run_log = sampling.run_log
    if ceilings is not None and not run_log.of("ceilings"):
        run_log.write(kind="ceilings", **ceilings())
    until(sampling.rounds(plan.rounds), began + 0.75 * plan.seconds)
    done = min(visits_by_point(run_log, sampling).values(), default=0)
    if done < plan.rounds:
        say(f"out of time after {done} of {plan.rounds} rounds; the same command goes on from here")
    if done:
        adapting = sampling.adapt(lambda: left_out(by_point(run_log.lines, clock)), batch=8)
        until(islice(adapting, plan.extra), began + plan.seconds)
    run_log.write(kind="end", at=sampling.at, rounds=done)
    run_log.close()
    return run_log


def prepared(
    engine: Engine[Any],
    vocabulary: int,
    about: dict[str, Any],
    folder: Path | None,
    plan: Plan,
    first_page: int = 0,
    read_state: Callable[[], dict[str, Any]] = dict,
    say: Callable[[str], None] = lambda _: None,
) -> SamplingPlan[Any]:
    """The sampling of a plan on the pages from `first_page` on, not begun. Raises ValueError as `measure`."""
    timer = StepTimer(engine, vocabulary, plan.seed, first_page)
    limits = timer.limits(plan.batch, plan.tokens)
    points = grid(limits, plan.factor)
    if not any(point.kind == "decode" for point in points) or not any(point.kind == "chunk" for point in points):
        raise ValueError(
            f"{len(timer.numbers)} pages and {limits.max_model_len} positions hold no grid; expected more"
        )
    written = {
        "plan": {key: value for key, value in asdict(plan).items() if key not in ("seconds", "rounds", "extra")}
    }
    return SamplingPlan(
        timer,
        RunLog(folder, about | written),
        points,
        held_out(limits, plan.ragged, plan.seed),
        control=middle(points),
        limits=limits,
        steps=plan.steps,
        seed=plan.seed,
        read_state=read_state,
        say=say,
    )


def middle(points: list[Point]) -> Point:
    """A decode from the middle of the grid."""
    decodes = [point for point in points if point.kind == "decode"]
    return decodes[len(decodes) // 2]


def until(visits: Iterator[None], deadline: float) -> None:
    """Visit until there is nothing more to visit, or time is up."""
    for _ in visits:
        if time.monotonic() >= deadline:
            return


def visits_by_point(run_log: RunLog, sampling: SamplingPlan[Any]) -> dict[str, int]:
    """How often every point of the grid that the device has room for was visited."""
    counts = {point.name: 0 for point in sampling.points if point.name not in sampling.skipped}
    for line in run_log.of("visit"):
        if line["name"] in counts:
            counts[line["name"]] += 1
    return counts
