"""Choices by name: the entry of a class, the options with their defaults, and a new object of a choice.

A file or a package offers a class or an entry. The parameters of the class's constructor are its options. What the
registry knows (`seed`; of a router also `replicas` and `pool`) is passed to parameters of that name. Parameters
listed in the class attribute `durations` are durations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from policies.base.entry import Choice, Made, Option
from sim.registry import Registry, lacking, suggestion

AnyChoice = TypeVar("AnyChoice", bound=Choice[Any])


@dataclass(frozen=True)
class Reader(Generic[AnyChoice]):
    """Reads the entry of an object: of an entry itself, or of a class.

    entry    the class of entries
    expected what an object has to be, for error messages
    base     what a class has to be derived from
    methods  what a class has to define
    known    parameters that are no options
    """

    entry: type[AnyChoice]
    expected: str
    base: type = object
    methods: tuple[str, ...] = ()
    known: tuple[str, ...] = ("seed",)

    def __call__(self, name: str, found: Any) -> AnyChoice:
        """The entry. Raises ValueError, in one line, for any other object."""
        if isinstance(found, self.entry):
            return found
        wrong = f"{name!r} is {found!r}; expected {self.expected}"
        if not (inspect.isclass(found) and issubclass(found, self.base)):
            raise ValueError(wrong)
        missing = sorted(getattr(found, "__abstractmethods__", ())) or lacking(found, self.methods)
        if missing:
            raise ValueError(f"{wrong}: it lacks {', '.join(missing)}")
        parameters = inspect.signature(found).parameters
        options = {key: parameter for key, parameter in parameters.items() if key not in self.known}
        needed = [key for key, parameter in options.items() if parameter.default is parameter.empty]
        if needed:
            raise ValueError(f"{name!r} has no default for its option {needed[0]!r}; expected one")
        durations = tuple(getattr(found, "durations", ()))
        unknown = [key for key in durations if key not in options]
        if unknown:
            raise ValueError(f"{name!r} has a duration {unknown[0]!r}, which is not one of its options")
        kind: type[Any] = found

        def make(**given: object) -> Any:
            return kind(**{key: value for key, value in given.items() if key in parameters})

        return self.entry(
            (inspect.getdoc(found) or "No description.").splitlines()[0],
            make,
            {
                key: Option(parameter.default, "duration" if key in durations else "value")
                for key, parameter in options.items()
            },
        )


def settings(name: str, entry: Choice[Any], options: Mapping[str, object]) -> dict[str, object]:
    """The options with the defaults of the entry, in its order.

    Raises ValueError for an option that it does not have, and for one that is missing and has no default.
    """
    known = entry.options
    for key in options:
        if key not in known:
            remedy = suggestion(key, known) if known else f"{name} has none"
            raise ValueError(f"{name}.{key}: unknown option; {remedy}")
    for key, option in known.items():
        if option.needed and key not in options:
            raise ValueError(f"{name}: {key} is missing; its options are {', '.join(known)}")
    return {key: options.get(key, option.default) for key, option in known.items()}


def build(registry: Registry[Choice[Made]], name: str, options: Mapping[str, object], **known: object) -> Made:
    """A new object of a choice; `known` is what the registry knows beside the options.

    Raises ValueError, in one line, for an unknown name or option and for an impossible value.
    """
    entry = registry.find(name)
    return entry.make(**known, **settings(name, entry, options))


def changed(
    entry: Choice[Any], options: Mapping[str, object], change: Callable[[Option, str, object], object]
) -> dict[str, object]:
    """The options given, each replaced by `change(option, its name, value)`; unknown ones are left as they are."""
    return {
        key: change(entry.options[key], key, value) if key in entry.options else value
        for key, value in options.items()
    }


def choice(value: object, what: str = "a policy") -> tuple[str, Mapping[str, object]]:
    """(name, options) of a choice written as a name or as {name: options}. Raises ValueError for anything else."""
    if isinstance(value, str):
        return value, {}
    if isinstance(value, Mapping) and len(value) == 1:
        name, options = next(iter(value.items()))
        if isinstance(options, Mapping) or options is None:
            return str(name), options or {}
    raise ValueError(f"found {value!r}; expected the name of {what}, or its name with its options")
