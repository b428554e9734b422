"""Policies by name. A new one is its file and one line here.

    build("fair", {"max_wait": 5 * SECOND}, seed=0)     a new order
    resolve("fair", {})                                 {"order": {"sjf": {...}}, "max_wait": 30 * SECOND}
    changed("fair", {"max_wait": "5s"}, read)           {"max_wait": read(its Option, "max_wait", "5s")}

Durations among the options are integer nanoseconds. All functions that take a policy raise ValueError, in one line,
for a policy or an option that does not exist and for an option value of kind "order" that names no policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from policies.base.choices import Reader, choice
from policies.base.choices import settings as with_defaults
from policies.base.entry import Entry, Option
from sim.policy.base import LastAdmitted, Order, Victim
from sim.registry import Registry

POLICIES = Registry(
    "policy",
    "slotstep.policies",
    {
        "fcfs": "policies.fcfs:ENTRY",
        "sjf": "policies.sjf:ENTRY",
        "fair": "policies.fair:ENTRY",
        "priority": "policies.priority:ENTRY",
        "srpt": "policies.srpt:ENTRY",
        "shortest_prompt": "policies.shortest_prompt:ENTRY",
        "longest": "policies.longest:ENTRY",
        "edf": "policies.edf:ENTRY",
        "least_slack": "policies.least_slack:ENTRY",
        "hrrn": "policies.hrrn:ENTRY",
        "mlfq": "policies.mlfq:ENTRY",
        "longest_prefix": "policies.longest_prefix:ENTRY",
        "random": "policies.random_order:ENTRY",
        "requeue": "policies.requeue:ENTRY",
        "lpm": "policies.lpm:ENTRY",
        "dfs_weight": "policies.dfs_weight:ENTRY",
        "lof": "policies.lof:ENTRY",
        "prefill_hrrn": "policies.prefill_hrrn:ENTRY",
        "shortest_prefill_first": "policies.shortest_prefill_first:ENTRY",
        "shuffle": "policies.shuffle:ENTRY",
        "vtc": "policies.vtc:ENTRY",
        "drr": "policies.drr:ENTRY",
        "max_wait": "policies.max_wait:ENTRY",
        "aging": "policies.aging:ENTRY",
        "tenant_slots": "policies.tenant_slots:ENTRY",
        "tenant_rate": "policies.tenant_rate:ENTRY",
        "tenant_quota": "policies.tenant_quota:ENTRY",
        "reserved": "policies.reserved:ENTRY",
    },
    Reader(Entry, "a class of sim.policy.base.Order, complete, or an Entry", Order),
)

LAST_ADMITTED = LastAdmitted()


def names() -> list[str]:
    """The names of all built-in policies."""
    return list(POLICIES)


def build(name: str, options: Mapping[str, object], seed: int, slots: int | None = None) -> Order:
    """A new order by its name; `slots` is how many requests the engine runs at once, where that is known.

    Raises ValueError for an impossible option value too.
    """
    entry = lookup(name)
    given: dict[str, object] = dict(settings(name, options))
    for key, option in entry.options.items():
        if option.kind == "order":
            inner: Callable[[], Order] = partial(build, *choice(given[key]), seed, slots)
            if inner().preempts and not entry.wraps_preemptive:
                raise ValueError(f"{name}.{key} is preemptive; only max_wait and tenant_quota take such an order")
            given[key] = inner
        elif option.kind == "slots" and slots is not None:
            given[key] = slots_of(f"{name}.{key}", given[key], slots)
    return entry.make(seed=seed, **given)


def slots_of(key: str, given: object, slots: int) -> object:
    """The value of an option of kind "slots": all slots unless given. Raises ValueError for more than there are."""
    if isinstance(given, int) and given > slots:
        raise ValueError(f"{key} is {given}; expected at most the {slots} requests that the engine runs at once")
    return slots if given is None else given


def resolve(name: str, options: Mapping[str, object]) -> dict[str, object]:
    """The options with all defaults, also those of wrapped orders."""
    entry = lookup(name)
    given = settings(name, options)
    for key, option in entry.options.items():
        if option.kind == "order":
            inner, inner_options = choice(given[key])
            given[key] = {inner: resolve(inner, inner_options)}
    return given


def changed(
    name: str, options: Mapping[str, object], change: Callable[[Option, str, object], object], path: str = ""
) -> dict[str, object]:
    """The options given, each replaced by `change(option, its path, value)`, also those of wrapped orders."""
    settings(name, options)
    found: dict[str, object] = {}
    for key, value in options.items():
        option, place = lookup(name).options[key], f"{path}{key}"
        if option.kind == "order":
            inner, inner_options = choice(value)
            found[key] = {inner: changed(inner, inner_options, change, f"{place}.{inner}.")}
        else:
            found[key] = change(option, place, value)
    return found


def layers(name: str, options: Mapping[str, object]) -> list[tuple[str, dict[str, object]]]:
    """A policy and the orders it wraps, the outermost first: (name, all options) of each."""
    given = settings(name, options)
    orders = [given[key] for key, option in lookup(name).options.items() if option.kind == "order"]
    return [(name, given), *(layer for order in orders for layer in layers(*choice(order)))]


def predictor(name: str, options: Mapping[str, object]) -> str | None:
    """The name of the predictor that a policy or an order it wraps uses; None if none does."""
    used = (lookup(each).predictor(**given) for each, given in layers(name, options))
    return next((found for found in used if found is not None), None)


def needs_prefix_cache(name: str, options: Mapping[str, object]) -> str | None:
    """The name of the first policy, this one or one it wraps, that needs a prefix cache; None if none does."""
    return next((each for each, _ in layers(name, options) if lookup(each).needs_prefix_cache), None)


def needs_radix_cache(name: str, options: Mapping[str, object]) -> str | None:
    """The name of the first policy, this one or one it wraps, that needs a radix cache; None if none does."""
    return next((each for each, _ in layers(name, options) if lookup(each).needs_radix_cache), None)


def victim(name: str, options: Mapping[str, object] | None = None) -> Victim:
    """The victim rule of a policy: its own, or else that of the order it wraps; by default the last admitted."""
    victims = (lookup(each).victim for each, _ in layers(name, options or {}))
    return next((found for found in victims if found is not None), LAST_ADMITTED)


def lookup(name: str) -> Entry:
    """The entry of a built-in or third-party policy."""
    return POLICIES.find(name)


def settings(name: str, options: Mapping[str, object]) -> dict[str, object]:
    """The options with the policy's own defaults, in the order of its entry."""
    return with_defaults(name, lookup(name), options)
