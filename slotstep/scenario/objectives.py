"""The objectives of a scenario, and its measuring window."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from sim.accounting.objectives import Since
from slotstep.scenario import units
from slotstep.scenario.fields import Section, Time


class Objectives(Section):
    """Latency limits that a request has to meet, and the instant from which latencies count; unset by default."""

    ttft: Time | None = None
    tpot: Time | None = None
    e2e: Time | None = None
    wait: Time | None = None
    itl: Time | None = None
    since: Since = Field(default="wanted", alias="from")

    @property
    def limits(self) -> dict[str, int]:
        """The limits that are set, by name, in ns."""
        return self.model_dump(exclude_none=True, exclude={"since"})


class Measure(Section):
    """The measuring window, whose metrics are reported beside those of the whole run."""

    begin: Time = Field(default=0, alias="from")
    end: Time | None = Field(default=None, alias="to")

    @model_validator(mode="after")
    def some_time(self) -> Self:
        """Ends after it begins."""
        if self.end is not None and self.end <= self.begin:
            begin, end = units.text(self.begin), units.text(self.end)
            raise ValueError(f"found from {begin} to {end}; expected an end after the beginning")
        return self
