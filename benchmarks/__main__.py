"""`python -m benchmarks [--fast] [--json]`: run the benchmarks, print a table or one JSON object."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Run
from benchmarks.plan import (
    AIMED_RATIO,
    FAST,
    FULL,
    MOST_BYTES,
    MOST_S,
    RATE,
    SLOW_RATE,
    Findings,
    Plan,
    carry_out,
)

HEADING = (
    "CPU seconds, the best of {repeats}: simulation and full accounting. Poisson arrivals at {rate:g}/s unless "
    "said otherwise, prompt 512, 256 slots, token budget 2048, pages of 16, affine cost, fcfs. vllm: the preset's "
    "asynchronous scheduling, and its prefix cache where it is on; sglang likewise, with its radix cache and chunks "
    "of 8192; prompts given by lengths only. A lognormal law "
    "is named by its mean; its standard deviation is the same."
)


def main(arguments: Sequence[str] | None = None, plan: Plan | None = None) -> None:
    """Run a plan: the full one, or with `--fast` the short one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="How fast the simulator is.")
    parser.add_argument("--fast", action="store_true", help="smaller cases, each once, without the million requests")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    chosen = plan or (FAST if options.fast else FULL)
    findings = carry_out(chosen, lambda words: print(f"timing {words}", file=sys.stderr, flush=True))
    if options.json:
        print(json.dumps({"machine": machine(), **findings.as_json()}, indent=2))
    else:
        Console().print(machine(), HEADING.format(repeats=chosen.repeats, rate=RATE), table(findings), sep="\n")


def machine() -> str:
    """The processor and the interpreter, as far as the system tells."""
    processor = platform.processor() or platform.machine()
    details = Path("/proc/cpuinfo")
    if details.exists():
        fields = dict(line.split(":", 1) for line in details.read_text().splitlines() if ":" in line)
        named = {key.strip(): value.strip() for key, value in fields.items()}
        processor = named.get("model name", processor)
        if "model" in named:
            processor += f" (model {named['model']})"
    return f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}"


def table(findings: Findings) -> Table:
    """What was measured, beside what is required or aimed at."""
    made = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    made.add_column("outputs", no_wrap=True)
    for head in ("requests", "CPU s", "requests\n/CPU-s", "steps\n/CPU-s", "peak\nMB"):
        made.add_column(head, justify="right", no_wrap=True)
    made.add_column("goal", no_wrap=True)
    for throughput in findings.throughputs:
        required = f"≥ {throughput.required_per_s:,}" if throughput.required_per_s else ""
        made.add_row(throughput.outputs, *columns(throughput.small), "")
        made.add_row("" if throughput.engine == "plain" else f"  {throughput.engine}", *columns(throughput.large), "")
        made.add_row("  marginal", "", "", f"{throughput.marginal_per_s:,.0f}", "", "", required, end_section=True)
    aims = f"≤ {MOST_S:g} s, {MOST_BYTES / 1e9:g} GB"
    if findings.huge:
        made.add_row("fixed 128", *columns(findings.huge), aims, end_section=True)
    else:
        made.add_row("fixed 128, left out", "1,000,000", "", "", "", "", aims, end_section=True)
    ratio = findings.ratio
    made.add_row(f"{ratio.outputs}, {SLOW_RATE:g}/s", *columns(ratio.macro)[:-1], "", "")
    made.add_row("  step by step", *columns(ratio.stepped)[:-1], "", "")
    made.add_row("  ratio, simulation", "", f"{ratio.simulation:.1f}x", "", "", "", f"≥ {AIMED_RATIO:g}x")
    made.add_row("  ratio, with metrics", "", f"{ratio.with_metrics:.1f}x", "", "", "", "")
    return made


def columns(run: Run) -> list[str]:
    """A run's columns."""
    return [
        f"{run.requests:,}",
        f"{run.cpu_s:.2f}",
        f"{run.requests / run.cpu_s:,.0f}",
        f"{run.steps / run.cpu_s:,.0f}",
        f"{run.peak_bytes / 1e6:,.0f}",
    ]


if __name__ == "__main__":
    main()
