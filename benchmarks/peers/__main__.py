"""`python -m benchmarks.peers`: CPU seconds of the same work on slotstep and on other simulators, and their ratios.

The work: poisson arrivals at 20/s, 512 prompt and 128 output tokens, 256 slots, token budget 2048, 100,000 pages of
16. Every run is a process of its own, its CPU time that of the whole process, imports and start included. The
simulators take turns, so that a busy machine slows all of them. What a step costs differs, as each has its own model;
what is compared is the work of simulating it. slotstep runs `slotstep run S --json` on an Azure-style CSV: digest and
all metrics.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import yaml
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.__main__ import machine
from benchmarks.cases import Case

HERE = Path(__file__).parent
SIZES = (10_000, 60_000)
FAST = (1_000, 4_000)
OURS = "slotstep"
NEEDED = {
    "DynoSim": "pip install ai-dynamo-runtime",
    "sched-sim": "pip install sched-sim",
    "inference-lab": "npm install @doublewordai/inference-lab, and --node-modules",
}
Command = list[str]


class FailedError(Exception):
    """A run that ended with an error; the message is its last line."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every simulator that is installed, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=str(__doc__).split("\n")[0])
    parser.add_argument("--fast", action="store_true", help="smaller runs, each once")
    parser.add_argument("--cache", action="store_true", help="with a prefix cache, where the simulator has one")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each size, of which the fastest counts")
    parser.add_argument("--python", default=sys.executable, help="interpreter of DynoSim and sched-sim")
    parser.add_argument(
        "--node-modules", default=".", metavar="DIR", help="folder with node_modules of inference-lab"
    )
    options = parser.parse_args(arguments)
    sizes, repeats = (FAST, 1) if options.fast else (SIZES, options.repeats)
    with tempfile.TemporaryDirectory() as folder:
        peers = commands(Path(folder), sizes, options.cache, options.python, options.node_modules)
        times = measured(peers, sizes, repeats)
    missing = [f"{name}: {why}; needs {NEEDED[name]}" for name, why in times.items() if isinstance(why, str)]
    Console().print(machine(), table(times, sizes), *missing, sep="\n")


def commands(
    folder: Path, sizes: Sequence[int], cache: bool, python: str, node_modules: str
) -> dict[str, dict[int, Command]]:
    """The command of each simulator for each number of requests; ours reads files that are written to `folder`."""
    ours = {
        size: [sys.executable, "-m", "slotstep", "run", scenario(folder, size, cache), "--json"] for size in sizes
    }
    with_cache = ["cache"] if cache else []
    found = {OURS: ours}
    found["DynoSim"] = {size: [python, str(HERE / "dynosim.py"), str(size), *with_cache] for size in sizes}
    if not cache:
        found["sched-sim"] = {size: [python, str(HERE / "schedsim.py"), str(size)] for size in sizes}
        script = str(HERE / "inferencelab.mjs")
        found["inference-lab"] = {size: ["node", script, node_modules, str(size)] for size in sizes}
    return found


def scenario(folder: Path, size: int, cache: bool) -> str:
    """Write the scenario of so many requests, and its trace; returns its path."""
    begin = datetime(2023, 11, 16, 18)
    rows = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    for request in Case(size, 20.0, "fixed 128").drawn():
        sent = begin + timedelta(microseconds=request.arrival // 1000)
        rows.append(f"{sent:%Y-%m-%d %H:%M:%S.%f}0,{request.prompt},{request.output}")
    trace = folder / f"{size}.csv"
    trace.write_text("\n".join(rows) + "\n")
    engine = {"slots": 256, "token_budget": 2048, "page_size": 16, "pages": 100_000}
    cost = {"base": "5ms", "per_sequence": "40us", "per_context_token": "25ns", "per_prefill_token": "40us"}
    path = folder / f"{size}.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "workload": {"trace": {"azure": str(trace)}},
                "engine": engine | ({"prefix_cache": True, "async_scheduling": True} if cache else {}),
                "cost": {"affine": cost},
            }
        )
    )
    return str(path)


def measured(
    peers: Mapping[str, Mapping[int, Command]], sizes: Sequence[int], repeats: int
) -> dict[str, dict[int, float] | str]:
    """The fewest CPU seconds of each simulator for each size, of `repeats` runs in turns; or why it does not run."""
    times: dict[str, dict[int, float] | str] = {name: {} for name in peers}
    for _ in range(repeats):
        for size in sizes:
            for name, runs in peers.items():
                found = times[name]
                if isinstance(found, str):
                    continue
                print(f"{name}, {size:,} requests", file=sys.stderr, flush=True)
                try:
                    found[size] = min(cpu_seconds(runs[size]), found.get(size, float("inf")))
                except (OSError, FailedError) as error:
                    times[name] = f"{error}"
    return times


def cpu_seconds(command: Command) -> float:
    """CPU seconds of a process and of all that it starts. Raises FailedError for one that fails, OSError for none."""
    with tempfile.TemporaryFile() as complaint:
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=complaint, cwd=HERE.parent.parent)
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode:
            complaint.seek(0)
            lines = complaint.read().decode(errors="replace").split("\n")
            raise FailedError(next((line.strip() for line in reversed(lines) if line.strip()), "it failed"))
    return usage.ru_utime + usage.ru_stime


def table(times: Mapping[str, dict[int, float] | str], sizes: Sequence[int]) -> Table:
    """A row a simulator: whole processes, what each further request costs, and how many times as long as ours."""
    small, large = sizes
    made = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    made.add_column("simulator", no_wrap=True)
    heads = (f"CPU s\n{small:,}", f"CPU s\n{large:,}", "requests\n/CPU-s more", f"x ours\n{small:,}", "x ours\nmore")
    for head in heads:
        made.add_column(head, justify="right", no_wrap=True)
    ours = times[OURS]
    assert not isinstance(ours, str), ours
    for name, found in times.items():
        if isinstance(found, str):
            continue
        each, our = ((one[large] - one[small]) / (large - small) for one in (found, ours))
        made.add_row(
            name,
            f"{found[small]:.2f}",
            f"{found[large]:.2f}",
            f"{1 / each:,.0f}",
            f"{found[small] / ours[small]:.2f}",
            f"{each / our:.2f}",
        )
    return made


if __name__ == "__main__":
    main()
