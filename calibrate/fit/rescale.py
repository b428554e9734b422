"""A fitted roofline read as bandwidths and rates, and rescaled to another model on the same device by shape.

The time per byte and per operation stays; bytes and operations are the other model's. Host time is not rescaled: it
depends on the engine, its client and the number of layers, and is better fitted on one run. A step that was limited
by something else than bytes or operations (launches, small matrices) cannot be rescaled either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from calibrate.hardware.devices import Device
from calibrate.models.architecture import BYTES, Architecture, from_mapping
from calibrate.models.registry import architecture
from calibrate.profiles.profile import Profile, profile
from calibrate.profiles.schema import coefficients
from sim.cost.forms import Roofline

ALL = 1e9
"""Tokens that touch every expert."""
OF_THE_ENGINE = ("client_delay_ns", "kv_dtype")
"""Details of a profile that hold of another model on the same engine."""


@dataclass(frozen=True)
class Attained:
    """One coefficient as the bandwidth or rate attained, bytes/s or FLOP/s, and the data sheet's (0: not known)."""

    term: str
    what: str
    value: float
    sheet: float


def attained(cost: Roofline, model: Architecture, device: Device | None, dtype: str = "bfloat16") -> list[Attained]:
    """The physical coefficients of a dense model on one device beside the data sheet; those at 0 are left out."""
    cache = model.cache_dtype(dtype, None)
    amounts = {
        "weight_pass": ("weights read, B/s", model.read(ALL) * BYTES[dtype], None),
        "per_token": ("matrix products, FLOP/s", 2 * model.multiplied, dtype),
        "per_context_token": ("cache read, B/s", model.kv_values() * BYTES[cache], None),
        "per_chunk_work": ("attention of prompts, FLOP/s", model.pair_flops, cache),
    }
    found = []
    for term, (what, amount, multiplied) in amounts.items():
        nanoseconds = getattr(cost, term)
        if nanoseconds:
            sheet = 0.0 if device is None else device.arithmetic(multiplied) if multiplied else device.bandwidth
            found.append(Attained(term, what, amount / nanoseconds * 1e9, sheet))
    return found


def factors(source: Architecture, target: Architecture) -> dict[str, float]:
    """Bytes and operations of the target over those of the source, by the terms that go with them.

    Raises ValueError for mixtures of experts and windows, which have not this form.
    """
    for model in (source, target):
        if model.experts or model.window:
            raise ValueError(
                f"{model.name} has experts or a window; expected a dense model that attends to everything"
            )
    cached = target.kv_values() / source.kv_values()
    return {
        "weight_pass": target.read(ALL) / source.read(ALL),
        "per_token": target.multiplied / source.multiplied,
        "per_context_token": cached,
        "per_copied_token": cached,
        "per_swapped_token": cached,
        "per_chunk_work": target.pair_flops / source.pair_flops,
    }


def carried(cost: Roofline, source: Architecture, target: Architecture) -> Roofline:
    """The roofline of another model in the same dtype on the same device, by the ratios of bytes and operations.

    host, per_sequence and all terms that depend on neither stay as they are. Raises as `factors`.
    """
    scaled = {term: float(f"{getattr(cost, term) * factor:.6g}") for term, factor in factors(source, target).items()}
    return replace(cost, **scaled)  # type: ignore[arg-type]  # all are floats


def carried_profile(
    given: Profile,
    target: Architecture,
    *,
    name: str,
    date: str,
    source: Architecture | None = None,
    host: float | None = None,
) -> Profile:
    """A profile's roofline rescaled to another model, with details of what was rescaled and what stayed.

    source  the model of the profile, where it does not state its shape
    host    ns, in place of that model's

    Raises ValueError for another form of curve, for several devices, whose shares are not separated, for a model
    whose shape is not known, and as `carried`.
    """
    cost, content = given.cost(), given.content
    if not isinstance(cost, Roofline):
        raise ValueError(f"{given.name}: its curve is of the kind {given.kind}; expected roofline, which has a shape")
    if content["tensor_parallel"] != 1:
        raise ValueError(f"{given.name}: tensor_parallel is {content['tensor_parallel']}; expected 1")
    begun = source or shape_of(given)
    made = carried(cost, begun, target)
    if host is not None:
        made = replace(made, host=host)
    by = {term: factor for term, factor in factors(begun, target).items() if getattr(cost, term)}
    stayed = [term for term in coefficients(cost)[given.kind] if term not in by and (term != "host" or host is None)]
    described = {key: content[key] for key in ("device", "memory", "driver", "software", "dtype", "page_size")}
    more = {key: value for key, value in (content.get("details") or {}).items() if key in OF_THE_ENGINE}
    return profile(
        coefficients(made),
        name=name,
        **described,
        model=target.described(),
        tensor_parallel=1,
        date=date,
        method=f"Carried by shape from {begun.name} to {target.name}: terms that go with bytes or operations times "
        "the ratio of these; all others as they were. Nothing of it is measured.",
        source=f"profile {given.name}, {given.sha256}: {content['source']}",
        licence=content["licence"],
        range=content["range"],
        not_included=[
            *content["not_included"],
            *(["what the host does longer or shorter than with " + begun.name] if host is None else []),
        ],
        details={
            "carried": {
                "profile": given.name,
                "sha256": given.sha256,
                "from": begun.name,
                "to": target.name,
                "factors": {term: float(f"{factor:.6g}") for term, factor in by.items()},
                "stayed": stayed,
            },
            **more,
        },
    )


def shape_of(given: Profile) -> Architecture:
    """The architecture of a profile's model: as it states, or by its name.

    Raises ValueError where neither is known.
    """
    said = given.content["model"]
    try:
        return from_mapping(said) if len(said) > 1 else architecture(said["name"])
    except ValueError as error:
        raise ValueError(f"{given.name}: model: {error}") from None
