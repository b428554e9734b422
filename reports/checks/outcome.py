"""The outcome of a check of a baseline: each metric against its recorded value, and what changed in the scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sim.accounting.metric import Better

Value = int | float | str | None


@dataclass(frozen=True)
class Compared:
    """A metric of a check against its recorded value.

    recorded  its recorded value, None without one
    now       its value now
    allowed   what is allowed, as text: `exact`, `2%`, `2% worse`, `at most 3`
    same      whether `now` is allowed
    better    which way is better
    improved  whether `now` is allowed although it is further from `recorded` than it may be the other way
    limited   whether only limits are given, and no value is recorded
    """

    metric: str
    recorded: Value
    now: Value
    allowed: str
    same: bool
    better: Better = ""
    improved: bool = False
    limited: bool = False

    @property
    def change(self) -> str:
        """The change from the recorded value: `-0.0441 (-4.5%), worse`; empty if either is not a number."""
        if not isinstance(self.recorded, int | float) or not isinstance(self.now, int | float):
            return ""
        moved = self.now - self.recorded
        share = f" ({100 * moved / abs(self.recorded):+.3g}%)" if self.recorded else ""
        return f"{moved:+.4g}{share}" + (f", {self.verdict}" if self.verdict else "")

    @property
    def verdict(self) -> Literal["", "better", "worse"]:
        """Whether the value is better or worse than the recorded one; "" where that is not known."""
        numbers = isinstance(self.recorded, int | float) and isinstance(self.now, int | float)
        if not self.better or not numbers or self.recorded == self.now:
            return ""
        assert isinstance(self.recorded, int | float)
        assert isinstance(self.now, int | float)
        return "better" if (self.now > self.recorded) == (self.better == "higher") else "worse"

    @property
    def sentence(self) -> str:
        """`occupancy was 0.977, is 0.933: -0.0441 (-4.5%), worse; allowed: exact`."""
        if self.limited:
            return f"{self.metric} is {shown(self.now)}; allowed: {self.allowed}"
        moved = f": {self.change}" if self.change else ""
        return f"{self.metric} was {shown(self.recorded)}, is {shown(self.now)}{moved}; allowed: {self.allowed}"


@dataclass(frozen=True)
class Broken:
    """Why a check could not be run."""

    reason: str


@dataclass(frozen=True)
class Outcome:
    """The outcome of one check: its metrics, or the reason why it could not be run.

    changed  what differs in the scenario from the recorded one, a line each; None if none is recorded
    """

    name: str
    metrics: Sequence[Compared]
    broken: Broken | None = None
    changed: Sequence[str] | None = None

    @property
    def differing(self) -> list[Compared]:
        """The metrics with a value that is not allowed."""
        return [one for one in self.metrics if not one.same]

    @property
    def improved(self) -> list[Compared]:
        """The metrics that are better by more than they may be worse."""
        return [one for one in self.metrics if one.improved]


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """The exit code of the command: 0 if all is as recorded, 1 if a metric differs, 2 if a check is broken."""
    if any(outcome.broken for outcome in outcomes):
        return 2
    return 1 if any(outcome.differing for outcome in outcomes) else 0


def totals(outcomes: Sequence[Outcome], noun: str = "check") -> str:
    """`4 checks: all as recorded`, or how many differ and how many are broken."""
    bad = sum(bool(outcome.differing) for outcome in outcomes)
    broken = sum(bool(outcome.broken) for outcome in outcomes)
    found = [f"{bad} differ"] * bool(bad) + [f"{broken} broken"] * bool(broken)
    return f"{counted(len(outcomes), noun)}: {', '.join(found) or 'all as recorded'}"


def headline(outcome: Outcome) -> str:
    """What became of one check: `3 metrics as recorded`, `2 of 3 metrics differ: 1 better, 1 worse`."""
    if outcome.broken:
        return f"broken: {outcome.broken.reason}"
    number = counted(len(outcome.metrics), "metric")
    if not outcome.differing:
        return f"{number} as recorded" + (f", {len(outcome.improved)} better" if outcome.improved else "")
    verdicts = [one.verdict for one in outcome.differing]
    said = ", ".join(f"{verdicts.count(which)} {which}" for which in ("better", "worse") if which in verdicts)
    return f"{len(outcome.differing)} of {number} differ" + (f": {said}" if said else "")


MOST_CHANGES = 20
"""Most lines on what changed in a scenario; the others are counted."""


def cause(outcome: Outcome) -> list[str]:
    """What changed in the scenario of a check, a line each; of one that differs also that nothing did.

    Empty for a check that is as recorded, with the recorded scenario.
    """
    if not outcome.changed and outcome.differing:
        known = outcome.changed is not None
        return ["the scenario is as recorded" if known else "the recorded scenario is not known; --update records it"]
    lines = list(outcome.changed or ())
    more = len(lines) - MOST_CHANGES
    return [*lines[:MOST_CHANGES], *([f"and {counted(more, 'more key')}"] if more > 0 else [])]


def shown(value: Value) -> str:
    """A value as text: every digit of a number, the first 16 characters of a longer string."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return value if len(value) <= 20 else f"{value[:16]}..."
    return repr(value)


def counted(number: int, noun: str) -> str:
    """`1 metric`, `2 metrics`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def rows(metrics: Sequence[Compared]) -> list[tuple[str, ...]]:
    """The table of metrics, heads first."""
    heads = ("metric", "recorded", "now", "change", "allowed")
    return [heads, *((one.metric, before(one), shown(one.now), one.change, one.allowed) for one in metrics)]


def before(metric: Compared) -> str:
    """The recorded value as text; empty where only limits are given."""
    return "" if metric.limited else shown(metric.recorded)
