"""Mean TPOT of TensorRT-LLM on one H100 at a closed-loop concurrency, against the shipped profile of that engine.

    python -m benchmarks.fidelity.closed_loop DATA

Llama-3.1-8B; prompts and outputs of one length each, 42 rows. Nothing is fitted: the profile is made of kernel times,
the engine has its documented defaults (8,192 tokens a step, whole prompts) and a slot for every client. The number of
measured requests is not stated: each client sends ROUNDS. The measured times to first token are not compared: they do
not rise with the concurrency, and how they were measured is not stated.

The same runs on 1, 2, 4 and 8 H100s are also predicted from shapes alone, without a host term and with the likely one
of TensorRT-LLM. Half of these rows are the open ones that its host time and the sustained rate rest on.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

import slotstep
from benchmarks.fidelity.rows import Row, markdown
from calibrate.profiles.profile import named
from sim.cost.forms import StepCost
from sim.cost.shape import Shape

SUITE = "closed loop, TensorRT-LLM on H100"
PROFILE = "h100-llama-3.1-8b-trtllm"
FILE = "profiles/aiconfigurator/measured_llama8b.csv.gz"
ROUNDS = 10
SHIPPED = {"profile": PROFILE}


def measured(data: Path, devices: int = 1) -> pd.DataFrame:
    """The measured rows of this number of H100s."""
    found = pd.read_csv(data / FILE)
    return found[(found["system"] == "h100_sxm") & (found["tp_size"] == devices)].reset_index(drop=True)


def simulated(
    prompt: int, output: int, clients: int, cost: Mapping[str, Any] = SHIPPED, price: StepCost | None = None
) -> float:
    """Mean TPOT, seconds, of clients that each send the next request when the last has ended.

    `price` replaces the cost.
    """
    request = {"prompt": prompt, "output": output}
    scenario = slotstep.parse(
        {
            "workload": {"requests": [request] * (clients * ROUNDS)},
            "clients": {"closed": {"clients": clients}},
            "engine": {"slots": clients, "token_budget": 8192, "chunked": False, "pages": clients * 512},
            "cost": cost,
        }
    )
    return float(slotstep.run(scenario, price=price).requests["tpot_s"].mean())


def decode_alone(prompt: int, output: int, clients: int) -> float:
    """Seconds of a decode step of all clients at their mean context: the prediction of the decode table alone."""
    shape = Shape()
    shape.decodes, shape.context = clients, clients * (prompt + output // 2)
    return named(PROFILE).cost().step(shape) / 1e9


def rows(data: Path) -> list[Row]:
    """The simulated closed loop beside every measured row."""
    made = []
    for prompt, output, clients, seconds in cases(measured(data)):
        run = f"{clients} clients, {prompt} in, {output} out"
        made.append(Row(SUITE, run, "tpot_s", "mean", seconds, simulated(prompt, output, clients)))
    return made


def cases(table: pd.DataFrame) -> list[tuple[int, int, int, float]]:
    """(prompt, output, clients, measured seconds per token) of each row."""
    counts = table[["isl", "osl", "conc"]].astype(int).to_numpy().tolist()
    seconds = (table["silicon_tpot_ms"] / 1e3).tolist()
    return [(*sizes, time) for sizes, time in zip(counts, seconds, strict=True)]


def by_concurrency(data: Path, made: Sequence[Row]) -> pd.DataFrame:
    """The errors at each concurrency: of the simulation, and of the decode table alone."""
    table = measured(data)
    found = pd.DataFrame(
        {
            "clients": table["conc"].astype(int),
            "simulated": [row.error for row in made],
            "decode alone": [
                decode_alone(prompt, output, clients) / seconds - 1
                for prompt, output, clients, seconds in cases(table)
            ],
        }
    )
    grouped = found.groupby("clients")
    return pd.DataFrame(
        {
            "rows": grouped.size(),
            "mean size": grouped["simulated"].agg(lambda errors: errors.abs().mean()),
            "worst": grouped["simulated"].agg(lambda errors: errors.abs().max()),
            "signed": grouped["simulated"].mean(),
            "decode alone": grouped["decode alone"].mean(),
        }
    )


def shape_errors(data: Path, devices: int, host: str | None = None, rows: pd.DataFrame | None = None) -> list[float]:
    """Relative errors of the rows of so many H100s, or some, from shapes alone; None: at the engine's host time."""
    shape = {"model": "llama-3.1-8b", "device": "h100-sxm", "tensor_parallel": devices, "engine": "trtllm"}
    cost = {"shape": shape} if host is None else {"shape": shape, "host": host}
    table = measured(data, devices) if rows is None else rows
    return [
        simulated(prompt, output, clients, cost) / seconds - 1 for prompt, output, clients, seconds in cases(table)
    ]


def main() -> None:
    """Print every row, and the errors by concurrency."""
    data = Path(sys.argv[1])
    made = rows(data)
    print(markdown(made))
    print(
        by_concurrency(data, made)
        .map(lambda value: f"{value:.1%}" if isinstance(value, float) else value)
        .to_string()
    )
    print(f"mean size of the error over {len(made)} rows: {sum(abs(row.error) for row in made) / len(made):.1%}")
    print("\nfrom shapes alone: devices, rows, mean error and its mean size without a host term, and with it")
    for devices in (1, 2, 4, 8):
        without, having = shape_errors(data, devices, "0"), shape_errors(data, devices)
        found = [f"{fmean(each):+.0%} ({fmean(map(abs, each)):.0%})" for each in (without, having)]
        print(devices, len(without), *found)


if __name__ == "__main__":
    main()
