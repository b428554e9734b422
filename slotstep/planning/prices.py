"""Prices of GPUs, from a file that the user writes; none are shipped. `examples/prices.yaml` is a template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from slotstep.planning.candidates import gpus
from slotstep.scenario import document
from traces.errors import BadInput

HOURS = 730
"""Hours of a month: 365 days / 12."""


class PriceFile(BaseModel):
    """The file: a currency, and the price of a GPU for an hour."""

    model_config = ConfigDict(extra="forbid", strict=False)
    currency: Annotated[str, Field(min_length=1, max_length=12)]
    gpu_hour: Annotated[dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]], Field(min_length=1)]


@dataclass(frozen=True)
class Prices:
    """Prices by the name of a GPU, for an hour."""

    currency: str
    gpu_hour: Mapping[str, float]

    def month(self, gpu: str, count: int) -> float | None:
        """The price of so many GPUs for a month; None for a GPU without a price."""
        each = self.gpu_hour.get(gpu)
        return None if each is None else each * count * HOURS


def read(path: Path, planned: Sequence[str]) -> Prices:
    """The prices in a file. Raises BadInput, one line with file and key, and if no planned GPU has one."""
    content = document.read(path)
    try:
        found = PriceFile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        known = "" if first["type"] != "extra_forbidden" else "; expected currency and gpu_hour"
        raise BadInput(f"{path}: {key}: {first['msg'].lower()}{known}") from None
    priced = {}
    for name, price in found.gpu_hour.items():
        try:
            ((full,), _) = gpus([name])
        except BadInput as error:
            raise BadInput(f"{path}: gpu_hour.{str(error).removeprefix('--gpus ')}") from None
        if full in priced:
            raise BadInput(f"{path}: gpu_hour.{name}: {full} has a price already")
        priced[full] = price
    if not set(planned) & set(priced):
        raise BadInput(f"{path}: gpu_hour has no price of {', '.join(planned)}; found {', '.join(priced)}")
    return Prices(found.currency, priced)
