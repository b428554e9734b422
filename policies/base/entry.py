"""The entry of a choice that a scenario names: a description, its options with their defaults, and how it is made.

`Choice` is the entry of an admission rule, a victim rule, a router or a predictor, `Entry` that of a policy.

An option is a value, a duration (integer nanoseconds), an order (the name of another policy, or that name with its
options), a number of slots or a distribution of lengths. Kinds belong to the choice: another one may have an option
of the same name and another kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Generic, Literal, TypeVar

from sim.policy.base import Order, Victim

Made = TypeVar("Made")


@dataclass(frozen=True)
class Option:
    """One option of a choice: its default, and how its value is read.

    kind    "value": passed on as it is written
            "duration": written with a unit (`30s`), passed on as integer nanoseconds
            "order": another policy; passed on as a function without arguments that returns a new order
            "slots": by default, the number of requests that the engine runs at once
            "lengths": a distribution of lengths, as in a synthetic workload; passed on as a list of numbers of tokens
    times   of a value that is a mapping: the keys in it, at any depth, that hold durations
    needed  it has no default
    """

    default: object
    kind: Literal["value", "duration", "order", "slots", "lengths"] = "value"
    times: Collection[str] = ()
    needed: bool = False


def nothing_predicted(**options: object) -> str | None:
    """The `predictor` of an entry whose policy uses none."""
    return None


@dataclass(frozen=True)
class Choice(Generic[Made]):
    """A choice as its registry lists it.

    about    one line: what it does
    make     called by keyword with what the registry knows (`seed`; of a router also `replicas` and `pool`) and all
             options; returns a new one. Raises ValueError, naming the option, for an impossible value.
    options  by name, in the order in which they are listed
    source   where it is published, or which engine has it
    victim   of a policy or an admission rule: the victim rule that belongs to it, or None
    """

    about: str
    make: Callable[..., Made]
    options: Mapping[str, Option] = field(default_factory=dict)
    _: KW_ONLY
    source: str = ""
    victim: Victim | None = None


@dataclass(frozen=True)
class Entry(Choice[Order]):
    """A policy as the registry lists it; `victim` None: that of the order it wraps, or else the last admitted.

    predictor  called with all options by keyword; returns the name of the predictor of output lengths that the
               policy itself uses, or None
    needs_prefix_cache  the order looks up the prefix cache
    needs_radix_cache   the prefix cache must be a radix cache
    wraps_preemptive    the policy may wrap a preemptive order: a preempted sequence then stays behind the one that
                        took its slot
    """

    predictor: Callable[..., str | None] = nothing_predicted
    needs_prefix_cache: bool = False
    needs_radix_cache: bool = False
    wraps_preemptive: bool = False
