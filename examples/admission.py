"""Admission rules on one trace, whose output lengths are not known to the scheduler.

    python examples/admission.py

The first 8,000 of the Azure conversations of 2023 at twice their rate, on the engine of examples/azure-conv.yaml with
12,000 pages, each with the trace's largest output, 1,000 tokens, as its declared limit. Needs the trace in the cache:
`slotstep trace fetch azure-2023-conv`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markdown_table import print_head, print_row

import slotstep

HERE = Path(__file__).parent
LOAD = ["workload.scale_rate=2", "workload.first=8000", "workload.max_output=1000", "engine.pages=12000"]
RULES = {
    "reserve": ["engine.admission=reserve"],
    "peak": ["engine.admission=peak"],
    "ratio": ["engine.admission=ratio"],
    "quantile, 1%": ["engine.admission={quantile: {epsilon: 0.01}}"],
    "quantile, 5%": ["engine.admission={quantile: {epsilon: 0.05}}"],
    "quantile, 20%": ["engine.admission={quantile: {epsilon: 0.2}}"],
    "optimistic, 5% kept free": ["engine.watermark=0.05"],
    "optimistic": [],
}
COLUMNS = (
    "admission",
    "preemptions",
    "tokens recomputed",
    "occupancy",
    "live fraction",
    "median TTFT",
    "p99 TTFT",
    "p99 TPOT",
    "makespan",
)


def main() -> None:
    """Print the table as Markdown."""
    print_head(COLUMNS)
    for name, rule in RULES.items():
        result = slotstep.run(slotstep.load(HERE / "azure-conv.yaml", [*LOAD, *rule]))
        print_row([name, *cells(result.summary)])


def cells(summary: dict[str, Any]) -> list[str]:
    """The cells of one run, in which every request has finished: no latency is censored."""
    assert summary["requests"]["finished"] == summary["requests"]["injected"]
    ttft = summary["ttft_s"]
    return [
        f"{summary['preemptions']:,}",
        f"{summary['tokens']['recomputed']:,}",
        f"{100 * summary['occupancy']:.1f}%",
        f"{100 * summary['pages']['mean_live_fraction']:.1f}%",
        f"{ttft['p50']:.1f} s",
        f"{ttft['p99']:.1f} s",
        f"{1000 * summary['tpot_s']['p99']:.0f} ms",
        f"{summary['makespan_s']:,.0f} s",
    ]


if __name__ == "__main__":
    main()
