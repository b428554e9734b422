"""What a page tells of: one run or several of the same requests, and what was made of a folder's files.

Knows no file; `slotstep.report_folder` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
        return max(1, len(self.summary["replicas"]))

    @property
    def slots(self) -> int:
        """Slots of all engines together; 0 if no step was run."""
        steps = int(self.summary["steps"])
        return self.replicas * int(self.summary["slot_steps"]["bought"]) // steps if steps else 0

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
class Story:
    """Runs side by side, and beside them what a sweep or a search for capacity found, as named tables."""

    title: str
    runs: Sequence[Run]
    findings: Sequence[Finding] = ()
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class Finding:
    """A table that is shown as it is, under its title, with a curve of it if `curve` names its axes.

    `curve` is (the column of x, the column of y, the column that tells lines apart or "").
    """

    title: str
    frame: pd.DataFrame
    sentences: Sequence[str] = ()
    curve: tuple[str, str, str] | None = None
    bounds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
