"""The step cost of a scenario: one of five kinds, durations in nanoseconds.

Reads no file: a profile is found when a scenario is loaded.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, ValidationInfo, field_validator, model_validator

from calibrate.profiles.forms import FORMS
from slotstep.scenario.fields import (
    Choice,
    Coefficient,
    Count,
    Label,
    Positive,
    Section,
    Seed,
    Share,
    Time,
    sequence,
)

KINDS = ("unit", "affine", "roofline", "profile", "shape", "form")
TERMS = ("host", "overlapped_host", "raggedness", "graph_sizes")
PROFILE_ENDINGS = (".yaml", ".yml")


def is_file(profile: str) -> bool:
    """Whether a profile is given as a file, told by its ending, and not as a shipped name."""
    return profile.endswith(PROFILE_ENDINGS)


class Affine(Section):
    """Coefficients of a step cost that is a sum; in nanoseconds."""

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
    prompt_launches: Coefficient = 0.0
    per_mixed_context_token: Coefficient = 0.0
    per_tail_token: Coefficient = 0.0
    unsplit: Seed = 0
    raggedness: Share = 0.0


class Roofline(Section):
    """Coefficients of a step cost that is a maximum of weights and arithmetic, plus attention; in nanoseconds."""

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
    prompt_launches: Coefficient = 0.0
    per_mixed_context_token: Coefficient = 0.0
    per_tail_token: Coefficient = 0.0
    unsplit: Seed = 0
    raggedness: Share = 0.0
    graph_sizes: Annotated[tuple[Count, ...], BeforeValidator(sequence)] = ()


class Efficiencies(Section):
    """Attained shares of the data sheet; defaults are those of `calibrate.hardware.attained`."""

    weights: Positive | None = None
    cache: Positive | None = None
    arithmetic: Positive | None = None
    attention: Positive | None = None
    link: Positive | None = None


class ShapeCost(Section):
    """A step cost computed from a model's shape and a device's data sheet, with the host time of an engine."""

    model: Label
    device: Label
    tensor_parallel: Count = 1
    dtype: Label | None = None
    kv_dtype: Label | None = None
    context: Positive | None = None
    engine: Label = "vllm"
    version: Label | None = None
    scheduling: Literal["asynchronous", "synchronous"] | None = None
    efficiency: Efficiencies = Efficiencies()

    @field_validator("model")
    @classmethod
    def place_model(cls, value: str, info: ValidationInfo) -> str:
        """Makes a config.json absolute against the scenario's folder; a name stays."""
        if not value.endswith(".json"):
            return value
        folder: Path = (info.context or {}).get("folder", Path())
        return os.path.abspath(folder / Path(value).expanduser())


class Cost(Section):
    """The step cost: exactly one kind.

    profile   the name of a shipped profile, or a file
    form      any cost form by name, with its coefficients
    sha256    the digest that the content of the profile has to have

    Beside `profile` and `shape`, the terms in TERMS replace those of the profile.
    """

    unit: Time | None = None
    affine: Affine | None = None
    roofline: Roofline | None = None
    profile: Label | None = None
    shape: ShapeCost | None = None
    form: Choice | None = None
    host: Coefficient | None = None
    overlapped_host: Coefficient | None = None
    raggedness: Share | None = None
    graph_sizes: Annotated[tuple[Count, ...] | None, BeforeValidator(sequence)] = None
    sha256: Label | None = None

    @model_validator(mode="before")
    @classmethod
    def named_form(cls, value: object) -> object:
        """Moves a form that has no key of its own, such as `module:Class`, to `form`."""
        if not isinstance(value, dict):
            return value
        named = [key for key in value if key not in cls.model_fields and FORMS.knows(str(key))]
        if len(named) != 1 or "form" in value:
            return value
        rest = {key: value[key] for key in value if key not in named}
        return {**rest, "form": {named[0]: value[named[0]] or {}}}

    @field_validator("profile")
    @classmethod
    def place_profile(cls, value: str | None, info: ValidationInfo) -> str | None:
        """Makes a profile file absolute against the scenario's folder; a name stays."""
        if value is None or not is_file(value):
            return value
        folder: Path = (info.context or {}).get("folder", Path())
        return os.path.abspath(folder / Path(value).expanduser())

    @model_validator(mode="after")
    def one_kind(self) -> Self:
        """Exactly one kind, and beside it only keys that apply to it."""
        given = [name for name in KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"found {' and '.join(given) or 'none'}; expected one of {', '.join(KINDS[:-1])} and {KINDS[-1]}"
            )
        for key in (*TERMS, "sha256"):
            if self.profile is None and self.shape is None and getattr(self, key) is not None:
                raise ValueError(f"{key} needs a profile or a shape")
        return self
