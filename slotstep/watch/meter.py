"""Differences of counters between readings, per interval and since the start.

A counter that has decreased or was created anew means a restart: a new segment, whose counters count from 0. A
reading without the counters of tokens per slot-step is reported and skipped: the next complete one covers the time
since the last complete one. The time is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reports.exports import engine_metrics as names
from slotstep.watch.reading import Reading

CORE = (names.GENERATION, names.ITERATIONS)
Growth = dict[str, int]


@dataclass(frozen=True)
class Span:
    """The growth of the counters over some time: by name, and in slot-steps."""

    seconds: float | None
    gained: Mapping[str, int]
    slots: int

    @property
    def slot_steps(self) -> int:
        """Slot-steps bought: slots x steps."""
        return self.slots * self.gained[names.ITERATIONS]

    @property
    def tokens_per_slot_step(self) -> float | None:
        """Tokens delivered over slot-steps bought; None without a step."""
        return self.gained[names.GENERATION] / self.slot_steps if self.slot_steps else None

    @property
    def hit_rate(self) -> float | None:
        """The prefix cache hit rate in tokens; None without queries or if it is unknown."""
        queries, hits = self.gained.get(names.QUERIES), self.gained.get(names.HITS)
        return hits / queries if queries and hits is not None else None

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "seconds": self.seconds,
            "tokens": self.gained[names.GENERATION],
            "steps": self.gained[names.ITERATIONS],
            "slot_steps": self.slot_steps,
            "tokens_per_slot_step": self.tokens_per_slot_step,
            "prompt_tokens": self.gained.get(names.PROMPT),
            "preemptions": self.gained.get(names.PREEMPTIONS),
            "prefix_hit_rate": self.hit_rate,
        }


@dataclass(frozen=True)
class Observation:
    """One reading: the interval since the last complete one, since the start, and over the engine's lifetime.

    Spans are None where unknown.

    sampled  the gauges at this moment
    missing  metrics that the page does not have
    problem  why there are no new counters
    """

    at: float
    segment: int
    interval: Span | None = None
    since_start: Span | None = None
    engine_lifetime: Span | None = None
    sampled: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    problem: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object."""
        spans = {"interval": self.interval, "since_start": self.since_start, "engine_lifetime": self.engine_lifetime}
        return {
            "at": self.at,
            "segment": self.segment,
            **{name: span and span.as_dict() for name, span in spans.items()},
            "sampled": dict(self.sampled),
            "missing": list(self.missing),
            "problem": self.problem,
        }


class Meter:
    """Processes readings in order; `slots` are those of each engine behind the page."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.segment = 1
        self.last: dict[str, dict[str, int]] = {}
        self.created: Mapping[str, float] = {}
        self.total: Growth = {}
        self.began: float | None = None
        self.whole_at = 0.0

    def silent(self, at: float, problem: str) -> Observation:
        """The observation if there was no answer."""
        return Observation(at, self.segment, since_start=self._since_start(self.whole_at), problem=problem)

    def feed(self, reading: Reading, at: float) -> Observation:
        """The observation of a reading."""
        sampled = samples(reading)
        lacking = self._lacking(reading)
        if lacking:
            return Observation(
                at,
                self.segment,
                since_start=self._since_start(self.whole_at),
                sampled=sampled,
                missing=reading.missing,
                problem=lacking,
            )
        if self.last and self._restarted(reading):
            self.segment += 1
            self.last = {name: dict.fromkeys(engines, 0) for name, engines in reading.counters.items()}
        first = self.began is None
        gained = self._gained(reading)
        for name, amount in gained.items():
            self.total[name] = self.total.get(name, 0) + amount
        self.began = at if self.began is None else self.began
        interval = None if first else Span(at - self.whole_at, gained, self.slots)
        self.whole_at = at
        for name, engines in reading.counters.items():
            self.last.setdefault(name, {}).update(engines)
        self.created = {**self.created, **reading.created}
        life = {name: sum(engines.values()) for name, engines in reading.counters.items()}
        return Observation(
            at,
            self.segment,
            interval,
            None if first else self._since_start(at),
            Span(None, life, self.slots),
            sampled,
            reading.missing,
        )

    def _since_start(self, at: float) -> Span | None:
        if self.began is None or not set(CORE) <= set(self.total):
            return None
        return Span(at - self.began, dict(self.total), self.slots)

    def _lacking(self, reading: Reading) -> str | None:
        """Why tokens per slot-step cannot be computed from this reading; None if they can."""
        absent = [name for name in CORE if name not in reading.counters]
        if absent:
            return f"{' and '.join(absent)} not in the answer"
        tokens, steps = (reading.counters[name] for name in CORE)
        known = set().union(*(self.last.get(name, {}) for name in CORE))
        for name, engines in ((CORE[0], tokens), (CORE[1], steps)):
            lost = sorted((known | set(tokens) | set(steps)) - set(engines))
            if lost:
                return f'{name} of engine="{lost[0]}" not in the answer'
        return None

    def _restarted(self, reading: Reading) -> bool:
        """Whether any counter has decreased or was created at another time than before."""
        fell = any(
            value < self.last.get(name, {}).get(engine, 0)
            for name, engines in reading.counters.items()
            for engine, value in engines.items()
        )
        return fell or any(self.created.get(key, value) != value for key, value in reading.created.items())

    def _gained(self, reading: Reading) -> Growth:
        """The growth of each counter; one that is seen for the first time starts here."""
        return {
            name: sum(value - self.last.get(name, {}).get(engine, value) for engine, value in engines.items())
            for name, engines in reading.counters.items()
        }


def samples(reading: Reading) -> dict[str, Any]:
    """The gauges of a reading, None for missing ones: values of a moment, not of an interval."""
    usage = reading.gauges.get(names.CACHE_USAGE)
    return {
        "running": reading.gauges.get(names.RUNNING),
        "waiting": reading.gauges.get(names.WAITING),
        "waiting_by_reason": dict(reading.waiting) or None,
        "page_share": usage,
        "pages_used": None if usage is None or reading.pages is None else round(usage * reading.pages),
        "pages_total": reading.pages,
    }
