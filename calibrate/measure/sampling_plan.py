"""When which point is measured, and how often: random rounds, a control point, then the least certain points.

Every round visits every point once, in an order of its own, so that a slow change of the device affects all alike. A
control point between the visits shows whether there was one. The remaining time goes to the points that a fit without
them predicts worst, and to new ones beside them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Generic

import numpy as np

from calibrate.decoder.engine.protocol import Handle, OutOfMemory
from calibrate.measure.points import Limits, Point, between, read
from calibrate.measure.run_log import CONTROL, RunLog
from calibrate.measure.step_timer import StepTimer

WARM_UP = 1
"""Steps of a visit that are not counted: the first one meets cold caches, and perhaps a graph not captured."""


class SamplingPlan(Generic[Handle]):
    """Visits of `points` and of `held_out`, written to a log; those that are in it already are not repeated.

    control     the point that is measured again and again, to see the device change
    busiest     another one, bound by arithmetic where that one is bound by memory
    steps       timed steps of a visit
    every       visits between two measurements of the control point
    read_state  is called at each of these; its result is written with them (clocks, power)
    """

    def __init__(
        self,
        timer: StepTimer[Handle],
        run_log: RunLog,
        points: list[Point],
        held_out: list[Point],
        *,
        control: Point,
        busiest: Point | None = None,
        limits: Limits,
        steps: int = 3,
        every: int = 10,
        seed: int = 0,
        read_state: Callable[[], dict[str, Any]] = dict,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.timer = timer
        self.run_log = run_log
        self.points = points
        self.held_out = held_out
        self.controls = [control] if busiest is None else [control, busiest]
        self.limits = limits
        self.steps = steps
        self.every = every
        self.seed = seed
        self.read_state = read_state
        self.say = say
        self.skipped = {line["name"] for line in run_log.of("skip")}
        self.visited = {(line["round"], line["name"]) for line in run_log.of("visit")}
        self.began = time.monotonic() - max((line["at"] for line in run_log.lines if "at" in line), default=0.0)

    def rounds(self, count: int) -> Iterator[None]:
        """`count` rounds; each step of this iterator is a visit."""
        visits = 0
        for number in range(count):
            order = [*self.points, *self.held_out]
            for place in np.random.default_rng([self.seed, number]).permutation(len(order)).tolist():
                if (number, order[place].name) in self.visited or order[place].name in self.skipped:
                    continue
                if visits % self.every == 0:
                    self.measure_control()
                visits += 1
                self.visit(order[place], number)
                yield
        self.measure_control()

    def adapt(self, error: Callable[[], dict[str, float]], batch: int = 4) -> Iterator[None]:
        """Without end: the points with the largest `error` (relative, by name), and new ones beside them.

        A point counts for less each time it was visited again: where a fit has to extrapolate, more samples do not
        help.
        """
        number = 1 + max((line["round"] for line in self.run_log.of("visit")), default=0)
        again: dict[str, int] = {}
        while True:
            found = {name: value / (1 + again.get(name, 0)) for name, value in error().items()}
            known = {point.name: point for point in self.points if point.name not in self.skipped}
            worst = sorted((name for name in found if name in known), key=lambda name: -found[name])[:batch]
            if not worst:
                return
            self.measure_control()
            for name in worst:
                again[name] = again.get(name, 0) + 1
                for each in (known[name], self.neighbour(known[name])):
                    if each is not None:
                        self.visit(each, number)
                        yield
            number += 1

    def neighbour(self, point: Point) -> Point | None:
        """A new point half-way to one of its kind near it, if it fits and is half an octave from all others."""
        alike = sorted(
            (other for other in self.points if other.kind == point.kind), key=lambda to: distance(point, to)
        )
        for other in alike[1:5]:
            made = between(point, other)
            if made is None or not self.limits.allow(made) or min(distance(made, there) for there in alike) < 0.5:
                continue
            self.points.append(made)
            return made
        return None

    def visit(self, point: Point, number: int) -> None:
        """Measure a point once; if the device has no memory for it, record that and never try again."""
        try:
            samples = self.timer.run(point, WARM_UP + self.steps)[WARM_UP:]
        except OutOfMemory as error:
            self.skipped.add(point.name)
            self.run_log.write(kind="skip", name=point.name, reason=str(error), at=self.at)
            self.say(f"skipped {point.name}: {error}")
            return
        self.run_log.write(
            kind="visit",
            round=number,
            name=point.name,
            point=point.written(),
            held_out=point in self.held_out,
            at=self.at,
            samples=[[each.grown, each.device_ns, each.cpu_ns, each.wall_ns] for each in samples],
        )

    def measure_control(self) -> None:
        """Measure the control points; the device's state is read right after the last step."""
        for point in self.controls:
            samples = self.timer.run(point, WARM_UP + self.steps)[WARM_UP:]
            self.run_log.write(
                kind=CONTROL,
                name=point.name,
                at=self.at,
                samples=[[each.grown, each.device_ns, each.cpu_ns, each.wall_ns] for each in samples],
                **self.read_state(),
            )

    @property
    def at(self) -> float:
        """Seconds since the measurement began, pauses between two starts of it left out."""
        return round(time.monotonic() - self.began, 6)


def all_points(run_log: RunLog) -> list[Point]:
    """Every point that was visited, in order of its first visit."""
    return list(dict.fromkeys(read(line["point"]) for line in run_log.of("visit")))


def distance(one: Point, other: Point) -> float:
    """How far two points of a kind are apart, in octaves."""
    ours, theirs = one.shape, other.shape
    return float(sum(abs(np.log2((ours[key] + 1) / (theirs[key] + 1))) for key in ours))
