"""The parts of a scenario file: workload, engine, cost, policy and objectives, each checked on its own.

Knows no policy and no synthetic distribution by name: their own packages check those parts when a scenario
is parsed. Reads no file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_serializer, model_validator

from slotstep import document, units
from slotstep.fields import (
    Coefficient,
    Count,
    Label,
    Positive,
    Section,
    Time,
    Truth,
    UnknownKeyError,
    sequence,
)
from traces.registry import FORMATS

SOURCES = ("trace", "synthetic", "requests")


class RequestLine(Section):
    """One request written in the scenario."""

    id: Label | None = None
    arrival: Time = 0
    prompt: Count = 1
    output: Count
    tenant: Label = "default"
    max_output: Count | None = None


class Workload(Section):
    """Requests from exactly one source, and what is done to them.

    In this order, whatever the source: `between` in the source's own time, `first` of what is left,
    `scale_rate` (2 brings them twice as fast), and `max_output` for requests that declare no limit.
    """

    trace: dict[str, str] | None = None
    synthetic: dict[str, Any] | None = None
    requests: Annotated[tuple[RequestLine, ...], BeforeValidator(sequence)] | None = None
    between: Annotated[tuple[Time, Time], BeforeValidator(sequence)] | None = None
    first: Count | None = None
    scale_rate: Positive = 1.0
    max_output: Count | None = None

    @field_validator("trace", mode="before")
    @classmethod
    def place_trace(cls, value: object, info: ValidationInfo) -> object:
        """One known kind and its file, made absolute against the scenario's folder."""
        if not isinstance(value, dict) or len(value) != 1:
            raise ValueError(f"found {document.brief(value)}; expected a kind and a file, as in azure: FILE")
        ((kind, file),) = value.items()
        if kind not in FORMATS:
            raise UnknownKeyError(str(kind), list(FORMATS))
        if not isinstance(file, str) or not file:
            raise ValueError(f"found {document.brief(file)} as the file; expected its name")
        return {kind: os.path.abspath((info.context or {}).get("folder", Path()) / Path(file).expanduser())}

    @field_validator("between")
    @classmethod
    def in_order(cls, value: tuple[int, int] | None) -> tuple[int, int] | None:
        """A start and a later end."""
        if value and value[0] >= value[1]:
            raise ValueError(f"ends at {units.text(value[1])}; expected later than {units.text(value[0])}")
        return value

    @model_validator(mode="after")
    def one_source(self) -> Self:
        """Exactly one source."""
        given = [name for name in SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise ValueError(f"found {found}; expected exactly one of trace, synthetic and requests")
        return self


class Engine(Section):
    """The engine: its slots, its memory, its discipline. Admission defaults to what the mode can do.

    A static batch is bound by slots and pages alone: token_budget and chunked say nothing of it.
    """

    slots: Count = 64
    token_budget: Count = 2048
    page_size: Count = 16
    pages: Count = 8192
    batching: Literal["continuous", "static"] = "continuous"
    evict: Literal["before", "after"] = "before"
    harvest: Literal["step", "next"] = "step"
    memory: Literal["paged", "contiguous"] = "paged"
    admission: Literal["optimistic", "reserve"] = "optimistic"
    chunked: Truth = True
    macro: Truth = True

    @model_validator(mode="before")
    @classmethod
    def default_admission(cls, value: object) -> object:
        """Static batching and contiguous memory reserve; say so where the scenario does not."""
        if not isinstance(value, dict):
            return value
        reserves = value.get("batching") == "static" or value.get("memory") == "contiguous"
        return {"admission": "reserve" if reserves else "optimistic", **value}

    @model_validator(mode="after")
    def consistent(self) -> Self:
        """No setting is accepted that the mode would ignore."""
        if self.harvest == "next" and self.evict != "after":
            raise ValueError("harvest: next needs evict: after")
        if self.batching == "static" and self.evict != "before":
            raise ValueError("evict: after needs batching: continuous (a static batch ends as one)")
        if self.admission != "reserve" and self.batching == "static":
            raise ValueError("batching: static needs admission: reserve")
        if self.admission != "reserve" and self.memory == "contiguous":
            raise ValueError("memory: contiguous needs admission: reserve")
        return self


class Affine(Section):
    """A step costs the sum of its parts; in nanoseconds."""

    base: Coefficient = 0.0
    per_sequence: Coefficient = 0.0
    per_context_token: Coefficient = 0.0
    per_prefill_token: Coefficient = 0.0
    per_chunk_work: Coefficient = 0.0
    per_page: Coefficient = 0.0
    per_copied_token: Coefficient = 0.0
    host: Coefficient = 0.0


class Roofline(Section):
    """A step costs the slower of its weights and its arithmetic, and its attention; in nanoseconds."""

    weight_pass: Coefficient = 0.0
    per_token: Coefficient = 0.0
    per_context_token: Coefficient = 0.0
    per_chunk_work: Coefficient = 0.0
    per_sequence: Coefficient = 0.0
    per_page: Coefficient = 0.0
    per_copied_token: Coefficient = 0.0
    host: Coefficient = 0.0


class Cost(Section):
    """What a step costs: exactly one kind."""

    unit: Time | None = None
    affine: Affine | None = None
    roofline: Roofline | None = None

    @model_validator(mode="after")
    def one_kind(self) -> Self:
        """Exactly one kind."""
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"found {' and '.join(given) or 'none'}; expected one of unit, affine and roofline")
        return self


class PolicyChoice(Section):
    """A policy's name and its options as written; in YAML `fcfs` or `{sjf: {error: 0.5}}`."""

    name: Label
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def short_form(cls, value: object) -> object:
        """From a name, or one name with its options."""
        if isinstance(value, dict) and len(value) == 1:
            ((name, options),) = value.items()
            if options is None or isinstance(options, dict):
                return {"name": name, "options": options or {}}
        elif isinstance(value, str) and value:
            return {"name": value}
        raise ValueError(f"found {document.brief(value)}; expected a policy, or one with its options")

    @model_serializer
    def short(self) -> str | dict[str, Any]:
        """To the form that `short_form` reads."""
        return {self.name: self.options} if self.options else self.name


class Objectives(Section):
    """What a request has to meet to count as good; none is set unless given."""

    ttft: Time | None = None
    tpot: Time | None = None
    e2e: Time | None = None
    wait: Time | None = None
    itl: Time | None = None
