"""Victim rules by name: which running sequence is preempted when pages run out.

    build("largest_remaining", {"error": 0.5}, seed=0)

last_admitted      the last admitted: the least computation is lost, and earlier sequences keep their pages
least_urgent       the lowest priority, of these the last to arrive, as in vLLM's priority scheduling
fewest_generated   the fewest generated tokens: its user has received the least
least_served       the fewest computed positions, prompt included: the least is computed again
largest_remaining  the most predicted remaining tokens: pages are freed for the longest time, but much work is lost
                   where the prediction is wrong; long requests starve while short ones arrive

Ties go to the last admitted, except under least_urgent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from policies.predictors.base import Predictor
from policies.predictors.learned import LearnedPredictor
from policies.predictors.registry import predictor
from sim.policy.base import LastAdmitted, LeastUrgent, Victim
from sim.sequence import Sequence


@dataclass(frozen=True)
class FewestGenerated:
    """The sequence with the fewest generated tokens."""

    def choose(self, running: dict[int, Sequence], step: int) -> Sequence:
        """The fewest generated tokens; ties go to the last admitted."""
        return min(reversed(running.values()), key=lambda seq: seq.generated(step))


@dataclass(frozen=True)
class LeastServed:
    """The sequence with the fewest computed positions."""

    def choose(self, running: dict[int, Sequence], step: int) -> Sequence:
        """The fewest computed positions; ties go to the last admitted."""
        return min(reversed(running.values()), key=lambda seq: seq.positions(step))


@dataclass(frozen=True)
class LargestRemaining:
    """The sequence with the most predicted remaining tokens."""

    predict: Predictor

    def choose(self, running: dict[int, Sequence], step: int) -> Sequence:
        """The most predicted remaining tokens; ties go to the last admitted."""
        return max(reversed(running.values()), key=lambda seq: self.predict(seq.request) - seq.generated(step))


def largest_remaining(seed: int, predict: object = "exact", error: object = 0) -> Victim:
    """The rule by this predictor. Raises ValueError for one that learns: victim rules are not notified of ends."""
    found = predictor(predict, error, seed)
    if isinstance(found, LearnedPredictor):
        raise ValueError(f"predict is {predict!r}; expected one that does not learn")
    return LargestRemaining(found)


VICTIMS: dict[str, Callable[..., Victim]] = {
    "last_admitted": lambda seed: LastAdmitted(),
    "least_urgent": lambda seed: LeastUrgent(),
    "fewest_generated": lambda seed: FewestGenerated(),
    "least_served": lambda seed: LeastServed(),
    "largest_remaining": largest_remaining,
}
OPTIONS = {"largest_remaining": ("predict", "error")}


def build(name: str, options: Mapping[str, object], seed: int) -> Victim:
    """A victim rule by its name. Raises ValueError, in one line, for a name or an option that does not exist."""
    if name not in VICTIMS:
        raise ValueError(f"{name!r} is unknown; known are {', '.join(VICTIMS)}")
    known = OPTIONS.get(name, ())
    for key in options:
        if key not in known:
            remedy = f"known are {', '.join(known)}" if known else "it has none"
            raise ValueError(f"{name}.{key}: unknown option; {remedy}")
    return VICTIMS[name](seed, **options)
