"""A prediction tested on one engine: measure, replay three times, fit, simulate, judge.

By CPU time the points are measured between the steps of the replay, so that whatever slows one down slows the other.
By the wall clock they are measured before it, because a measurement between two steps would delay the next. The
simulation is the replay's driver on an engine that takes the fitted cost; its log is the simulator's, without SimPy.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from calibrate.decoder.engine.protocol import Engine
from calibrate.decoder.engine.synthetic import FakeExecutor
from calibrate.fit.fit_run import Fitted, Form, fit
from calibrate.measure.measure import Plan, prepared, until
from calibrate.measure.run_log import LINES
from calibrate.measure.sampling_plan import SamplingPlan
from calibrate.profiles.forms import curve
from calibrate.replay.clock import FakeClock
from calibrate.replay.driver import Driver
from calibrate.replay.live import Pacing, Replayed, replay
from calibrate.validate.judge import Judgement, averaged, figures, noise_of, relative, teacher_forced
from sim.cost.forms import Curve, StepCost
from sim.engine.scheduler import Scheduler
from sim.log.events import EventLog
from sim.request import Request
from sim.service.clients import Clients

REPLAYS = 3
"""The first is discarded: it is slower, on caches and kernels that are cold."""
MOST_NOISE = 0.5
"""Share of the tolerance: where replays differ by more than that, no prediction can be judged."""
CONTENDED = 1.25
"""On the wall clock, steps this many times as long as the work of their thread measure other processes."""


@dataclass(frozen=True)
class Subject:
    """What is replayed: clients and a scheduler with numbered pages, both made anew for each run, and the prompts."""

    clients: Callable[[], Clients]
    scheduler: Callable[[], Scheduler]
    prompts: Callable[[Request], array[int]]


@dataclass(frozen=True)
class Trial:
    """The fit, the simulation, the replays that are compared (the first is discarded) and the judgement."""

    fitted: Fitted
    cost: Curve
    simulated: EventLog
    replays: tuple[Replayed, ...]
    judgement: Judgement


def trial(
    subject: Subject,
    engine: Engine[Any],
    vocabulary: int,
    about: dict[str, Any],
    plan: Plan,
    *,
    first_page: int,
    pacing: Pacing,
    tolerance: float = 0.2,
    form: Form = "table",
    folder: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Trial:
    """Test the prediction of a subject on an engine; its pages from `first_page` on are free to measure in.

    Raises ValueError for a plan that measures nothing or a folder that holds a measurement, CannotRun as `replay`.
    """
    if folder is not None and (folder / LINES).exists():
        raise ValueError(f"{folder}: holds a measurement; expected a new folder, to measure beside this replay")
    sampling = prepared(engine, vocabulary, about, folder, plan, first_page, say=say)
    interleaved = pacing == "cpu" and subject.scheduler().config.depth == 1
    measured_by = "cpu" if pacing == "cpu" else "wall"
    visits = sampling.rounds(plan.rounds)
    total = plan.rounds * len([*sampling.points, *sampling.held_out])
    began = time.monotonic()
    if not interleaved:
        until(visits, began + plan.seconds)
    say("replaying")
    every, several = visit_schedule(subject, total) if interleaved else (1, 1)
    between = grouped(visits, several) if interleaved else None
    replays = []
    for number in range(1, REPLAYS + 1):
        replays.append(replayed(subject, engine, pacing, between, every))
        say(f"replay {number} of {REPLAYS}: {replays[-1].log.steps} steps")
    for _ in islice(visits, 0 if interleaved and done(sampling) else len(sampling.points) + len(sampling.held_out)):
        pass
    sampling.run_log.close()
    fitted = fit(sampling.run_log.lines, about, form, measured_by)
    cost = with_host(fitted, 0 if pacing == "cpu" else host_ns(replays[0]))
    simulated, judgement = judged(subject, cost, replays, tolerance, unfit(fitted, replays, pacing, tolerance))
    return Trial(fitted, cost, simulated, tuple(replays[1:]), judgement)


def with_host(fitted: Fitted, host: float) -> Curve:
    """The fitted cost, and `host` ns a step: by the wall clock, work between two steps is not in measured points."""
    return curve(fitted.kind, {**fitted.coefficients, **({"host": float(host)} if host else {})})


def judged(
    subject: Subject, cost: StepCost, replays: Sequence[Replayed], tolerance: float, reasons: tuple[str, ...] = ()
) -> tuple[EventLog, Judgement]:
    """A simulation by a cost, compared with replays of its subject, the first of them left out.

    `reasons` are those for which there is no verdict. Raises ValueError for fewer than three replays.
    """
    if len(replays) < REPLAYS:
        raise ValueError(f"{len(replays)} replays; expected at least {REPLAYS}")
    simulated = simulate(subject, cost)
    logs = [replay.log for replay in replays[1:]]
    found = [figures(log) for log in logs]
    return simulated, Judgement(
        teacher_forced(cost, *logs),
        relative(figures(simulated), averaged(found)),
        noise_of(found),
        reasons,
        tolerance,
    )


def replayed(subject: Subject, engine: Engine[Any], pacing: Pacing, between: Any, every: int) -> Replayed:
    """One replay of a fresh subject."""
    return replay(
        subject.clients(), subject.scheduler(), engine, subject.prompts, pacing, between=between, every=every
    )


def simulate(subject: Subject, cost: StepCost) -> EventLog:
    """The log of the same requests at a cost, without an engine."""
    clock, scheduler = FakeClock(), subject.scheduler()
    if isinstance(cost, Curve) and cost.needs_longest:
        scheduler.state.decoders.watch()
    return Driver(subject.clients(), scheduler, FakeExecutor(cost, clock), clock).run()


def visit_schedule(subject: Subject, visits: int) -> tuple[int, int]:
    """(steps between visits, visits at a time), so that the replays have room for all visits.

    The number of steps is taken from a simulation in which all steps are equal.
    """
    steps = max(1, REPLAYS * simulate(subject, curve("affine", {"base": 1e7})).steps)
    return max(1, steps // max(visits, 1)), max(1, -(-visits // steps))


def grouped(visits: Any, several: int) -> Any:
    """The same visits, `several` at a time."""
    while taken := list(islice(visits, several)):
        yield taken[-1]


def done(sampling: SamplingPlan[Any]) -> bool:
    """Whether every point was visited, or skipped."""
    visited = {line["name"] for line in sampling.run_log.of("visit")} | sampling.skipped
    return all(point.name in visited for point in chain(sampling.points, sampling.held_out))


def host_ns(of: Replayed) -> int:
    """Median host time between two steps."""
    planning, committing = np.array(of.timing.planning), np.array(of.timing.committing)
    return int(np.median(planning) + np.median(committing)) if len(planning) else 0


def unfit(fitted: Fitted, replays: Sequence[Replayed], pacing: Pacing, tolerance: float) -> tuple[str, ...]:
    """Reasons why this host cannot separate a good prediction from a bad one; empty if there is none."""
    reasons = []
    noise = noise_of([figures(replay.log) for replay in replays[1:]])["busy"]
    if noise > MOST_NOISE * tolerance:
        reasons.append(
            f"replays of the same requests differ by {noise:.1%} in busy time; "
            f"expected at most {MOST_NOISE * tolerance:.1%}"
        )
    if fitted.drift.n >= 5 and abs(fitted.drift.trend) > tolerance:
        reasons.append(fitted.drift.verdict)
    contention = replays[-1].contention
    if pacing == "wall" and contention is not None and contention > CONTENDED:
        reasons.append(
            f"steps took {contention:.2f} times as long as their thread worked; expected at most {CONTENDED}"
        )
    return tuple(reasons)
