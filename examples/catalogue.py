"""Every policy on both Azure traces, merged as two tenants: the table of docs/catalogue.md.

    python examples/catalogue.py

Needs the traces in the cache: `slotstep trace fetch azure-2023-conv` and `slotstep trace fetch azure-2023-code`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from markdown_table import print_head, print_row, seconds

import slotstep
from slotstep.runs import workload

HERE = Path(__file__).parent
POLICIES: tuple[str | dict[str, Any], ...] = (
    "fcfs",
    "random",
    "priority",
    "sjf",
    {"sjf": {"predict": "class_mean"}},
    "srpt",
    {"srpt": {"preemptive": True}},
    "shortest_prompt",
    "longest",
    {"edf": {"tenants": {"code": {"within": "2s"}}}},
    {"least_slack": {"tenants": {"code": {"within": "2s"}}}},
    "hrrn",
    "mlfq",
    {"mlfq": {"preemptive": True}},
    "longest_prefix",
    "requeue",
    "lpm",
    "dfs_weight",
    "lof",
    "prefill_hrrn",
    "shortest_prefill_first",
    "shuffle",
    "vtc",
    {"vtc": {"lift": False}},
    "drr",
    "fair",
    {"max_wait": {"max_wait": "10s"}},
    {"aging": {"unit": "50ms"}},
    {"reserved": {"of": 256, "tenants": {"code": 64}}},
    {"tenant_slots": {"slots": 128}},
    {"tenant_rate": {"rate": 12_000, "burst": 200_000}},
    {"tenant_quota": {"requests": 400}},
)
CACHES = {
    "longest_prefix": "true",
    "lpm": "true",
    "dfs_weight": "radix",
    "prefill_hrrn": "true",
    "shortest_prefill_first": "true",
}
"""The prefix cache of the policies that look into one."""

COLUMNS = (
    "policy",
    "median TTFT",
    "p99 TTFT",
    "conv, p99",
    "code, p99",
    "longest wait",
    "p99 TPOT",
    "mean E2E",
    "p99 E2E",
    "preemptions",
    "n",
    "censored",
)


def main() -> None:
    """Print the table as Markdown."""
    print_head(COLUMNS)
    requests = workload.load(slotstep.load(HERE / "azure-both.yaml"))
    for policy in POLICIES:
        cache = f"engine.prefix_cache={CACHES.get(str(policy), 'false')}"
        scenario = slotstep.load(HERE / "azure-both.yaml", [f"policy={json.dumps(policy)}", cache])
        result = slotstep.run(scenario, workload=requests)
        print_row([called(policy), *cells(result.summary)])


def called(policy: str | dict[str, Any]) -> str:
    """The name of a policy in the table, with the options that are not the defaults."""
    if isinstance(policy, str):
        return f"`{policy}`"
    ((name, options),) = policy.items()
    return f"`{name}` " + ", ".join(f"{key} {worded(value)}" for key, value in options.items())


def worded(value: object) -> str:
    """The value of an option as text."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {worded(inner)}" for key, inner in value.items())
    return f"{value:,}" if type(value) is int else str(value).lower()


def cells(summary: dict[str, Any]) -> list[str]:
    """The cells of one run; n and the share of censored requests are of E2E."""
    ttft, e2e, tenants = summary["ttft_s"], summary["e2e_s"], summary["tenants"]
    times = (
        ttft["p50"],
        ttft["p99"],
        *(tenants[name]["ttft_s"]["p99"] for name in ("conv", "code")),
        summary["wait_s"]["max"],
    )
    return [
        *(seconds(time) for time in times),
        f"{1000 * summary['tpot_s']['p99']:.0f} ms",
        seconds(e2e["mean"]),
        seconds(e2e["p99"]),
        f"{summary['preemptions']:,}",
        f"{e2e['n']:,}",
        f"{100 * e2e['censored_share']:.1f}%",
    ]


if __name__ == "__main__":
    main()
