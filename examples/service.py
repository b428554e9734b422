"""The tables of docs/service.md: routers, treatments of a failed replica's requests, and pools, on one workload.

python examples/service.py routers | failures | pools
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from markdown_table import print_head, print_row

import slotstep

SCENARIO = Path(__file__).parent / "service.yaml"

ROUTERS = {name: name for name in ("round_robin", "random", "least_requests", "prefix")}
OUTAGE = "outages: [{replica: 0, at: 30s, lasts: 30s}]"
FAILURES = {
    "nobody fails": [],
    **{work: [f"cluster.failures={{{OUTAGE}, work: {work}}}"] for work in ("resumed", "moved", "lost")},
    "lost, tried again": [
        f"cluster.failures={{{OUTAGE}, work: lost}}",
        "clients.retry={attempts: 4, initial: 500ms, jitter: 0.5}",
    ],
}
LINK = "transfer: {latency: 1ms, per_token: 3us}"
POOLS = {
    "four for both": ["cluster={replicas: 4, router: least_requests}"],
    **{
        f"{first} for prompts, {4 - first} for tokens": [
            f"cluster={{prefill: {{replicas: {first}, router: least_requests}}, "
            f"decode: {{replicas: [{{count: {4 - first}, engine: {{slots: 32}}}}], router: least_requests}}, {LINK}}}"
        ]
        for first in (1, 2, 3)
    },
}
TABLES: dict[str, dict[str, list[str]]] = {
    "routers": {
        name: [f"cluster.router={router}"]
        for name, router in (ROUTERS | {"sticky, by session": "{sticky: {by: session}}"}).items()
    },
    "failures": FAILURES,
    "pools": POOLS,
}
COLUMNS = (
    "turns sent",
    "finished",
    "rejected",
    "never sent",
    "attempts",
    "cache hits",
    "p50 TTFT",
    "p99 TTFT",
    "p99 TPOT",
    "objectives met",
    "wasted",
)


def main(table: str) -> None:
    """Print one table as Markdown."""
    print_head([table, *COLUMNS])
    for name, settings in TABLES[table].items():
        print_row([name, *cells(slotstep.run(slotstep.load(SCENARIO, settings)).summary)])


def cells(summary: dict[str, Any]) -> list[str]:
    """The cells of one run; `wasted` is the share of the slot-seconds bought."""
    requests, time = summary["requests"], summary["slot_seconds"]
    attempts = summary["service"]["attempts"] if summary["service"] else requests["injected"]
    return [
        *(f"{requests[key]:,}" for key in ("injected", "finished", "rejected")),
        f"{summary['sessions']['unsent_turns']:,}",
        f"{attempts:,}",
        f"{100 * summary['cache']['hit_rate']:.0f}%",
        f"{summary['ttft_s']['p50']:.2f} s",
        f"{summary['ttft_s']['p99']:.1f} s",
        f"{1000 * summary['tpot_s']['p99']:.0f} ms",
        f"{100 * summary['attainment']:.1f}%",
        f"{100 * time['wasted'] / time['bought']:.1f}%",
    ]


if __name__ == "__main__":
    main(sys.argv[1])
