"""The baseline file: checks by name, each a scenario and the expected metrics of its run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError

from slotstep.experiments.checks.expected import metrics
from slotstep.scenario import document
from slotstep.scenario.fields import Label, Section, sequence
from slotstep.scenario.validation_errors import complaint
from traces.errors import BadInput


class Check(Section):
    """One scenario file and the expected metrics of its run."""

    scenario: Label
    policy: Label | None = None
    set: Annotated[tuple[Label, ...], BeforeValidator(sequence)] = ()
    metrics: Annotated[dict[str, Any], BeforeValidator(metrics)]


class Baseline(Section):
    """Checks by name."""

    checks: dict[Label, Check]


def read(path: Path) -> Baseline:
    """The baseline in a file. Raises BadInput, one line with file and key, for an invalid one."""
    found = document.read(path)
    try:
        baseline = Baseline.model_validate(found)
    except ValidationError as error:
        raise BadInput(f"{path}: {complaint(error, Baseline, {})}") from None
    if not baseline.checks:
        raise BadInput(f"{path}: checks: none; expected at least one, by name")
    return baseline
