"""What a baseline expects of a metric: a recorded value with a tolerance, or limits."""

from __future__ import annotations

import math
from collections.abc import Mapping

from slotstep.experiments.metric_path import Value
from slotstep.scenario import document
from slotstep.scenario.fields import Section

FORMS = ("value", "within", "worse", "at_least", "at_most")


class Tolerance(Section):
    """The allowed deviation from the recorded value: an amount, or a share of it."""

    amount: float
    relative: bool

    def allows(self, recorded: float, now: float) -> bool:
        """Whether `now` is within the tolerance."""
        return abs(now - recorded) <= self.amount * (abs(recorded) if self.relative else 1.0)

    def __str__(self) -> str:
        return f"{100 * self.amount:g}%" if self.relative else f"{self.amount:g}"


class Expected(Section):
    """What a metric is expected to be. Without a tolerance it has to be equal to the recorded value.

    value     the recorded value, None if there is none yet
    within    how far from it, either way
    worse     how far from it in the worse direction; better by any amount
    at_least  a limit, with no recorded value
    at_most   a limit, with no recorded value
    """

    value: Value = None
    within: Tolerance | None = None
    worse: Tolerance | None = None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def limited(self) -> bool:
        """Whether it has limits in place of a recorded value."""
        return self.at_least is not None or self.at_most is not None

    @property
    def allowed(self) -> str:
        """What is allowed, as text."""
        if self.limited:
            limits = {"at least": self.at_least, "at most": self.at_most}
            return " and ".join(f"{words} {limit!r}" for words, limit in limits.items() if limit is not None)
        if self.worse is not None:
            return f"{self.worse} worse"
        return "exact" if self.within is None else str(self.within)


def tolerance(value: object) -> Tolerance:
    """From `0.5` or `2%`; raises ValueError otherwise."""
    text = str(value).strip()
    try:
        amount = float(text.removesuffix("%"))
    except ValueError:
        amount = math.nan
    if isinstance(value, bool) or not 0 <= amount < math.inf:
        raise ValueError(f"found {document.brief(value)}; expected an amount such as 0.5, or a share such as 2%")
    return Tolerance(amount=amount / 100 if text.endswith("%") else amount, relative=text.endswith("%"))


def limit(value: object) -> float:
    """From a number; raises ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"found {document.brief(value)}; expected a number")
    return value


def expected(value: object) -> Expected:
    """From a value alone, or a mapping of FORMS; raises ValueError otherwise."""
    if not isinstance(value, Mapping):
        return Expected(value=recorded_value(value))
    given = set(value)
    if not given or not any(given <= {*forms} for forms in (FORMS[:2], (FORMS[0], FORMS[2]), FORMS[3:])):
        raise ValueError(
            f"found {document.brief(dict(value))}; expected value and within or worse, or at_least and at_most"
        )
    recorded = value.get("value")
    if recorded is not None and (isinstance(recorded, bool) or not isinstance(recorded, int | float)):
        raise ValueError(f"found {document.brief(recorded)}; expected a number, for a tolerance")
    if given == {"value"}:
        return Expected(value=recorded)
    return Expected(
        value=recorded,
        within=tolerance(value["within"]) if "within" in value else None,
        worse=tolerance(value["worse"]) if "worse" in value else None,
        at_least=limit(value["at_least"]) if "at_least" in value else None,
        at_most=limit(value["at_most"]) if "at_most" in value else None,
    )


def recorded_value(value: object) -> Value:
    """A recorded value. Raises ValueError for a list, and for true and false."""
    if isinstance(value, bool) or not (value is None or isinstance(value, int | float | str)):
        raise ValueError(f"found {document.brief(value)}; expected a number or text")
    return value


def metrics(value: object) -> dict[str, Expected]:
    """From a mapping of metrics to what is expected of them; raises ValueError for anything else."""
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"found {document.brief(value)}; expected metrics, such as occupancy: 0.95")
    found = {}
    for name, given in value.items():
        try:
            found[str(name)] = expected(given)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return found
