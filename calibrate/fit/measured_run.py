"""One measured run beside its simulation: the latencies of the same requests, and statistics of both.

Takes a frame of measurements and a function that simulates; reads no file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from calibrate.arrays import Floats
from sim.accounting.frames import of_each, requests_frame
from sim.cost.forms import Curve
from sim.log.events import EventLog
from sim.request import Nanoseconds

METRICS = ("ttft_s", "tpot_s", "e2e_s")
STATISTICS = ("mean", "p50", "p90", "p99")

Simulate = Callable[[Curve, Nanoseconds, int], Sequence[EventLog]]
"""(cost, delay, first): the logs, one a replica, of a run at this cost and delay, of its first requests only."""


@dataclass(frozen=True)
class MeasuredRun:
    """A measured run that can be simulated.

    name        what to call it
    measured    the requests that finished, in order of arrival: `id`, `rank` (place among all that were sent, from
                0), `prompt` and `output` (tokens), `sent_s` (from any zero), and as far as measured `ttft_s`,
                `tpot_s` and `e2e_s`, NaN where unknown
    requests    how many requests were sent in all
    simulate    simulates it
    at_client   whether latencies count from sending at the client, so that the delay to the engine is part of them;
                else they count from queue entry
    """

    name: str
    measured: pd.DataFrame
    requests: int
    simulate: Simulate
    at_client: bool = True

    @cached_property
    def known(self) -> tuple[str, ...]:
        """Which of METRICS were measured, of at least one request."""
        return tuple(name for name in METRICS if name in self.measured and self.measured[name].notna().any())

    def predicted(self, cost: Curve, delay: Nanoseconds, first: int | None = None) -> pd.DataFrame:
        """METRICS of the requests that finished in the simulation, by id, as they would have been measured."""
        frame = of_each(requests_frame, self.simulate(cost, delay, self.requests if first is None else first))
        frame = frame.loc[frame["status"] == "finished", ["id", *METRICS]].set_index("id")
        if self.at_client:
            frame[["ttft_s", "e2e_s"]] += delay / 1e9
        return frame

    def settled(self, first: int) -> pd.DataFrame:
        """The measured requests that had ended when the `first`-th was sent.

        A simulation of the first requests alone lacks the later ones, which slowed down the last of the first. The
        requests that had ended by then are not affected. Raises ValueError if the times of sending are unknown.
        """
        if first >= self.requests:
            return self.measured
        if self.measured["sent_s"].isna().all():
            raise ValueError(
                f"{self.name}: when its requests were sent is not known, so no part of them can be selected; "
                f"expected --first of at least {2 * self.requests}"
            )
        early = self.measured[self.measured["rank"] < first]
        cut = early["sent_s"].to_numpy(np.float64).max(initial=-np.inf)
        ended: pd.DataFrame = early[early["sent_s"] + early["e2e_s"] <= cut]
        return ended


def pair(measured: pd.DataFrame, predicted: pd.DataFrame, name: str) -> tuple[Floats, Floats]:
    """One metric, measured and predicted, of the requests that have both, in the order of the measured ones."""
    both = predicted[name].reindex(measured["id"]).to_numpy(np.float64)
    found = measured[name].to_numpy(np.float64)
    good = ~np.isnan(both) & ~np.isnan(found)
    return found[good], both[good]


def statistics(values: Floats) -> Floats:
    """STATISTICS of the values, which are not empty."""
    return np.array([values.mean(), *np.percentile(values, (50, 90, 99))])


def compared(measured: pd.DataFrame, predicted: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Statistics of both side by side: a row per metric and statistic, with the relative `error` of the prediction.

    `n` is the number of requests that have the metric in both. Metrics that no request has are left out.
    """
    rows = []
    for name in names:
        found, said = pair(measured, predicted, name)
        if len(found):
            for statistic, truth, forecast in zip(STATISTICS, statistics(found), statistics(said), strict=True):
                error = forecast / truth - 1 if truth else np.nan
                rows.append((name, statistic, len(found), truth, forecast, error))
    return pd.DataFrame(rows, columns=["metric", "statistic", "n", "measured", "predicted", "error"])
