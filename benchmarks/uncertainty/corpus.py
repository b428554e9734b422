"""Measured runs beside their prediction, and how the prediction moves with the step cost.

Of costs from shapes: the rows of `silicon_sample.csv` in the package aiconfigurator-core (0.12), of dense models in
fp8 on one to eight devices, mean TTFT and TPOT. Rows of InferenceX: lengths uniform in [0.8 L, L], ten prompts a
client; of others the protocol is not stated: lengths L, and TPOT alone counts. Rows with an even crc32 of their id
are open; sizes are learned from these alone.

Of operator tables: the closed loops of `benchmarks.fidelity.closed_loop`, by the number of clients. Of fitted costs:
the runs of docs/fidelity.md that were held out, median TPOT and TTFT.
"""

from __future__ import annotations

import importlib.util
import math
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

import slotstep
from benchmarks.fidelity import closed_loop
from calibrate.database.profile import from_database
from calibrate.database.request import Request
from calibrate.profiles.host_time import host_time
from calibrate.profiles.profile import Profile, named
from sim.cost.forms import StepCost
from sim.cost.scaled import Scaled
from slotstep.runs import profiles
from slotstep.runs.workload import LoadedWorkload, load
from slotstep.scenario.schema import Scenario

FILE = "systems/silicon_sample.csv"
MODELS = {
    "meta-llama/Llama-3.1-70B": "llama-3.1-70b",
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "llama-3.1-8b",
    "Qwen/Qwen3-32B": "qwen3-32b",
}
DEVICES = {"h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200"}
ROUNDS = 10
BUDGET = 8192
STEP = 0.1
"""Logarithm of the factor by which a kind of step is made longer and shorter, for the derivatives."""


@dataclass(frozen=True)
class Cell:
    """One metric of one measured row.

    group            model, system and engine
    metric           tpot or ttft
    error            log of measured over predicted
    decode, prompts  d log metric / d log of the duration of steps without and with a prompt
    """

    group: str
    metric: str
    error: float
    decode: float
    prompts: float


def table(file: Path | None = None, held: bool = False) -> pd.DataFrame:
    """The open rows, or the held ones, that can be predicted from shapes.

    Raises FileNotFoundError without the package.
    """
    if file is None:
        found = importlib.util.find_spec("aiconfigurator_core")
        if found is None or found.origin is None:
            raise FileNotFoundError("aiconfigurator-core is not installed; expected pip install aiconfigurator-core")
        file = Path(found.origin).parent / FILE
    rows = pd.read_csv(file, low_memory=False)
    rows = rows[[zlib.crc32(name.encode()) % 2 == held for name in rows["id"]]]
    chosen = (rows["mode"] == "agg") & (rows["precision"] == "fp8") & (rows["pp_size"] == 1)
    return rows[chosen & rows["model_path"].isin(MODELS) & rows["system"].isin(DEVICES)].reset_index(drop=True)


Row = Mapping[str, Any]


def of_shapes(row: Row) -> StepCost:
    """The cost of a row from shapes alone, with the host time of its engine."""
    return profiles.of_shape(
        MODELS[row["model_path"]],
        DEVICES[row["system"]],
        efficiency={},
        engine=row["backend"],
        version=version_of(row),
        tensor_parallel=int(row["tp_size"]),
        dtype="fp8",
        kv_dtype="fp8",
    ).cost()


def of_database(row: Row) -> StepCost:
    """The cost of a row from measured operators of its system, with the host time of its engine."""
    request = Request(
        MODELS[row["model_path"]],
        row["system"],
        row["backend"],
        tensor_parallel=int(row["tp_size"]),
        gemm="fp8",
        kv="fp8",
    )
    return from_database_once(request).cost(host=host_time(row["backend"], version_of(row)).likely)


def version_of(row: Row) -> str | None:
    """The version of the engine, None where the row does not state it."""
    found = row["backend_version"]
    return found if isinstance(found, str) else None


@cache
def from_database_once(request: Request) -> Profile:
    """The profile of a request; rows share it."""
    return from_database(request, name="corpus", date="computed when used")


def cells(rows: pd.DataFrame, cost: Callable[[Row], StepCost] = of_shapes) -> Iterator[Cell]:
    """The metrics of every row, predicted from the cost that `cost` gives for it.

    A row for which it raises ValueError, as where no operators were measured, is named on standard error.
    """
    for record in rows.to_dict("records"):
        row = {str(name): value for name, value in record.items()}
        try:
            price = cost(row)
        except ValueError as error:
            print(f"{row['id']}: left out: {error}", file=sys.stderr)
            continue
        stated = "gap" not in row["silicon_data_source"]
        made = scenario(row, stated)
        found = moved(price, partial(means, made, load(made)))
        group = f"{MODELS[row['model_path']]}, {row['system']}, {row['backend']}"
        for metric in ("tpot", "ttft") if stated else ("tpot",):
            yield cell(group, metric, row[f"silicon_{metric}_ms"] / 1e3, found)


