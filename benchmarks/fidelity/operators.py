"""Runs of LLMServingSim's authors (vLLM 0.19.0) against profiles composed of their operator tables.

    python -m benchmarks.fidelity.operators DATA

Four predictions of each run: the operators and the engine's preset alone, and that with mixed steps taken as sums;
with the capture sizes that the engine's configuration logs; and with a host term, fitted on the *other* GPU's run.
None uses anything of the predicted run but its requests and the engine's arguments.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import slotstep
from benchmarks.fidelity.rows import Row, compared, markdown
from calibrate.profiles.profile import Profile, named
from slotstep.runs.result import Result
from traces.reading.registry import load

SUITE = "operator tables, vLLM 0.19.0"
FOLDER = "traces/gt_llmservingsim_vllm019"
WORKLOAD = "workload_sharegpt-llama-3.1-8b-300-sps10.jsonl.gz"
METRICS = ("ttft_s", "tpot_s", "e2e_s")
HOSTS_MS = tuple(tenths / 10 for tenths in range(16))
GRAPHS = [1, 2, 4, *range(8, 257, 8), *range(272, 513, 16)]


@dataclass(frozen=True)
class Measured:
    """A run: its folder, the profile of its GPU, the engine's arguments, capture sizes (None: not logged)."""

    folder: str
    profile: str
    engine: Mapping[str, Any]
    graphs: list[int] | None


RUNS = (
    Measured(
        "RTX4090__Llama-3.1-8B",
        "rtx4090-llama-3.1-8b",
        {"max_num_seqs": 256, "max_num_batched_tokens": 2048, "max_model_len": 32768, "num_gpu_blocks": 2589},
        GRAPHS,
    ),
    Measured(
        "RTXPRO6000__Llama-3.1-8B",
        "rtxpro6000-llama-3.1-8b",
        {"max_num_seqs": 128, "max_num_batched_tokens": 2048, "num_gpu_blocks": 30001},
        [size for size in GRAPHS if size <= 256],
    ),
)
"""num_gpu_blocks is one more than can be used. The second run does not log it: 30,000 pages are more than its 128
sequences can fill. It does not log its graphs either; the engine captures sizes up to twice its sequences."""


def scenario(
    data: Path, run: Measured, host_ms: float = 0.0, graphs: bool = False, profile: str | None = None
) -> slotstep.Scenario:
    """The run's requests on the preset engine, at the cost of its profile or another one."""
    cost: dict[str, Any] = {"profile": profile or run.profile, "host": f"{host_ms}ms"}
    if graphs and run.graphs:
        cost["graph_sizes"] = run.graphs
    return slotstep.parse(
        {
            "name": run.folder,
            "workload": {"trace": {"llmservingsim": str((data / FOLDER / WORKLOAD).absolute())}},
            "engine": {"preset": "vllm", **run.engine},
            "cost": cost,
        }
    )


def as_sums(run: Measured) -> str:
    """The text of the run's profile without the interaction of decodes and chunks: mixed steps as sums."""
    profile = named(run.profile)
    content = dict(profile.content)
    content["curve"] = {
        "table": {key: value for key, value in content["curve"]["table"].items() if key not in ("beside", "crossing")}
    }
    return Profile(profile.name, content).text()


def measurements(data: Path, run: Measured) -> pd.DataFrame:
    """The measured requests, in the order of the workload: latencies count from queue entry."""
    found = load(data / FOLDER / run.folder / "requests.jsonl", "llmservingsim-log").measurements
    assert found is not None
    number = found["id"].str.rsplit("-", n=1).str[1].astype(int)
    return found.iloc[np.argsort(number.to_numpy(), kind="stable")].reset_index(drop=True)


def predicted(result: Result) -> dict[str, list[float]]:
    """The metrics of a simulated run, seconds per request."""
    return {metric: result.requests[metric].tolist() for metric in METRICS}


def rows(data: Path) -> list[Row]:
    """Every prediction of every run beside the measurement."""
    made = []
    hosts = {run.folder: best_host(data, run) for run in RUNS}
    for run in RUNS:
        found = measurements(data, run)
        measured = {metric: found[metric].tolist() for metric in METRICS}
        (other,) = (each.folder for each in RUNS if each is not run)
        host = hosts[other]
        gpu = run.folder.partition("__")[0]
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "sums.yaml").write_text(as_sums(run))
            sums = slotstep.run(scenario(data, run, profile=f"{folder}/sums.yaml"))
        made += compared(SUITE, f"{gpu}, mixed steps as sums", measured, predicted(sums))
        for what, settings, fitted in (
            ("operators alone", {}, ""),
            ("and graphs", {"graphs": True}, ""),
            ("and host", {"graphs": True, "host_ms": host}, f"host {host} ms, on {other.partition('__')[0]}"),
        ):
            result = slotstep.run(scenario(data, run, **settings))
            made += compared(SUITE, f"{gpu}, {what}", measured, predicted(result), fitted)
    return made


def best_host(data: Path, run: Measured) -> float:
    """The host term, a multiple of 0.1 ms, at which the run's mean E2E is closest to the measured one."""
    measured = float(measurements(data, run)["e2e_s"].mean())
    errors = []
    for host in HOSTS_MS:
        predicted_s = float(slotstep.run(scenario(data, run, host, graphs=True)).requests["e2e_s"].mean())
        errors.append((abs(predicted_s - measured), host))
    return min(errors)[1]


def load_by_second(data: Path, run: Measured, result: Result) -> pd.DataFrame:
    """Running and waiting each second as the engine logged them, beside the simulated ones."""
    logged = pd.read_csv(data / FOLDER / run.folder / "timeseries.csv")
    steps = result.steps
    last = np.searchsorted(steps["start_ns"], logged["t"] * 1e9, side="right") - 1
    slots = steps[["decode", "prefill", "recomputed", "no_budget"]].sum(axis=1).to_numpy()[last]
    over = logged["t"].to_numpy() * 1e9 > float((steps["start_ns"] + steps["duration_ns"]).iloc[-1])
    return pd.DataFrame(
        {
            "t": logged["t"],
            "running": logged["running"],
            "simulated_running": np.where(over, 0, slots),
            "waiting": logged["waiting"],
            "simulated_waiting": np.where(over, 0, steps["waiting"].to_numpy()[last]),
        }
    )


def main() -> None:
    """Print the table, and the CPU time of a simulation."""
    data = Path(sys.argv[1])
    print(markdown(rows(data)))
    for run in RUNS:
        began = time.process_time()
        result = slotstep.run(scenario(data, run))
        print(f"{run.folder}: simulated in {time.process_time() - began:.2f} s of CPU time")
        series = load_by_second(data, run, result)
        gap = (series["running"] - series["simulated_running"]).abs().mean()
        print(f"running by the second: mean {series['running'].mean():.1f}, mean difference {gap:.1f}")
        print(series[series["t"] % 10 == 0].astype(int).to_string(index=False))


if __name__ == "__main__":
    main()
