"""Service and waits of each tenant, and Jain's index over tenants.

The service of a tenant is the prompt tokens of its admitted requests plus the tokens they were given. Its service
rate is its service over the time that its requests spent in the system, in tokens/s.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from reports.page.report import SECOND, Run


def jain(values: Sequence[float]) -> float | None:
    """Jain's index, (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has everything; None if all are 0.

    R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination, DEC TR-301, 1984.
    """
    shares = np.asarray(values, dtype=np.float64)
    squares = float((shares**2).sum())
    return float(shares.sum()) ** 2 / (len(shares) * squares) if squares else None


def tenants(run: Run) -> pd.DataFrame:
    """A row per tenant, descending by service.

    Columns: `tenant`, `requests`, `finished`, `service` (tokens), `present_s` (time its requests spent in the
    system), `preemptions`, `share` (of the service of all), `service_rate` (tokens/s), `mean_wait_s`, `worst_wait_s`.
    A request that was never admitted waited until it ended, or until the end of the run.
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
    table["service_rate"] = table["service"] / table["present_s"].where(table["present_s"] > 0)
    table["mean_wait_s"] = grouped["wait_s"].mean()
    table["worst_wait_s"] = grouped["wait_s"].max()
    return table.sort_values("service", ascending=False, kind="stable").reset_index()
