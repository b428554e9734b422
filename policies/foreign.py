"""Other people's policies: by entry point, or as `module:Class` from the current directory.

A package offers one under the entry-point group `slotstep.policies`; a file needs no packaging. What is named is
an `Order` class, whose constructor's parameters are its options (a parameter `seed` gets the scenario's, those that
the class names in `durations` are durations), or an `Entry` for one that says more of itself.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from policies.entry import Entry, Option
from sim.policy import Order

GROUP = "slotstep.policies"


def offered() -> dict[str, EntryPoint]:
    """The entry points of installed packages, by the name of their policy."""
    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def load(name: str) -> Entry | None:
    """The policy that `module:Class` or an entry point names; None if it is neither.

    The current directory is looked into last, after everything installed. Raises ValueError, in one line, for a
    module that cannot be imported and for something that is no policy.
    """
    if ":" not in name:
        point = offered().get(name)
        return None if point is None else entry(name, point.load())
    module, _, attribute = name.partition(":")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:
        raise ValueError(f"{name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    return entry(name, found)


def entry(name: str, found: object) -> Entry:
    """What the registry wants to know of a policy that comes as a class, or as an entry already."""
    if isinstance(found, Entry):
        return found
    if not (inspect.isclass(found) and issubclass(found, Order)) or inspect.isabstract(found):
        raise ValueError(f"{name!r} is {found!r}; expected a class of sim.policy.Order, complete, or an Entry")
    parameters = inspect.signature(found).parameters
    needed = [key for key, parameter in parameters.items() if key != "seed" and parameter.default is parameter.empty]
    if needed:
        raise ValueError(f"{name!r} has no default for its option {needed[0]!r}; expected one")
    durations = tuple(getattr(found, "durations", ()))
    unknown = [key for key in durations if key not in parameters]
    if unknown:
        raise ValueError(f"{name!r} has a duration {unknown[0]!r}, which is none of its options")
    order: type[Order] = found

    def make(seed: int, **options: object) -> Order:
        return order(**options, **({"seed": seed} if "seed" in parameters else {}))

    about = (inspect.getdoc(found) or "No description.").splitlines()[0]
    options = {
        key: Option(parameter.default, "duration" if key in durations else "plain")
        for key, parameter in parameters.items()
        if key != "seed"
    }
    return Entry(about=about, make=make, options=options)
