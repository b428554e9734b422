"""Who got what: each tenant's service, how long its requests waited, and Jain's index over tenants.

Service is tokens: the prompt of every request that was admitted and the tokens it was given. A tenant's pace is
its service over the time that its requests spent in the system, in tokens per second.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from reports.page.report import SECOND, Run


def jain(values: Sequence[float]) -> float | None:
    """Jain's index, (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has everything; None without any.

    R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination, DEC TR-301, 1984.
    """
    shares = np.asarray(values, dtype=np.float64)
    squares = float((shares**2).sum())
    return float(shares.sum()) ** 2 / (len(shares) * squares) if squares else None


def tenants(run: Run) -> pd.DataFrame:
    """A row per tenant in order of its service: requests, finished, service, share, pace, waits, preemptions.

    A request that was never admitted has waited until it ended, or until the run did, and counts in `worst_wait_s`.
    """
    requests = run.requests
    queued = requests["queued_ns"].astype("float64")
    over = requests["ended_ns"].astype("float64").fillna(run.end)
    admitted = requests["admitted_ns"].notna()
    until = requests["admitted_ns"].astype("float64").where(admitted, over)
    found = pd.DataFrame(
        {
            "tenant": requests["tenant"],
            "requests": 1,
            "finished": (requests["status"] == "finished").astype(int),
            "service": requests["prompt"].where(admitted, 0) + requests["tokens"],
            "present_s": (over - queued) / SECOND,
            "wait_s": (until - queued) / SECOND,
            "preemptions": requests["preemptions"],
        }
    )
    grouped = found.groupby("tenant", sort=False)
    table = grouped[["requests", "finished", "service", "present_s", "preemptions"]].sum()
    table["share"] = table["service"] / max(table["service"].sum(), 1)
    table["pace"] = table["service"] / table["present_s"].where(table["present_s"] > 0)
    table["mean_wait_s"] = grouped["wait_s"].mean()
    table["worst_wait_s"] = grouped["wait_s"].max()
    return table.sort_values("service", ascending=False, kind="stable").reset_index()
