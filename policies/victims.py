"""Who gives the pages back when they run out, by name.

    build("largest_remaining", {"error": 0.5}, seed=0)

last_admitted      the least is lost, and the first in line is never driven out by who came after: the usual choice
least_urgent       priority decides (as vLLM's priority scheduling): a tie to who arrived last
fewest_generated   who has been given the fewest tokens: its user has read least
least_served       who has the fewest positions computed, prompt included: the least is computed again
largest_remaining  who is expected to hold its pages longest, by predicted output: most is freed for longest, and the
                   most is lost where the prediction errs; starves the long while short ones come

At a tie the last admitted. Raises ValueError, in one line, for a name or an option that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from policies.history import History
from policies.predict import Predictor, predictor
from sim.policy.base import LastAdmitted, LeastUrgent, Victim
from sim.request import Sequence


def computed(seq: Sequence, step: int) -> int:
    """Positions that a running sequence has computed before step number `step`."""
    return step + seq.base if seq.decoding else seq.computed


@dataclass(frozen=True)
class FewestGenerated:
    """The fewest tokens generated."""

    def choose(self, running: dict[int, Sequence], step: int) -> Sequence:
        """By tokens."""
        return min(reversed(running.values()), key=lambda seq: seq.generated(step))


@dataclass(frozen=True)
class LeastServed:
    """The fewest positions computed."""

    def choose(self, running: dict[int, Sequence], step: int) -> Sequence:
        """By positions."""
        return min(reversed(running.values()), key=lambda seq: computed(seq, step))


@dataclass(frozen=True)
class LargestRemaining:
    """The most predicted tokens to come."""

    predict: Predictor

    def choose(self, running: dict[int, Sequence], step: int) -> Sequence:
        """By prediction less what has been generated."""
        return max(reversed(running.values()), key=lambda seq: self.predict(seq.request) - seq.generated(step))


def largest_remaining(seed: int, predict: object = "exact", error: object = 0) -> Victim:
    """By the predictor asked for, which can not be one that learns: nobody tells a victim choice of the ends."""
    found = predictor(predict, error, seed)
    if isinstance(found, History):
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
    """A choice of victims by its name."""
    if name not in VICTIMS:
        raise ValueError(f"{name!r} is unknown; known are {', '.join(VICTIMS)}")
    known = OPTIONS.get(name, ())
    for key in options:
        if key not in known:
            remedy = f"known are {', '.join(known)}" if known else "it has none"
            raise ValueError(f"{name}.{key}: unknown option; {remedy}")
    return VICTIMS[name](seed, **options)
