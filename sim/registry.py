"""What is chosen by name: built in, offered by an installed package, or given as `module:object`.

    ORDERS = Registry("policy", "slotstep.policies", {"fcfs": "policies.fcfs:ENTRY"}, read)
    ORDERS["fcfs"]                  the built-in entry
    ORDERS.find("least_work:Work")  the entry of an object in the current directory, or of an installed package

One registry for each seam. Modules are imported when an entry is asked for. Installed packages are looked up only for
a name that is not built in, and when all entries are listed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

Entry = TypeVar("Entry")


@dataclass(frozen=True, eq=False)
class Registry(Mapping[str, Entry]):
    """The entries of one seam by name; as a mapping, those that are built in, in the order in which they are listed.

    what     what an entry is, in one or two words
    group    the entry-point group of installed packages
    builtin  `module:object` by name, or `module` for an entry that is a module
    read     called with name and object, returns the entry; raises ValueError for an object that is none
    """

    what: str
    group: str
    builtin: Mapping[str, str]
    read: Callable[[str, Any], Entry]

    def __getitem__(self, name: str) -> Entry:
        """A built-in entry. Raises KeyError for any other name."""
        return self.read(name, loaded(self.builtin[name]))

    def __iter__(self) -> Iterator[str]:
        return iter(self.builtin)

    def __len__(self) -> int:
        return len(self.builtin)

    def find(self, name: str) -> Entry:
        """The entry of any name. Raises ValueError, in one line, for one that is unknown or cannot be loaded.

        The current directory is searched last, after everything installed.
        """
        if name in self.builtin:
            return self[name]
        reference = self.reference(name)
        if ":" in name and os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        try:
            found = loaded(reference)
        except Exception as error:
            raise ValueError(f"{name!r} cannot be loaded: {type(error).__name__}: {error}") from error
        return self.read(name, found)

    def reference(self, name: str) -> str:
        """Where an entry is, as `module:object`. Raises ValueError, with the nearest name, for an unknown one."""
        if name in self.builtin or ":" in name:
            return self.builtin.get(name, name)
        point = installed(self.group).get(name)
        if point is None:
            raise ValueError(f"{name!r} is unknown; {suggestion(name, self.names())}")
        return f"{point.module}:{point.attr}" if point.attr else point.module

    def knows(self, name: str) -> bool:
        """Whether a name is built in, offered by an installed package, or has the form `module:object`."""
        return name in self.builtin or ":" in name or name in installed(self.group)

    def names(self) -> list[str]:
        """The names of all entries: built-in ones, then those of installed packages."""
        return list(dict.fromkeys([*self.builtin, *installed(self.group)]))

    def everything(self) -> dict[str, Entry]:
        """All entries by name, in that order. Raises ValueError for an installed one that cannot be loaded."""
        return {name: self.find(name) for name in self.names()}


def loaded(reference: str) -> Any:
    """The object at `module:object`, or the module. Raises ImportError, AttributeError, or what the module raises."""
    module, colon, attributes = reference.partition(":")
    found: Any = import_module(module)
    for attribute in attributes.split(".") if colon else ():
        found = getattr(found, attribute)
    return found


@cache
def installed(group: str) -> dict[str, EntryPoint]:
    """The entry points of installed packages in a group, by name."""
    return {point.name: point for point in entry_points(group=group)}


def suggestion(name: object, known: Iterable[str]) -> str:
    """The nearest known name, or all known names, for an error message."""
    known = list(known)
    near = get_close_matches(str(name), known, n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"


def lacking(kind: type, methods: Iterable[str]) -> list[str]:
    """Those of `methods` that a class does not define."""
    defined = {name for parent in kind.__mro__ if parent is not object for name in vars(parent)}
    return [method for method in methods if method not in defined]
