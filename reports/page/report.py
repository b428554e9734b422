"""The content of a report: runs of the same requests, and findings of a sweep, replications or a search for capacity.

`slotstep.report_input` reads it from the folders that `--out` wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

SECOND = 10**9


@dataclass(frozen=True)
class Run:
    """One run under the name that figures and tables give it.

    `summary` is the object that `--json` prints; `requests`, `steps` and `stays` are the tables requests.parquet,
    steps.parquet and slots.parquet of `--out`. `scenario` is the resolved scenario as YAML, `profile` the profile of
    the cost as YAML, if it has one.
    """

    name: str
    summary: Mapping[str, Any]
    requests: pd.DataFrame
    steps: pd.DataFrame
    stays: pd.DataFrame
    scenario: str
    profile: str | None = None

    @property
    def replicas(self) -> int:
        """The number of engines."""
        return len(self.summary["replicas"])

    @property
    def engine_slots(self) -> Sequence[int]:
        """The number of slots of each engine."""
        return [int(replica["slots"]) for replica in self.summary["replicas"]]

    @property
    def slots(self) -> int:
        """The number of slots of all engines."""
        return sum(self.engine_slots)

    @property
    def profiles(self) -> Sequence[Mapping[str, Any]]:
        """The profiles of its costs: name, digest, and the share of steps outside the measured range."""
        one = self.summary["profile"]
        several: Sequence[Mapping[str, Any]] = self.summary.get("profiles") or ([one] if one else [])
        return several

    @property
    def begin(self) -> int:
        """The instant at which its first request was queued, in nanoseconds."""
        queued = self.requests["queued_ns"].dropna()
        return int(queued.min()) if len(queued) else 0

    @property
    def end(self) -> int:
        """The instant at which its last request or step ended, in nanoseconds."""
        return self.begin + round(float(self.summary["makespan_s"]) * SECOND)


@dataclass(frozen=True)
class Report:
    """A title, runs of the same requests, findings, and remarks on what the numbers leave out."""

    title: str
    runs: Sequence[Run]
    findings: Sequence[Finding] = ()
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class Curve:
    """A chart of a finding: column `up` over column `across`, a line per value of column `split` ("": one line).

    `low` and `high` are the columns of the bounds of its interval ("": none). `level` is the value at which a
    horizontal line is drawn.
    """

    across: str
    up: str
    split: str = ""
    low: str = ""
    high: str = ""
    level: float | None = None


@dataclass(frozen=True)
class Finding:
    """A table with its title, sentences on it, and charts of its columns; `hidden` columns are only drawn."""

    title: str
    frame: pd.DataFrame
    sentences: Sequence[str] = ()
    curves: Sequence[Curve] = ()
    hidden: Sequence[str] = ()
