"""The cluster of a scenario: equal replicas, groups of different ones, or two pools; routers and failures.

Does not depend on any router. The engine and cost of a group are the scenario's, except for what the group states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BeforeValidator,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from slotstep.scenario.clients import PositiveTime
from slotstep.scenario.cost import Cost
from slotstep.scenario.document import brief
from slotstep.scenario.engine import Engine
from slotstep.scenario.fields import Choice, Coefficient, Count, Section, Seed, Time, sequence, whole
from slotstep.scenario.validation_errors import complaint

POOLS = ("prefill", "decode")
AnyPool = TypeVar("AnyPool", bound="Pool")


class ReplicaGroup(Section):
    """A number of equal replicas."""

    count: Count = 1
    engine: Engine
    cost: Cost | None = None


def groups(value: object, info: ValidationInfo) -> int | tuple[ReplicaGroup, ...]:
    """A number of equal replicas, or a list of groups."""
    if not isinstance(value, list | tuple):
        return whole(1)(value)
    if not value:
        raise ValueError("found an empty list; expected groups of replicas, or how many there are")
    found = []
    for place, group in enumerate(value):
        try:
            found.append(ReplicaGroup.model_validate(group, context=info.context))
        except ValidationError as error:
            raise ValueError(f"{place}.{complaint(error, ReplicaGroup, {})}") from None
    return tuple(found)


class Pool(Section):
    """The replicas of one pool, and their router."""

    replicas: int | tuple[ReplicaGroup, ...] = 1
    router: Choice = "round_robin"

    @field_validator("replicas", mode="before")
    @classmethod
    def grouped(cls, value: object, info: ValidationInfo) -> object:
        """A number, or groups."""
        return groups(value, info)

    @property
    def size(self) -> int:
        """The number of replicas."""
        return self.replicas if isinstance(self.replicas, int) else sum(group.count for group in self.replicas)


class Transfer(Section):
    """The time to transfer the KV cache of a request from the prefill to the decode pool."""

    latency: Time = 0
    per_token: Coefficient = 0.0
    pull: bool = False


class Outage(Section):
    """One planned outage of one replica."""

    replica: Seed
    at: Time
    lasts: PositiveTime


class Failures(Section):
    """When replicas fail, and what happens to their requests."""

    outages: Annotated[tuple[Outage, ...], BeforeValidator(sequence)] = ()
    mtbf: PositiveTime | None = None
    mttr: PositiveTime | None = None
    work: Literal["resumed", "moved", "lost"]

    @model_validator(mode="after")
    def some(self) -> Self:
        """Planned outages, or ones drawn from mean times between failures and to repair."""
        if (self.mtbf is None) != (self.mttr is None):
            raise ValueError("found one of mtbf and mttr; expected both or neither")
        if not self.outages and self.mtbf is None:
            raise ValueError("found no failure; expected outages, or mtbf and mttr")
        return self


class Cluster(Pool):
    """Replicas behind one router, each with its own queue; or a pool for prefill and one for decode."""

    prefill: Pool | None = None
    decode: Pool | None = None
    transfer: Transfer | None = None
    failures: Failures | None = None

    @model_validator(mode="after")
    def one_pool_or_two(self) -> Self:
        """Pools come together, with a transfer, and instead of replicas; outages are of existing replicas."""
        given = [name for name in (*POOLS, "transfer") if getattr(self, name) is not None]
        if given and len(given) < 3:
            raise ValueError(f"found {' and '.join(given)}; expected prefill, decode and transfer together")
        if given and self.model_fields_set & {"replicas", "router"}:
            raise ValueError("found replicas or router beside pools; expected them in prefill and in decode")
        for place, outage in enumerate(self.failures.outages if self.failures else ()):
            if outage.replica >= self.total:
                raise ValueError(
                    f"failures.outages.{place}.replica: found {outage.replica}; replicas are 0 to {self.total - 1}"
                )
        return self

    @model_serializer(mode="wrap")
    def without_what_pools_replace(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without `replicas` and `router` where there are two pools, which have their own."""
        told: dict[str, Any] = dump(self)
        return {key: told[key] for key in told if self.prefill is None or key not in ("replicas", "router")}

    @property
    def pools(self) -> list[Pool]:
        """The pools: one for whole requests, or those of prefill and decode."""
        return [self] if self.prefill is None or self.decode is None else [self.prefill, self.decode]

    def engines(self, usual: Engine) -> list[Engine]:
        """The engine of each replica; `usual` where its group has none."""
        found: list[Engine] = []
        for pool in self.pools:
            if isinstance(pool.replicas, int):
                found += [usual] * pool.replicas
            else:
                found += [group.engine for group in pool.replicas for _ in range(group.count)]
        return found

    @property
    def total(self) -> int:
        """The number of replicas in all pools."""
        return sum(pool.size for pool in self.pools)

    @property
    def uniform(self) -> bool:
        """Whether all replicas are alike, take whole requests and never fail."""
        return self.prefill is None and self.failures is None and isinstance(self.replicas, int)


