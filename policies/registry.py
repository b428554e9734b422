"""Policies by name. A new one is its file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from policies.fair import Fair
from policies.fcfs import FirstComeFirstServed
from policies.predict import Exact, LognormalError, Predictor, PromptLength
from policies.sjf import ShortestJobFirst
from sim.policy import Order
from sim.request import SECOND, Nanoseconds

Options = dict[str, object]


def fcfs(options: Options, seed: int) -> Order:
    """First come, first served. No options."""
    return FirstComeFirstServed()


def sjf(options: Options, seed: int) -> Order:
    """Shortest predicted output. error: sigma of a lognormal error; predict: exact | prompt."""
    return ShortestJobFirst(predictor(options.pop("predict", "exact"), options.pop("error", 0), seed))


def fair(options: Options, seed: int) -> Order:
    """Least served tenant first. order: the order within a tenant (sjf); max_wait: cap on waiting, ns (30 s)."""
    inner, max_wait = options.pop("order", "sjf"), options.pop("max_wait", 30 * SECOND)
    if not isinstance(max_wait, Nanoseconds) or isinstance(max_wait, bool):
        raise ValueError(f"max_wait is {max_wait!r}; expected a duration")
    name, inner_options = named(inner)
    build(name, inner_options, seed)
    return Fair(lambda: build(name, inner_options, seed), max_wait)


BUILDERS: dict[str, Callable[[Options, int], Order]] = {"fcfs": fcfs, "sjf": sjf, "fair": fair}


def names() -> list[str]:
    """The names of all policies."""
    return list(BUILDERS)


def describe(name: str) -> str:
    """One line on a policy and its options."""
    return (BUILDERS[name].__doc__ or "").strip()


def build(name: str, options: Mapping[str, object], seed: int) -> Order:
    """A fresh order by its name; durations among the options are nanoseconds.

    Raises ValueError, in one line, for an unknown name, an unknown option or an impossible value.
    """
    if name not in BUILDERS:
        raise ValueError(f"policy {name!r} is unknown; {suggestion(name, names())}")
    rest = dict(options)
    order = BUILDERS[name](rest, seed)
    if rest:
        raise ValueError(f"policy {name} has no option {next(iter(rest))!r}; its options: {describe(name)}")
    return order


def named(choice: object) -> tuple[str, dict[str, object]]:
    """A choice written as a name or as {name: options}. Raises ValueError for anything else."""
    if isinstance(choice, str):
        return choice, {}
    if isinstance(choice, Mapping) and len(choice) == 1:
        name, options = next(iter(choice.items()))
        if isinstance(options, Mapping) or options is None:
            return str(name), dict(options or {})
    raise ValueError(f"found {choice!r}; expected the name of a policy, or its name with its options")


def predictor(kind: object, error: object, seed: int) -> Predictor:
    """A predictor of output length. Raises ValueError for an unknown kind or an impossible error."""
    if isinstance(error, bool) or not isinstance(error, int | float):
        raise ValueError(f"error is {error!r}; expected a number of 0 or more")
    if kind == "prompt":
        if error:
            raise ValueError("error applies to predict: exact only")
        return PromptLength()
    if kind != "exact":
        raise ValueError(f"predict is {kind!r}; expected exact or prompt")
    return LognormalError(float(error), seed) if error else Exact()


def suggestion(name: str, known: list[str]) -> str:
    """What might have been meant."""
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
