"""Victim rules by name: which running sequence is preempted when pages run out.

    build("largest_remaining", {"error": 0.5}, seed=0)

last_admitted      the last admitted: the least computation is lost, and earlier sequences keep their pages
least_urgent       the lowest priority, of these the last to arrive, as in vLLM's priority scheduling
fewest_generated   the fewest generated tokens: its user has received the least
least_served       the fewest computed positions, prompt included: the least is computed again
largest_remaining  the most predicted remaining tokens: pages are freed for the longest time, but much work is lost
                   where the prediction is wrong; long requests starve while short ones arrive

Ties go to the last admitted, except under least_urgent. A new rule is its file and a line in VICTIMS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from policies.base import choices
from policies.base.choices import Reader
from policies.base.entry import Choice, Option
from policies.predictors.base import Predictor
from policies.predictors.learned import LearnedPredictor
from policies.predictors.registry import predictor
from sim.policy.base import LastAdmitted, LeastUrgent, Victim
from sim.registry import Registry
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


def largest_remaining(seed: int, predict: object, error: object) -> Victim:
    """The rule by this predictor. Raises ValueError for one that learns: victim rules are not notified of ends."""
    found = predictor(predict, error, seed)
    if isinstance(found, LearnedPredictor):
        raise ValueError(f"predict is {predict!r}; expected one that does not learn")
    return LargestRemaining(found)


LAST_ADMITTED = Choice(
    "The last admitted: the sequences admitted first are never preempted for later ones.",
    lambda seed: LastAdmitted(),
    source="vLLM",
)
LEAST_URGENT = Choice("The least urgent, of these the last to arrive.", lambda seed: LeastUrgent(), source="vLLM")
LARGEST_REMAINING = Choice(
    "The sequence with the most predicted remaining tokens.",
    largest_remaining,
    {"predict": Option("exact"), "error": Option(0)},
)

VICTIMS: Registry[Choice[Victim]] = Registry(
    "victim rule",
    "slotstep.victims",
    {
        "last_admitted": "policies.victims:LAST_ADMITTED",
        "least_urgent": "policies.victims:LEAST_URGENT",
        "fewest_generated": "policies.victims:FewestGenerated",
        "least_served": "policies.victims:LeastServed",
        "largest_remaining": "policies.victims:LARGEST_REMAINING",
    },
    Reader[Choice[Victim]](Choice, "a class with choose, or a Choice", methods=("choose",)),
)


def build(name: str, options: Mapping[str, object], seed: int) -> Victim:
    """A victim rule by its name. Raises ValueError, in one line, for a name or an option that does not exist."""
    return choices.build(VICTIMS, name, options, seed=seed)
