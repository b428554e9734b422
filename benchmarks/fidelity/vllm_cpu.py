"""vLLM 0.32.0 on a CPU: a cost fitted to the steps at 2 requests/s, the runs at 4 and 8 requests/s predicted.

    python -m benchmarks.fidelity.vllm_cpu DATA

The cost is a sum, as the notes of the measurement state; a roofline's predictions are shown beside it. The host was
shared, so its wall clock is stretched by other load; the worker's CPU time is not. Arrivals and tokens are converted
to that clock: within a step it runs as the CPU did, between two steps without work it runs as the wall clock, and the
short gaps between the steps of a busy engine are left out, as in the steps' CPU time.
"""

from __future__ import annotations

import gzip
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import slotstep
from benchmarks.fidelity.rows import Row, compared, markdown
from calibrate.arrays import Floats
from calibrate.fit.from_steps import StepFit, fit
from sim.cost.forms import Curve
from slotstep.runs.result import Result
from slotstep.validation.provenance import coefficients
from traces.reading import step_logs as step_logs

SUITE = "vLLM 0.32.0 on a CPU, on the clock of CPU time"
FOLDER = "traces/gt_vllm_cpu"
NAME = "small2"
FITTED = "2:60:31"
ENGINE = {"preset": "vllm", "slots": 16, "token_budget": 256, "page_size": 32, "num_gpu_blocks": 161,
          "max_model_len": 2048, "async_scheduling": False}  # fmt: skip
FORM = "affine"
"""As the notes of the measurement state: one thread adds arithmetic to the weight pass, without overlap."""
FORMS = {FORM: "a sum", "roofline": "a roofline"}
METRICS = ("ttft_s", "tpot_s", "e2e_s")
BUSY_GAP_S = 0.005
"""A pause between two steps shorter than this is the engine's own, not a lack of requests."""


@dataclass(frozen=True)
class Clock:
    """From wall seconds to seconds of CPU time: linear between the starts and ends of steps."""

    wall: Floats
    cpu: Floats

    def at(self, instants: Floats) -> Floats:
        """The CPU time at these instants."""
        return np.interp(instants, self.wall, self.cpu)


def clock(steps: pd.DataFrame, ends: Floats) -> Clock:
    """The clock of a log of steps with their wall-clock starts (`start_s`) and ends."""
    starts = steps["start_s"].to_numpy(np.float64)
    gaps = np.append(starts[1:], ends[-1]) - ends
    idle = np.where(gaps > BUSY_GAP_S, gaps, 0.0)
    worked = steps["duration_ns"].to_numpy(np.float64) / 1e9
    after = np.cumsum(worked + idle)
    wall = np.column_stack([starts, ends]).ravel()
    cpu = np.column_stack([after - worked - idle, after - idle]).ravel()
    return Clock(np.maximum.accumulate(wall), cpu)


def runs(data: Path) -> dict[str, list[dict[str, Any]]]:
    """The requests of each run by its name, with `sent`, `first` and `last` in wall seconds of the steps' clock."""
    log = json.loads(gzip.decompress((data / FOLDER / f"{NAME}.json.gz").read_bytes()))
    return {
        name.removeprefix("trace:"): [
            {
                "tokens": each["prompt_token_ids"],
                "output": len(each["tok_times"]),
                "sent": run["t0"] + each["arrival"],
                "first": run["t0"] + each["tok_times"][0],
                "last": run["t0"] + each["tok_times"][-1],
            }
            for each in run["requests"]
        ]
        for name, run in log.items()
        if name.startswith("trace:")
    }


def steps_of(data: Path) -> tuple[pd.DataFrame, Floats]:
    """All steps by CPU time, and their ends on the wall's clock."""
    path = data / FOLDER / f"{NAME}.steps.jsonl.gz"
    by_cpu, by_wall = step_logs.read(path, "cpu"), step_logs.read(path, "wall")
    return by_cpu, (by_wall["start_s"] + by_wall["duration_ns"] / 1e9).to_numpy(np.float64)


def fitted(steps: pd.DataFrame, form: str = FORM) -> StepFit:
    """The cost of the steps of the run at 2 requests/s."""
    mine = steps["ids"].map(lambda ids: any(f"trace:{FITTED}-" in name for name in ids))
    return fit(steps[mine].reset_index(drop=True), hold_out=0.0, form=form)