def spread(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario in which each group of replicas has a complete engine: the scenario's with the group's own keys.

    Values that are not mappings are left for the sections to report.
    """
    cluster = scenario.get("cluster")
    if not isinstance(cluster, Mapping):
        return dict(scenario)
    base = scenario.get("engine") or {}
    told = dict(cluster)
    for name in POOLS:
        if isinstance(told.get(name), Mapping):
            told[name] = with_engines(told[name], base)
    return {**scenario, "cluster": with_engines(told, base)}


def with_engines(pool: Mapping[str, Any], base: Any) -> dict[str, Any]:
    """A pool whose groups have complete engines."""
    listed = pool.get("replicas")
    if not isinstance(listed, list | tuple) or not isinstance(base, Mapping):
        return dict(pool)
    return {**pool, "replicas": [with_engine(group, base) for group in listed]}


def with_engine(group: Any, base: Mapping[str, Any]) -> Any:
    """A group with the scenario's engine, except for its own keys."""
    if not isinstance(group, Mapping):
        raise ValueError(f"cluster.replicas: found {brief(group)}; expected groups such as {{count: 2, engine: ...}}")
    own = group.get("engine") or {}
    if not isinstance(own, Mapping):
        return dict(group)
    replaced = {other for key, other in (("fit", "pages"), ("pages", "fit")) if own.get(key) is not None}
    return {**group, "engine": {key: base[key] for key in base if key not in replaced} | dict(own)}


def group_sections(scenario: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The groups of replicas of a resolved scenario."""
    cluster = scenario["cluster"]
    for pool in (cluster, *(cluster[name] for name in POOLS if name in cluster)):
        if isinstance(pool.get("replicas"), list):
            yield from pool["replicas"]


def groups_given(scenario: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The groups of replicas of a scenario as it is given, as far as they are mappings."""
    cluster = scenario.get("cluster")
    told = cluster if isinstance(cluster, Mapping) else {}
    for pool in (told, *(told.get(name) for name in POOLS)):
        listed = pool.get("replicas") if isinstance(pool, Mapping) else None
        for group in listed if isinstance(listed, list | tuple) else ():
            if isinstance(group, dict):
                yield group


def changed(cluster: Cluster, change: Callable[[ReplicaGroup], ReplicaGroup]) -> Cluster:
    """A cluster with `change` applied to every group."""
    pools = {name: pool_changed(pool, change) for name in POOLS if (pool := getattr(cluster, name)) is not None}
    return pool_changed(cluster, change).model_copy(update=pools)


def pool_changed(pool: AnyPool, change: Callable[[ReplicaGroup], ReplicaGroup]) -> AnyPool:
    """A pool with `change` applied to every group."""
    if isinstance(pool.replicas, int):
        return pool
    return pool.model_copy(update={"replicas": tuple(change(group) for group in pool.replicas)})
