"""Validation errors of pydantic as one line that names the key, what was found and what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from slotstep.scenario.document import brief
from slotstep.scenario.fields import UnknownKeyError


def complaint(error: ValidationError, model: type[BaseModel], spelling: Mapping[str, str]) -> str:
    """The first problem in `error` as one line, unknown keys first: `engine.slots: found ...`.

    spelling  dotted keys that were given under another name, with that name
    """
    problem = min(error.errors(include_url=False), key=lambda found: found["type"] != "extra_forbidden")
    path = problem["loc"]
    if problem["type"] == "extra_forbidden":
        return unknown_key(path[:-1], str(path[-1]), keys(model, path[:-1]))
    cause = problem.get("ctx", {}).get("error")
    if isinstance(cause, UnknownKeyError):
        return unknown_key(path, cause.key, cause.known)
    words = str(cause) if cause else expectation(problem, keys(model, path))
    key = dotted(path)
    return f"{spelling.get(key, key)}: {words}" if path else words


def expectation(problem: ErrorDetails, known: Sequence[str]) -> str:
    """What was found and what was expected, for the errors that pydantic raises itself."""
    if problem["type"] == "missing":
        return "missing"
    found = brief(problem["input"])
    if problem["type"] == "model_type":
        return f"found {found}; expected a mapping with keys such as {known[0]}"
    if problem["type"] == "literal_error":
        return f"found {found}; expected {problem['ctx']['expected']}"
    if problem["type"] == "dict_type":
        return f"found {found}; expected a mapping"
    return f"found {found}; {' '.join(problem['msg'].split())}"


def unknown_key(section: Sequence[int | str], key: str, known: Iterable[str]) -> str:
    """The message for an unknown key of `section`, with the nearest known key or all of them."""
    known = list(known)
    nearest = difflib.get_close_matches(key, known, n=1)
    if nearest:
        return f"{dotted([*section, key])}: unknown key; did you mean {dotted([*section, nearest[0]])}?"
    return f"{dotted([*section, key])}: unknown key; known are {', '.join(known)}"


def dotted(path: Iterable[int | str]) -> str:
    """The key of a value as `--set` takes it."""
    return ".".join(str(part) for part in path)


def keys(model: type[BaseModel], path: Sequence[int | str]) -> list[str]:
    """The keys of the section at `path` below `model`; none if there is no section."""
    here: type[BaseModel] | None = model
    for part in path:
        if here is not None and isinstance(part, str):
            field = here.model_fields.get(part)
            here = section_in(field.annotation) if field else None
    return [field.alias or name for name, field in here.model_fields.items()] if here else []


def section_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field's annotation holds, itself, optional, or in a tuple."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for inner in get_args(annotation) if (model := section_in(inner))), None)
