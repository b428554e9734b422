"""The parts of a scenario file but the engine: workload, cost, policy and objectives, each checked on its own.

Knows no policy and no synthetic distribution by name: their own packages check those parts when a scenario
is parsed. Reads no file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from sim.accounting.objectives import Since
from slotstep.runs import profiles
from slotstep.runs.workload import AUTO
from slotstep.scenario import document, units
from slotstep.scenario.clients import Patience
from slotstep.scenario.fields import (
    Block,
    Coefficient,
    Count,
    Label,
    Positive,
    Section,
    Seed,
    Share,
    Time,
    UnknownKeyError,
    Whole,
    sequence,
)
from traces.reading.registry import FORMATS

TRACE_OPTIONS = ("run", "map")
SOURCES = ("trace", "synthetic", "requests", "merge")
KINDS = ("unit", "affine", "roofline", "profile", "shape")
TERMS = ("host", "overlapped_host", "raggedness", "graph_sizes")


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
    cancel_after: Patience | None = None
    cancel_tokens: Count | None = None
    queue_timeout: Patience | None = None
    timeout: Patience | None = None
    session: Label | None = None
    think: Time | None = None

    @model_validator(mode="before")
    @classmethod
    def as_long_as_it_says(cls, value: object) -> object:
        """A prompt whose length is not given has that of its content, or is one token."""
        if not isinstance(value, dict):
            return value
        content = value.get("tokens", value.get("blocks"))
        length = len(content) if isinstance(content, list | tuple) else 1
        if isinstance(size := value.get("block_size"), int):
            length *= size
        return {"prompt": length, **value}


class Workload(Section):
    """Requests from exactly one source, and what is done to them.

    Either `transforms`, a list applied in its own order; or, in this order, `between` in the source's own time,
    `first` of what is left, and `scale_rate` (2 brings them twice as fast). Last of all `max_output`, for
    requests that declare no limit. The parts of a `merge` are workloads too, each a tenant of its name.
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

    @field_validator("trace", mode="before")
    @classmethod
    def place_trace(cls, value: object, info: ValidationInfo) -> object:
        """One known kind and its file, made absolute against the scenario's folder; perhaps a run or a map."""
        if not isinstance(value, dict) or len(value) - sum(key in value for key in TRACE_OPTIONS) != 1:
            raise ValueError(f"found {document.brief(value)}; expected a kind and a file, as in azure: FILE")
        ((kind, file),) = ((key, file) for key, file in value.items() if key not in TRACE_OPTIONS)
        if kind not in (AUTO, *FORMATS):
            raise UnknownKeyError(str(kind), [AUTO, *FORMATS])
        if not isinstance(file, str) or not file:
            raise ValueError(f"found {document.brief(file)} as the file; expected its name")
        place = os.path.abspath((info.context or {}).get("folder", Path()) / Path(file).expanduser())
        return {kind: place, **{key: value[key] for key in TRACE_OPTIONS if key in value}}

    @field_validator("merge", mode="before")
    @classmethod
    def parts(cls, value: object, info: ValidationInfo) -> object:
        """A workload for each name."""
        from slotstep.scenario.validation_errors import complaint

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
    per_swapped_token: Coefficient = 0.0
    host: Coefficient = 0.0
    overlapped_host: Coefficient = 0.0
    raggedness: Share = 0.0


class Roofline(Section):
    """A step costs the slower of its weights and its arithmetic, and its attention; in nanoseconds."""

    weight_pass: Coefficient = 0.0
    per_token: Coefficient = 0.0
    per_chunk: Coefficient = 0.0
    per_context_token: Coefficient = 0.0
    per_chunk_work: Coefficient = 0.0
    per_sequence: Coefficient = 0.0
    per_page: Coefficient = 0.0
    per_copied_token: Coefficient = 0.0
    per_swapped_token: Coefficient = 0.0
    host: Coefficient = 0.0
    overlapped_host: Coefficient = 0.0
    raggedness: Share = 0.0
    graph_sizes: Annotated[tuple[Count, ...], BeforeValidator(sequence)] = ()


class Efficiencies(Section):
    """Shares of a data sheet that an engine gets; what is not given is as in `calibrate.profiles.analytic`."""

    weights: Positive | None = None
    cache: Positive | None = None
    arithmetic: Positive | None = None
    attention: Positive | None = None
    link: Positive | None = None


class ShapeCost(Section):
    """A step's cost from a model's sizes and a device's data sheet alone."""

    model: Label
    device: Label
    tensor_parallel: Count = 1
    dtype: Label | None = None
    kv_dtype: Label | None = None
    context: Positive | None = None
    efficiency: Efficiencies = Efficiencies()

    @field_validator("model")
    @classmethod
    def place_model(cls, value: str, info: ValidationInfo) -> str:
        """A name as it is; a config.json, made absolute against the scenario's folder."""
        if not value.endswith(".json"):
            return value
        folder: Path = (info.context or {}).get("folder", Path())
        return os.path.abspath(folder / Path(value).expanduser())


class Cost(Section):
    """What a step costs: exactly one kind.

    Beside `profile`, a shipped profile's name or a file, and beside `shape`: the terms in TERMS take the place of
    those that it has, and `sha256` is what its content has to have.
    """

    unit: Time | None = None
    affine: Affine | None = None
    roofline: Roofline | None = None
    profile: Label | None = None
    shape: ShapeCost | None = None
    host: Coefficient | None = None
    overlapped_host: Coefficient | None = None
    raggedness: Share | None = None
    graph_sizes: Annotated[tuple[Count, ...] | None, BeforeValidator(sequence)] = None
    sha256: Label | None = None

    @field_validator("profile")
    @classmethod
    def place_profile(cls, value: str | None, info: ValidationInfo) -> str | None:
        """A name as it is; a file, known by its ending, made absolute against the scenario's folder."""
        if value is None or not profiles.is_file(value):
            return value
        folder: Path = (info.context or {}).get("folder", Path())
        return os.path.abspath(folder / Path(value).expanduser())

    @model_validator(mode="after")
    def one_kind(self) -> Self:
        """Exactly one kind, and beside it only what it takes."""
        given = [name for name in KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"found {' and '.join(given) or 'none'}; expected one of {', '.join(KINDS[:-1])} and {KINDS[-1]}"
            )
        for key in (*TERMS, "sha256"):
            if self.profile is None and self.shape is None and getattr(self, key) is not None:
                raise ValueError(f"{key} needs a profile or a shape")
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


class Measure(Section):
    """The part of a run whose figures are given beside those of the whole."""

    begin: Time = Field(default=0, alias="from")
    end: Time | None = Field(default=None, alias="to")

    @model_validator(mode="after")
    def some_time(self) -> Self:
        """It ends after it begins."""
        if self.end is not None and self.end <= self.begin:
            begin, end = units.text(self.begin), units.text(self.end)
            raise ValueError(f"found from {begin} to {end}; expected an end after the beginning")
        return self


class Objectives(Section):
    """What a request has to meet to count as good, counted from when; none is set unless given."""

    ttft: Time | None = None
    tpot: Time | None = None
    e2e: Time | None = None
    wait: Time | None = None
    itl: Time | None = None
    since: Since = Field(default="wanted", alias="from")

    @property
    def limits(self) -> dict[str, int]:
        """Those that are set, by name, in ns."""
        return self.model_dump(exclude_none=True, exclude={"since"})
