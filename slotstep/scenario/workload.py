"""The workload of a scenario: where its requests come from, and what is done to them.

Distributions and transforms are checked by `traces` when a scenario is loaded. Reads no file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ValidationError, ValidationInfo, field_validator, model_validator

from slotstep.scenario import document, units
from slotstep.scenario.clients import PositiveTime
from slotstep.scenario.fields import (
    Block,
    Count,
    Label,
    Positive,
    Section,
    Seed,
    Time,
    Truth,
    UnknownKeyError,
    Whole,
    sequence,
)
from slotstep.scenario.validation_errors import complaint
from traces.reading.registry import FORMATS
from traces.reading.table import FILTERS

AUTO = "auto"
"""Stands for the name of a trace format that is to be detected."""
TRACE_OPTIONS = ("run", "map", "only", "replay_throttled")
SOURCES = ("trace", "synthetic", "requests", "merge")


class RequestLine(Section):
    """One request written in the scenario."""

    id: Label | None = None
    arrival: Time = 0
    prompt: Count
    output: Count
    tenant: Label = "default"
    max_output: Count | None = None
    priority: Whole = 0
    tokens: Annotated[tuple[Seed, ...], BeforeValidator(sequence)] | None = None
    blocks: Annotated[tuple[Block, ...], BeforeValidator(sequence)] | None = None
    block_size: Count | None = None
    adapter: Label | None = None
    cancel_after: PositiveTime | None = None
    cancel_tokens: Count | None = None
    queue_timeout: PositiveTime | None = None
    timeout: PositiveTime | None = None
    session: Label | None = None
    think: Time | None = None

    @model_validator(mode="before")
    @classmethod
    def default_prompt(cls, value: object) -> object:
        """A prompt without a length has that of its content, or one token."""
        if not isinstance(value, dict):
            return value
        content = value.get("tokens", value.get("blocks"))
        length = len(content) if isinstance(content, list | tuple) else 1
        if isinstance(size := value.get("block_size"), int):
            length *= size
        return {"prompt": length, **value}


def filters(given: object) -> dict[str, list[str]]:
    """The values wanted of each column of `only`. Raises ValueError for what is not one, or a list of them."""
    if not isinstance(given, dict) or not given:
        raise ValueError(f"found only: {document.brief(given)}; expected such as {{tenant: acme, status: [ok]}}")
    for name in given:
        if name not in FILTERS:
            raise UnknownKeyError(f"only.{name}", [f"only.{known}" for known in FILTERS])
    found = {name: list(values) if isinstance(values, list | tuple) else [values] for name, values in given.items()}
    for name, values in found.items():
        if not values or not all(isinstance(value, str) and value for value in values):
            raise ValueError(f"found only.{name}: {document.brief(given[name])}; expected a name or a list of names")
    return found


class Workload(Section):
    """Requests from exactly one source, and the operations on them.

    Either `transforms`, a list applied in its order; or, in this order, `between` in the source's own time, `first`
    of what is left, and `scale_rate` (2 doubles the arrival rate). Last `max_output`, for requests that declare no
    limit, or `ignore_eos`, with which every request is known to produce as many tokens as it does. The parts of a
    `merge` are workloads too, each a tenant of its name.
    """

    trace: dict[str, Any] | None = None
    synthetic: dict[str, Any] | None = None
    requests: Annotated[tuple[RequestLine, ...], BeforeValidator(sequence)] | None = None
    merge: dict[str, Any] | None = None
    transforms: Annotated[tuple[Any, ...], BeforeValidator(sequence)] | None = None
    between: Annotated[tuple[Time, Time], BeforeValidator(sequence)] | None = None
    first: Count | None = None
    scale_rate: Positive = 1.0
    max_output: Count | None = None
    ignore_eos: Truth = False

    @field_validator("trace", mode="before")
    @classmethod
    def place_trace(cls, value: object, info: ValidationInfo) -> object:
        """One format and its file, made absolute against the scenario's folder; optionally TRACE_OPTIONS."""
        if not isinstance(value, dict) or len(value) - sum(key in value for key in TRACE_OPTIONS) != 1:
            raise ValueError(f"found {document.brief(value)}; expected a kind and a file, as in azure: FILE")
        ((kind, file),) = ((key, file) for key, file in value.items() if key not in TRACE_OPTIONS)
        if kind != AUTO and not FORMATS.knows(str(kind)):
            raise UnknownKeyError(str(kind), [AUTO, *FORMATS.names()])
        if kind not in (AUTO, *FORMATS):
            FORMATS.find(str(kind))
        if not isinstance(file, str) or not file:
            raise ValueError(f"found {document.brief(file)} as the file; expected its name")
        place = os.path.abspath((info.context or {}).get("folder", Path()) / Path(file).expanduser())
        if not isinstance(value.get("replay_throttled", False), bool):
            raise ValueError(
                f"found replay_throttled: {document.brief(value['replay_throttled'])}; expected true or false"
            )
        if "only" in value:
            value = {**value, "only": filters(value["only"])}
        return {kind: place, **{key: value[key] for key in TRACE_OPTIONS if key in value}}

    @field_validator("merge", mode="before")
    @classmethod
    def parts(cls, value: object, info: ValidationInfo) -> object:
        """A workload for each name."""
        if not isinstance(value, dict) or not value:
            raise ValueError(f"found {document.brief(value)}; expected workloads by name, as in a: {{trace: ...}}")
        parts = {}
        for name, part in value.items():
            try:
                parts[str(name)] = cls.model_validate(part, context=info.context)
            except ValidationError as error:
                raise ValueError(f"{name}.{complaint(error, cls, {})}") from None
        return parts

    @field_validator("between")
    @classmethod
    def in_order(cls, value: tuple[int, int] | None) -> tuple[int, int] | None:
        """A start and a later end."""
        if value and value[0] >= value[1]:
            raise ValueError(f"ends at {units.text(value[1])}; expected later than {units.text(value[0])}")
        return value

    @model_validator(mode="after")
    def one_source(self) -> Self:
        """Exactly one source, and one order of transforms."""
        given = [name for name in SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise ValueError(f"found {found}; expected exactly one of trace, synthetic, requests and merge")
        fixed = [name for name in ("between", "first") if getattr(self, name) is not None]
        fixed += ["scale_rate"] if self.scale_rate != 1 else []
        if self.transforms is not None and fixed:
            raise ValueError(f"found {fixed[0]} beside transforms; expected it in their list, where it takes effect")
        if self.ignore_eos and self.max_output is not None:
            raise ValueError("found max_output beside ignore_eos, with which every limit is the request's output")
        return self