def table_cells(data: Path) -> Iterator[Cell]:
    """TPOT of the closed loops on one H100, predicted from a shipped profile of operator tables."""
    for prompt, output, clients, seconds in closed_loop.cases(closed_loop.measured(data)):
        found = moved(named(closed_loop.PROFILE).cost(), partial(closed_means, prompt, output, clients))
        yield cell(f"{closed_loop.PROFILE}, {clients} clients", "tpot", seconds, found)


Moved = tuple[Mapping[str, float], Mapping[str, float], Mapping[str, float]]
"""Logarithms of predicted metrics, and their derivatives by the two factors."""


def moved(cost: StepCost, predict: Callable[[Scaled], Mapping[str, float]]) -> Moved:
    """The logarithm of each metric, and by how much it moves with the duration of steps without and with prompts."""

    def logs(decode: float = 0.0, prompts: float = 0.0) -> dict[str, float]:
        found = predict(Scaled(cost, math.exp(decode), math.exp(prompts)))
        return {name: math.log(value) for name, value in found.items()}

    here = logs()
    sides = ((logs(decode=STEP), logs(decode=-STEP)), (logs(prompts=STEP), logs(prompts=-STEP)))
    decode, prompts = ({name: (up[name] - down[name]) / (2 * STEP) for name in here} for up, down in sides)
    return here, decode, prompts


def cell(group: str, metric: str, seconds: float, found: Moved) -> Cell:
    """A metric of a row with its error."""
    here, decode, prompts = found
    return Cell(group, metric, math.log(seconds) - here[metric], decode[metric], prompts[metric])


def means(made: Scenario, workload: LoadedWorkload, price: Scaled) -> dict[str, float]:
    """Mean TPOT and TTFT of a scenario with this cost, s."""
    summary = slotstep.run(made, workload=workload, price=price).summary
    return {metric: summary[f"{metric}_s"]["mean"] for metric in ("tpot", "ttft")}


def closed_means(prompt: int, output: int, clients: int, price: Scaled) -> dict[str, float]:
    """Mean TPOT of a closed loop with this cost, s."""
    return {"tpot": closed_loop.simulated(prompt, output, clients, price=price)}


def fitted_cells(page: str) -> Iterator[Cell]:
    """Median TPOT and TTFT of the held-out runs in the text of docs/fidelity.md.

    Every error counts as one of the steps: of decodes in TPOT, with prompts in TTFT. Where requests wait for each
    other it is larger than that of the steps, and so are the sizes.
    """
    for section in re.split(r"^## |^### |^llama|^mixtral", page, flags=re.MULTILINE):
        heads: list[str] = []
        for line in section.splitlines():
            columns = [column.strip() for column in line.split("|")[1:-1]]
            if "TPOT p50" in columns:
                heads = columns
            if "held out" not in columns or not heads:
                continue
            row = dict(zip(heads, columns, strict=True))
            for metric in ("tpot", "ttft"):
                error = -math.log1p(float(row[f"{metric.upper()} p50"].rstrip("%")) / 100)
                slope = (1.0, 0.0) if metric == "tpot" else (0.0, 1.0)
                yield Cell(family(row["run"]), metric, error, *slope)


def family(run: str) -> str:
    """The model of a run of docs/fidelity.md by its name: the tenants' is Qwen3-14B."""
    found = re.search(r"llama-2-7b|llama-2-70b|mixtral", run)
    return found[0] if found else "qwen3-14b"


def scenario(row: Row, stated: bool) -> Scenario:
    """The closed loop of a row, whose cost is given when it runs; `stated`: its protocol is that of InferenceX."""
    clients = int(row["batch_size"])

    def length(most: int) -> Any:
        return {"uniform": {"minimum": round(0.8 * most), "maximum": most}} if stated else int(most)

    prompt, output = int(row["isl"]), int(row["osl"])
    engine: dict[str, Any] = {
        "slots": clients,
        "token_budget": BUDGET,
        "pages": clients * (2 + (prompt + output) // 16),
    }
    if row["backend"] == "vllm":
        engine |= {"preset": "vllm", "prefix_cache": False}
    requests: dict[str, Any] = {"requests": ROUNDS * clients, "arrivals": {"at_once": {}}}
    return slotstep.parse(
        {
            "workload": {"synthetic": {**requests, "prompt": length(prompt), "output": length(output)}},
            "clients": {"closed": {"clients": clients}},
            "engine": engine,
            "cost": {"unit": "1ms"},
        },
        allow_large=True,
    )
