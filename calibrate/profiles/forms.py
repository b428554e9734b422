"""The cost forms by name: how a step's duration follows from its shape. A new one is its file and a line in FORMS.

curve("affine", {"base": 2e6})        a form of the kernel from its coefficients, in nanoseconds
curve("my_cost:Tiled", {"tile": 8})   a form of the current directory
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from sim.cost.forms import Curve
from sim.cost.table import Table, table
from sim.registry import Registry, suggestion


@dataclass(frozen=True)
class CostForm:
    """A cost form as the registry lists it: a class, and what makes one from the coefficients of a profile.

    `make` is called with the coefficients by keyword; it raises ValueError, naming the coefficient, for a wrong one.
    """

    kind: type[Curve]
    make: Callable[..., Curve]

    @property
    def coefficients(self) -> tuple[str, ...]:
        """The names of the coefficients."""
        return tuple(each.name for each in fields(self.kind))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names of the coefficients that are numbers."""
        return tuple(each.name for each in fields(self.kind) if each.type in ("float", "int", float, int))


def entry(name: str, found: Any) -> CostForm:
    """The entry of a class, a dataclass whose fields are its coefficients. Raises ValueError for any other object."""
    if isinstance(found, CostForm):
        return found
    wrong = f"{name!r} is {found!r}; expected a class of sim.cost.forms.Curve, complete"
    if not (inspect.isclass(found) and issubclass(found, Curve)):
        raise ValueError(wrong)
    if missing := sorted(found.__abstractmethods__):
        raise ValueError(f"{wrong}: it lacks {', '.join(missing)}")
    for each in fields(found):
        if each.default is each.default_factory is MISSING:
            raise ValueError(f"{name!r} has no default for its coefficient {each.name!r}; expected one")
    return CostForm(found, found)


TABLE = CostForm(Table, lambda **content: table(content))

FORMS: Registry[CostForm] = Registry(
    "cost form",
    "slotstep.costs",
    {
        "affine": "sim.cost.forms:Affine",
        "roofline": "sim.cost.forms:Roofline",
        "table": "calibrate.profiles.forms:TABLE",
    },
    entry,
)


def curve(name: str, coefficients: Mapping[str, Any]) -> Curve:
    """A cost from its coefficients by name, in nanoseconds.

    Raises ValueError, one line that begins with the name, for an unknown form and for what it does not take.
    """
    if not FORMS.knows(name):
        raise ValueError(f"{name}: unknown kind of curve; {suggestion(name, FORMS.names())}")
    form = FORMS.find(name)
    try:
        for key, value in coefficients.items():
            if key not in form.coefficients:
                raise ValueError(f"{key}: unknown key; {suggestion(key, form.coefficients)}")
            if key == "graph_sizes" and not isinstance(value, list | tuple):
                raise ValueError(f"{key} is {value!r}; expected a list of whole numbers")
            if key in form.numbers and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ValueError(f"{key} is {value!r}; expected a number of nanoseconds")
        return form.make(**coefficients)
    except ValueError as error:
        raise ValueError(f"{name}.{error}") from None
