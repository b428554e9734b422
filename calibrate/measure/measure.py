"""A whole measurement of one engine into a folder: its ceilings, the grid in rounds, then the least certain points.

Every stage has its deadline, and each sample is in the folder at once: a run that was killed, or ran out of time,
continues when it is started again.
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
from calibrate.measure.fine_grid import fine_grid, stratified
from calibrate.measure.frame import by_point
from calibrate.measure.points import Point, grid, held_out
from calibrate.measure.run_log import RunLog
from calibrate.measure.sampling_plan import SamplingPlan
from calibrate.measure.step_timer import StepTimer


@dataclass(frozen=True)
class Plan:
    """The extent of a measurement.

    batch, tokens  the largest step: rows, and positions
    rounds         visits of every point, at most
    steps          timed steps of a visit
    ragged         points held out
    factor         between neighbours of the grid (squared between contexts, sizes and starts)
    batches        captured ones: with them the grid is `fine_grid`, and the ragged points are stratified by bytes
    seconds        for all of it; the rounds get three quarters, the rest goes to the least certain points
    extra          visits of these at most; None: as many as there is time for
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
    batches: tuple[int, ...] = ()


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
    """Measure an engine into `folder`, or continue there; returns the log, closed.

    ceilings    measures the peaks of the device, if they are not in the log
    read_state  is called at each measurement of the control point (clocks, power)
    clock       by which poorly predicted points are found
    beside      points in addition to the grid

    Raises ValueError for the folder of another measurement, and for a plan with which nothing can be measured.
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
    points = fine_grid(limits, plan.batches) if plan.batches else grid(limits, plan.factor)
    ragged = stratified(limits, plan.ragged, plan.seed) if plan.batches else held_out(limits, plan.ragged, plan.seed)
    if not any(point.kind == "decode" for point in points) or not any(point.kind == "chunk" for point in points):
        raise ValueError(
            f"{len(timer.numbers)} pages and {limits.max_model_len} positions are too few for a grid; expected more"
        )
    written = {
        "plan": {key: value for key, value in asdict(plan).items() if key not in ("seconds", "rounds", "extra")}
    }
    return SamplingPlan(
        timer,
        RunLog(folder, about | written),
        points,
        ragged,
        control=middle(points, "decode"),
        busiest=middle(points, "chunk"),
        limits=limits,
        steps=plan.steps,
        seed=plan.seed,
        read_state=read_state,
        say=say,
    )


def middle(points: list[Point], kind: str) -> Point:
    """A point of a kind from the middle of the grid."""
    alike = [point for point in points if point.kind == kind]
    return alike[len(alike) // 2]


def until(visits: Iterator[None], deadline: float) -> None:
    """Advance the visits until there are none left or the deadline has passed."""
    for _ in visits:
        if time.monotonic() >= deadline:
            return


def visits_by_point(run_log: RunLog, sampling: SamplingPlan[Any]) -> dict[str, int]:
    """The number of visits of every point of the grid that was not skipped for lack of memory."""
    counts = {point.name: 0 for point in sampling.points if point.name not in sampling.skipped}
    for line in run_log.of("visit"):
        if line["name"] in counts:
            counts[line["name"]] += 1
    return counts
