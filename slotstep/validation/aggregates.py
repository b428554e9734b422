"""Published statistics by load, without requests, compared with simulations.

They are in a YAML file beside a scenario: the settings of each load, and a part of a run's summary with measured
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, field_validator

from slotstep.runs.loading import parse
from slotstep.runs.resolution import with_transforms
from slotstep.runs.simulation import run
from slotstep.scenario import document
from slotstep.scenario.fields import Label, Positive, Section, UnknownKeyError, number, sequence
from slotstep.scenario.schema import Scenario
from slotstep.scenario.units import exact
from slotstep.scenario.validation_errors import complaint, dotted
from traces.errors import BadInput, is_number

Numbers = dict[str, Any]
"""Numbers by key, nested as in a summary."""

AT_CLIENT = ("ttft_s", "e2e_s")
"""Latencies that include the client delay when measured at the client; a summary excludes it."""
COUNTS = ("n", "censored_share")
"""Statistics of a latency that are not times."""
SAMPLE = {
    "workload": {"requests": [{"tokens": [1, 2], "output": 3}]},
    "engine": {"prefix_cache": True},
    "cost": {"unit": "1ns"},
    "objectives": {"e2e": "1s"},
}
"""A scenario whose summary has every number that a summary can have."""

CLOSED = "set: {clients.closed.clients: 8}"


class Load(Section):
    """Statistics at one load, which is made by `rate`, requests per second, and by `set`, keys of the scenario."""

    name: Label | None = None
    rate: Positive | None = None
    set: dict[str, Any] = Field(default_factory=dict)
    statistics: dict[str, Any]

    @field_validator("statistics")
    @classmethod
    def as_in_a_summary(cls, value: dict[str, Any]) -> Numbers:
        """Numbers, times in seconds."""
        return checked(value, known(), ())

    @property
    def title(self) -> str:
        """The name of the load, or else its settings."""
        made = [] if self.rate is None else [f"{self.rate:g} requests/s"]
        made += [f"{key}={document.brief(value)}" for key, value in self.set.items()]
        return self.name or ", ".join(made) or "the scenario as it is"


class Aggregates(Section):
    """Statistics by load; `set` applies to all loads.

    measured_at  whether TTFT and E2E count from sending at the client, or from queue entry at the engine
    """

    source: Label | None = None
    measured_at: Literal["client", "engine"] = "client"
    set: dict[str, Any] = Field(default_factory=dict)
    loads: Annotated[tuple[Load, ...], BeforeValidator(sequence)]

    @field_validator("loads")
    @classmethod
    def any_load(cls, value: tuple[Load, ...]) -> tuple[Load, ...]:
        """At least one."""
        if not value:
            raise ValueError("found an empty list; expected a load with its statistics")
        return value


@dataclass(frozen=True)
class Compared:
    """One load: its title, and the comparison as plain values."""

    name: str
    content: dict[str, Any]


def checked(given: Mapping[Any, Any], like: Mapping[str, Any], path: tuple[str, ...]) -> Numbers:
    """The given numbers, each read by the unit of its key. Raises ValueError for a key that is not in a summary."""
    if not given:
        where = f"{dotted(path)}: " if path else ""
        raise ValueError(f"{where}found nothing; expected keys such as {next(iter(like))}")
    found: Numbers = {}
    for key, value in given.items():
        here = (*path, str(key))
        if key not in like:
            raise UnknownKeyError(dotted(here), [dotted((*path, each)) for each in like])
        try:
            if isinstance(like[key], Mapping) != isinstance(value, Mapping):
                expected = f"keys such as {next(iter(like[key]))}" if isinstance(like[key], Mapping) else "a number"
                raise ValueError(f"found {document.brief(value)}; expected {expected}")
            read = seconds if is_time(here) else number
            found[key] = read(value) if not isinstance(value, Mapping) else None
        except ValueError as error:
            raise ValueError(f"{dotted(here)}: {error}") from None
        if isinstance(value, Mapping):
            found[key] = checked(value, like[key], here)
    return found


def is_time(path: Sequence[str]) -> bool:
    """Whether a number of the summary is in seconds: of a latency, or the makespan."""
    return path[0].endswith("_s") and not path[0].endswith("_per_s") and path[-1] not in COUNTS


def seconds(value: object) -> float:
    """A time in seconds, from a number of seconds or from text with a unit."""
    if isinstance(value, str):
        return float(exact(value)) / 1e9
    found = float(number(value, "a number of seconds, or text such as 5ms"))
    if found < 0:
        raise ValueError(f"found {document.brief(value)}; expected a time of at least 0")
    return found


@cache
def known() -> Numbers:
    """The numbers of a summary by their keys, without tenants and replicas."""
    summary = run(parse(SAMPLE)).summary
    return numbers({key: value for key, value in summary.items() if key not in ("seed", "tenants")})


def numbers(content: Mapping[str, Any]) -> Numbers:
    """The entries that are numbers, at any depth."""
    nested = {key: numbers(value) if isinstance(value, Mapping) else value for key, value in content.items()}
    return {key: value for key, value in nested.items() if isinstance(value, dict) or is_number(value)}


def read(path: Path) -> Aggregates:
    """The statistics in a file. Raises BadInput, one line with file and key, for an invalid file."""
    try:
        return Aggregates.model_validate(document.read(path))
    except ValidationError as error:
        raise BadInput(f"{path}: {complaint(error, Aggregates, {})}") from None


def runs(path: Path, scenario: Path, settings: Sequence[str] = ()) -> list[Compared]:
    """Every load of a file of statistics, compared with a simulation of it.

    settings  overrides that are applied before those of the file

    Raises BadInput for an invalid statistics or scenario file.
    """
    given = read(path)
    loads = [(load, of_load(load, given, path, scenario, settings)) for load in given.loads]
    return [compared(load, loaded, given.measured_at == "client") for load, loaded in loads]


def of_load(load: Load, given: Aggregates, path: Path, scenario: Path, settings: Sequence[str]) -> Scenario:
    """The scenario at a load."""
    mapping = document.read(scenario)
    document.override(mapping, settings)
    for more in (given.set, load.set):
        document.override_with(mapping, more)
    if load.rate is not None and isinstance(mapping.get("workload"), dict):
        mapping["workload"] = with_transforms(mapping["workload"], [{"rate": load.rate}])
    of = f"{path}: {load.title}: {scenario}"
    loaded = parse(mapping, source=of, folder=scenario.parent, name=scenario.stem)
    if load.rate is not None and loaded.clients is not None and loaded.clients.closed is not None:
        raise BadInput(f"{of}: clients that wait for their answers have no rate; expected set, as in {CLOSED}")
    return loaded


def compared(load: Load, scenario: Scenario, at_client: bool) -> Compared:
    """A simulation of one load, compared with its statistics."""
    summary = run(scenario).summary
    away = scenario.clients.delay / 1e9 if scenario.clients is not None and at_client else 0.0
    content = {
        "run": load.title,
        **{key: summary[key] for key in ("scenario", "profile", "log_sha256", "requests", "queue_grows")},
        "metrics": side_by_side(load.statistics, summary, away),
    }
    return Compared(load.title, content)


def side_by_side(truth: Numbers, summary: Mapping[str, Any], away: float, path: tuple[str, ...] = ()) -> Numbers:
    """Each measured number with the predicted one and the relative error.

    A number that the run does not have is None, and so is an error relative to 0.
    """
    found: Numbers = {}
    for key, value in truth.items():
        here, said = (*path, key), summary.get(key)
        if isinstance(value, dict):
            found[key] = side_by_side(value, said if isinstance(said, Mapping) else {}, away, here)
            continue
        if said is not None and here[0] in AT_CLIENT and is_time(here):
            said += away
        error = said / value - 1 if said is not None and value else None
        found[key] = {"measured": value, "predicted": said, "error": error}
    return found
