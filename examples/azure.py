"""The table of docs/azure.md: three policies on two real traces, at their own rate and when the engine is overloaded.

    python examples/azure.py

Needs the traces in the cache: `slotstep trace fetch azure-2023-conv` and `slotstep trace fetch azure-2023-code`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markdown_table import print_head, print_row, seconds

import slotstep

HERE = Path(__file__).parent
COLUMNS = (
    "trace and rate",
    "policy",
    "median wait",
    "mean wait",
    "p99 wait",
    "max wait",
    "mean E2E",
    "p99 E2E",
    "max E2E",
    "mean TPOT",
    "preemptions",
    "objectives met",
)


def main() -> None:
    """Print the table as Markdown."""
    print_head(COLUMNS, texts=2)
    for trace, scale in (("conv", 1), ("conv", 2), ("code", 1), ("code", 3)):
        scenario = slotstep.load(HERE / f"azure-{trace}.yaml", [f"workload.scale_rate={scale}"])
        for result in slotstep.compare(scenario, ["fcfs", "sjf", "fair"]):
            print_row([f"{trace}, {scale}x", result.policy, *cells(result.summary)])


def cells(summary: dict[str, Any]) -> list[str]:
    """The cells of one run, in which every request has finished: no latency is censored."""
    assert summary["requests"]["finished"] == summary["requests"]["injected"]
    wait, e2e = summary["wait_s"], summary["e2e_s"]
    times = (
        *(wait[which] for which in ("p50", "mean", "p99", "max")),
        *(e2e[which] for which in ("mean", "p99", "max")),
    )
    return [
        *map(seconds, times),
        f"{1000 * summary['tpot_s']['mean']:.0f} ms",
        f"{summary['preemptions']:,}",
        f"{100 * summary['attainment']:.1f}%",
    ]


if __name__ == "__main__":
    main()
