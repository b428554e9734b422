"""Schedulers measured on one GPU, and the same predicted from a single one of the runs.

    python examples/a10g.py            the table of docs/a10g.md
    python examples/a10g.py --fit      fit the cost again, to the run under fcfs alone (a few minutes)

The runs are those of the virtual token counter's authors (Sheng et al., OSDI 2024): S-LoRA on LightLLM's kernels,
Llama-2-7B on an A10G. They are looked for in $SLOTSTEP_DATA/traces/gt_a10g_slora_vtc, by default ../shared/data.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markdown_table import print_head, print_row
from numpy.typing import NDArray
from scipy.optimize import minimize

import slotstep
from traces.reading import registry

Floats = NDArray[np.float64]

DATA = Path(os.environ.get("SLOTSTEP_DATA", "../shared/data")) / "traces" / "gt_a10g_slora_vtc"
ENGINE = {"preset": "s-lora"}
"""Decodes stand still in a prefill, which is tried after ten of them; the memory must hold the sum of the peaks."""
POOL, ADAPTER = 10_000, 32
"""Token positions of the memory pool, and those that an adapter of rank 8 takes in it while it is used."""
ADAPTERS = {"real": 8.8, "on_off_overload": 2}
"""The mean number of different adapters among the requests that run at once, in the runs under fcfs."""
COST = {"base": 25.89, "per_sequence": 0.3027, "per_context_token": 0.00106, "per_prefill_token": 0.1939}
"""Milliseconds; fitted to the run real_FCFS, together with CLIENT."""
UNITS = (1, 1, 1e-6, 1)
"""In which they are fitted: milliseconds, and nanoseconds for the third."""
CLIENT = 0.04911
"""Seconds of each request outside of steps: HTTP, tokenizer, adapter; fitted with the cost."""

RUNS: dict[str, str | dict[str, Any]] = {
    "real_FCFS": "fcfs",
    "real_VTC": "vtc",
    "real_VTC_oracle": {"vtc": {"prepay": True}},
    "real_LCF": {"vtc": {"lift": False}},
    "real_LShare_rpm20": {"tenant_quota": {"requests": 20}},
    "real_LShare_rpm5": {"tenant_quota": {"requests": 5}},
    "on_off_overload_FCFS": "fcfs",
    "on_off_overload_VTC": "vtc",
}
"""The policy that models the scheduler of each run."""

SCALES = (0.999, 1.0, 1.001)
"""Factors of the cost: a median depends on the order of service, which small changes of the cost alter."""
COLUMNS = (
    "run",
    "served",
    "predicted",
    "median TTFT",
    "predicted",
    "range",
    "",
    "p99 TTFT",
    "predicted",
    "range",
    "",
)


def main() -> None:
    """Print the table as Markdown, or the coefficients."""
    if not DATA.is_dir():
        sys.exit(f"no runs at {DATA.absolute()}; set SLOTSTEP_DATA to the folder of public data")
    if "--fit" in sys.argv[1:]:
        print(fitted())
        return
    print_head(COLUMNS)
    for run, policy in RUNS.items():
        found = given(frame(run).ttft_s)
        expected = [given(served(run, policy, scale).ttft_s) + CLIENT for scale in SCALES]
        cells = [f"{len(found):,}", f"{len(expected[1]):,}"]
        for quantile in (0.5, 0.99):
            seconds = float(np.quantile(found, quantile))
            low, middle, high = sorted(float(np.quantile(times, quantile)) for times in expected)
            cells += [f"{seconds:.2f} s", f"{middle:.2f} s", f"{low:.2f} to {high:.2f}"]
            cells += [f"{middle / seconds - 1:+.0%}"]
        print_row([run, *cells])


def given(times: pd.Series[float]) -> Floats:
    """The times that are defined, in seconds: rejected requests have none."""
    return np.asarray(times.dropna(), np.float64)


def frame(run: str) -> pd.DataFrame:
    """The measurements of a run, a row per request."""
    found = registry.load(DATA / f"{run}.jsonl.gz", "slora").measurements
    assert found is not None
    return found


def served(
    run: str, policy: str | dict[str, Any], scale: float = 1.0, cost: Mapping[str, float] = COST
) -> pd.DataFrame:
    """The simulated requests of a run, with the cost multiplied by `scale`."""
    adapters = next(mean for suite, mean in ADAPTERS.items() if run.startswith(suite))
    scenario = slotstep.parse(
        {
            "workload": {"trace": {"slora": str((DATA / f"{run}.jsonl.gz").absolute())}},
            "engine": ENGINE | {"max_total_token_num": round(POOL - ADAPTER * adapters)},
            "cost": {"affine": {name: f"{part * scale:.12f}ms" for name, part in cost.items()}},
            "policy": policy,
        }
    )
    return slotstep.run(scenario).requests


def statistics(times: pd.DataFrame, client: float = 0.0) -> Floats:
    """The statistics that are fitted: quantiles of TTFT, E2E and TPOT."""
    parts = (
        (given(times.ttft_s) + client, (1, 5, 25, 50, 75, 90, 99)),
        (given(times.e2e_s) + client, (25, 50, 75, 90, 99)),
        (given(times.tpot_s), (10, 50, 90)),
    )
    return np.concatenate([np.percentile(values, levels) for values, levels in parts])


def fitted() -> dict[str, float]:
    """Least squares of the relative errors of `statistics` in the run under fcfs; no other run is used."""
    target = statistics(frame("real_FCFS"))

    def loss(logs: Floats) -> float:
        *parts, client = np.exp(logs).tolist()
        cost = dict(zip(COST, np.multiply(parts, UNITS).tolist(), strict=True))
        errors = statistics(served("real_FCFS", "fcfs", cost=cost), client) / target - 1
        return float(errors @ errors)

    start = np.log([25, 0.3, 1000, 0.2, 0.05])
    found = minimize(loss, start, method="Nelder-Mead", options={"maxfev": 150, "xatol": 0.005, "fatol": 1e-4})
    values = dict(zip([*COST, "client"], (np.exp(found.x) * [*UNITS, 1]).tolist(), strict=True))
    return {name: float(f"{value:.4g}") for name, value in values.items()} | {"loss": round(float(found.fun), 4)}


if __name__ == "__main__":
    main()
