"""The registry's entry for a policy: a description, its options with their defaults, and a function that makes it.

An option is a value, a duration (integer nanoseconds), an order (the name of another policy, or that name with its
options) or a number of slots. Kinds belong to the policy: another policy may have an option of the same name and
another kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sim.policy.base import Order, Victim


@dataclass(frozen=True)
class Option:
    """One option of a policy: its default, and how its value is read.

    kind   "value": passed on as it is written
           "duration": written with a unit (`30s`), passed on as integer nanoseconds
           "order": another policy; passed on as a function without arguments that returns a new order
           "slots": by default, the number of requests that the engine runs at once
    times  of a value that is a mapping: the keys in it, at any depth, that hold durations
    """

    default: object
    kind: Literal["value", "duration", "order", "slots"] = "value"
    times: Collection[str] = ()


def nothing_predicted(**options: object) -> str | None:
    """The `predictor` of an entry whose policy uses none."""
    return None


@dataclass(frozen=True)
class Entry:
    """A policy as the registry lists it.

    about      one line: which request goes first
    make       called with `seed` and all options by keyword; returns a new order. Raises ValueError, naming the
               option, for an impossible value.
    options    by name, in the order in which they are listed
    predictor  called with all options by keyword; returns the name of the predictor of output lengths that the
               policy itself uses, or None
    victim     the victim rule of this policy; None: that of the order it wraps, or else the last admitted
    source     where the policy is published
    needs_prefix_cache  the order looks up the prefix cache
    needs_radix_cache   the prefix cache must be a radix cache
    wraps_preemptive    the policy may wrap a preemptive order: a preempted sequence then stays behind the one that
                        took its slot
    """

    about: str
    make: Callable[..., Order]
    options: Mapping[str, Option] = field(default_factory=dict)
    predictor: Callable[..., str | None] = nothing_predicted
    victim: Victim | None = None
    source: str = ""
    needs_prefix_cache: bool = False
    needs_radix_cache: bool = False
    wraps_preemptive: bool = False