@dataclass(frozen=True)
class Prediction:
    """All runs on the clock of CPU time, by arrival: the run of each request (`whose`), both sides, the simulation.

    One engine served the runs one after the other and kept its prefix cache; the simulated one does the same.
    """

    whose: NDArray[np.str_]
    measured: pd.DataFrame
    result: Result

    def of(self, run: str) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
        """The latencies of one run, s: measured and simulated."""
        one, other = (
            {metric: frame[metric].to_numpy(np.float64)[self.whose == run].tolist() for metric in METRICS}
            for frame in (self.measured, self.result.requests)
        )
        return one, other


def predicted(data: Path, on: Clock, cost: Curve, form: str = FORM) -> Prediction:
    """The runs of the log, simulated at this cost."""
    asked = [{**each, "run": name} for name, requests in runs(data).items() for each in requests]
    asked.sort(key=lambda each: float(each["sent"]))
    times = {name: on.at(np.array([each[name] for each in asked])) for name in ("sent", "first", "last")}
    outputs = np.array([each["output"] for each in asked])
    measured = pd.DataFrame(
        {
            "ttft_s": times["first"] - times["sent"],
            "tpot_s": (times["last"] - times["first"]) / np.maximum(outputs - 1, 1),
            "e2e_s": times["last"] - times["sent"],
        }
    )
    arrivals = np.round((times["sent"] - times["sent"][0]) * 1e9).astype(int).tolist()
    requests = [
        {"arrival": f"{arrival}ns", "tokens": each["tokens"], "output": each["output"]}
        for arrival, each in zip(arrivals, asked, strict=True)
    ]
    terms = {name: f"{value}ns" for name, value in coefficients(cost).items()}
    scenario = slotstep.parse({"workload": {"requests": requests}, "engine": ENGINE, "cost": {form: terms}})
    return Prediction(np.array([each["run"] for each in asked]), measured, slotstep.run(scenario))


def work(steps: pd.DataFrame, found: Prediction, form: str) -> str:
    """Steps and busy seconds of each run, measured and simulated at a cost of a form, and its seconds of arrivals."""
    lines = (
        "\n| run | steps | simulated | busy s | simulated | requests came for s |\n|---|---:|---:|---:|---:|---:|\n"
    )
    simulated, requests = found.result.steps, found.result.requests
    for name in dict.fromkeys(found.whose.tolist()):
        mine = steps[steps["ids"].map(lambda ids, name=name: any(f"trace:{name}-" in each for each in ids))]
        sent = requests.loc[found.whose == name, "queued_ns"].astype(np.int64)
        until = int(requests.loc[found.whose == name, "ended_ns"].max())
        inside = simulated[(simulated["start_ns"] >= sent.min()) & (simulated["start_ns"] < until)]
        busy = [frame["duration_ns"].sum() / 1e9 for frame in (mine, inside)]
        lines += (
            f"| {name.partition(':')[0]} requests/s, {form} | {len(mine)} | {len(inside)} "
            f"| {busy[0]:.1f} | {busy[1]:.1f} | {(sent.max() - sent.min()) / 1e9:.1f} |\n"
        )
    return lines


def rows(data: Path) -> list[Row]:
    """Every run at the cost of the steps of the first, as a sum and as a roofline."""
    return report(data)[1]


def report(data: Path) -> tuple[str, list[Row]]:
    """The work of both engines, and the latencies of every run at the cost of the steps of the first."""
    steps, ends = steps_of(data)
    told, made = "", list[Row]()
    for form in FORMS:
        found = predicted(data, clock(steps, ends), fitted(steps, form).cost, form)
        for name in dict.fromkeys(found.whose.tolist()):
            run = f"{name.partition(':')[0]} requests/s, {FORMS[form]}"
            made += compared(SUITE, run, *found.of(name), "the steps at 2 requests/s")
        told += work(steps, found, FORMS[form])
    return told, made


def main() -> None:
    """Print the rows."""
    print(markdown(rows(Path(sys.argv[1]))))


if __name__ == "__main__":
    main()
