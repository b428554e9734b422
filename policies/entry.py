"""What the registry knows of a policy: a line on it, its options with their defaults, and how it is made.

An option is a plain value, a duration (integer nanoseconds), an order (the name of another policy, or that name
with its options) or a number of slots. What kind it is belongs to the policy: another one may use the same name for
something else. Knows no policy by name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sim.policy.base import Order, Victim


@dataclass(frozen=True)
class Option:
    """One option of a policy: its default, and how its value is to be read.

    kind   "slots": how many requests the engine runs at once, unless something else is given
    times  of a plain value that is a mapping: the keys in it, at any depth, that hold durations
    """

    default: object
    kind: Literal["plain", "duration", "order", "slots"] = "plain"
    times: Collection[str] = ()


def nothing_predicted(**options: object) -> str | None:
    """The predictor of a policy that does without."""
    return None


@dataclass(frozen=True)
class Entry:
    """A policy as the registry lists it.

    make       from `seed` and all options to a fresh order; an option of kind "order" comes as a function
               that makes one. Raises ValueError, naming the option, for an impossible value.
    predictor  from the plain options and durations to the name of the predictor that the policy itself uses
    victim     who gives its pages back under this policy when they run out; None: as the order it wraps has it
    looks_up   it asks what is in the prefix cache, so it needs one
    over_preemptive  it may wrap an order that preempts: whoever had to leave does not come before whom it left for
    """

    about: str
    make: Callable[..., Order]
    options: Mapping[str, Option] = field(default_factory=dict)
    predictor: Callable[..., str | None] = nothing_predicted
    victim: Victim | None = None
    source: str = ""
    looks_up: bool = False
    over_preemptive: bool = False
