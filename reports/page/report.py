"""What a page tells of: one run or several of the same requests, and what was made of a folder's files.

Knows no file; `slotstep.report_input.folder` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

SECOND = 10**9


@dataclass(frozen=True)
class Run:
    """One run under the name that its figures give it: `summary` as `--json` prints it, the tables of `--out`.

    `scenario` is the resolved scenario as text, `profile` the text of the cost's profile if it has one.
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
        """How many engines there were."""
        return len(self.summary["replicas"])

    @property
    def engine_slots(self) -> Sequence[int]:
        """Slots of each engine."""
        return [int(replica["slots"]) for replica in self.summary["replicas"]]

    @property
    def slots(self) -> int:
        """Slots of all engines together."""
        return sum(self.engine_slots)

    @property
    def profiles(self) -> Sequence[Mapping[str, Any]]:
        """The profiles that its costs come from: name, digest, and what of the run lies beyond them."""
        one = self.summary["profile"]
        several: Sequence[Mapping[str, Any]] = self.summary.get("profiles") or ([one] if one else [])
        return several

    @property
    def begin(self) -> int:
        """When its first request was queued, in nanoseconds."""
        queued = self.requests["queued_ns"].dropna()
        return int(queued.min()) if len(queued) else 0

    @property
    def end(self) -> int:
        """When its last request or step ended, in nanoseconds."""
        return self.begin + round(float(self.summary["makespan_s"]) * SECOND)


@dataclass(frozen=True)
class Report:
    """Runs side by side, and beside them what a sweep or a search for capacity found, as named tables."""

    title: str
    runs: Sequence[Run]
    findings: Sequence[Finding] = ()
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class Curve:
    """Columns of a finding's table to be drawn: `up` over `across`, a line for each value of `split` ("": one).

    `low` and `high` are the columns of an interval around it; "" without. `level`: where a line across is drawn.
    """

    across: str
    up: str
    split: str = ""
    low: str = ""
    high: str = ""
    level: float | None = None


@dataclass(frozen=True)
class Finding:
    """A table under its title, what is to be said of it, and curves of its columns; `hidden` ones are only drawn."""

    title: str
    frame: pd.DataFrame
    sentences: Sequence[str] = ()
    curves: Sequence[Curve] = ()
    hidden: Sequence[str] = ()
