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

from policies import (
    aging,
    dfs_weight,
    drr,
    edf,
    fair,
    fcfs,
    hrrn,
    least_slack,
    lof,
    longest,
    longest_prefix,
    lpm,
    max_wait,
    mlfq,
    prefill_hrrn,
    priority,
    random_order,
    requeue,
    reserved,
    shortest_prefill_first,
    shortest_prompt,
    shuffle,
    sjf,
    srpt,
    tenant_quota,
    tenant_rate,
    tenant_slots,
    third_party,
    vtc,
)
from policies.base.entry import Entry, Option
from policies.base.option_values import suggestion
from sim.policy.base import LastAdmitted, Order, Victim

POLICIES: dict[str, Entry] = {
    "fcfs": fcfs.ENTRY,
    "sjf": sjf.ENTRY,
    "fair": fair.ENTRY,
    "priority": priority.ENTRY,
    "srpt": srpt.ENTRY,
    "shortest_prompt": shortest_prompt.ENTRY,
    "longest": longest.ENTRY,
    "edf": edf.ENTRY,
    "least_slack": least_slack.ENTRY,
    "hrrn": hrrn.ENTRY,
    "mlfq": mlfq.ENTRY,
    "longest_prefix": longest_prefix.ENTRY,
    "random": random_order.ENTRY,
    "requeue": requeue.ENTRY,
    "lpm": lpm.ENTRY,
    "dfs_weight": dfs_weight.ENTRY,
    "lof": lof.ENTRY,
    "prefill_hrrn": prefill_hrrn.ENTRY,
    "shortest_prefill_first": shortest_prefill_first.ENTRY,
    "shuffle": shuffle.ENTRY,
    "vtc": vtc.ENTRY,
    "drr": drr.ENTRY,
    "max_wait": max_wait.ENTRY,
    "aging": aging.ENTRY,
    "tenant_slots": tenant_slots.ENTRY,
    "tenant_rate": tenant_rate.ENTRY,
    "tenant_quota": tenant_quota.ENTRY,
    "reserved": reserved.ENTRY,
}

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
    found = POLICIES.get(name) or third_party.load(name)
    if found is None:
        raise ValueError(f"{name!r} is unknown; {suggestion(name, [*POLICIES, *third_party.offered()])}")
    return found


def settings(name: str, options: Mapping[str, object]) -> dict[str, object]:
    """The options with the policy's own defaults, in the order of its entry."""
    known = lookup(name).options
    for key in options:
        if key not in known:
            remedy = suggestion(key, known) if known else f"{name} has none"
            raise ValueError(f"{name}.{key}: unknown option; {remedy}")
    return {key: options.get(key, option.default) for key, option in known.items()}


def choice(value: object) -> tuple[str, Mapping[str, object]]:
    """(name, options) of a policy written as a name or as {name: options}."""
    if isinstance(value, str):
        return value, {}
    if isinstance(value, Mapping) and len(value) == 1:
        name, options = next(iter(value.items()))
        if isinstance(options, Mapping) or options is None:
            return str(name), options or {}
    raise ValueError(f"found {value!r}; expected the name of a policy, or its name with its options")
