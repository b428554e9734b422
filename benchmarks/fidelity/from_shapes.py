"""Measured runs predicted from shapes alone, with what ships: nothing is fitted, no run is looked at.

    python -m benchmarks.fidelity.from_shapes DATA

Model, device and number of devices are stated; engine settings are those that the runs log. Runs of inference-perf
sent the same 100 prompts in turn (`benchmarks.fidelity.inference_perf`). `BEFORE` has the errors of the same
predictions as they were when a shape had bytes, arithmetic and two all-reduces a layer, and no term besides.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import slotstep
from benchmarks.fidelity import inference_perf, operators, tenants
from benchmarks.fidelity.rows import Row, compared
from benchmarks.fidelity.runs import judge
from calibrate.hardware.devices import DEVICES
from calibrate.models.registry import architecture
from calibrate.profiles.analytic import from_shapes
from sim.cost.forms import Curve

SUITE = "measured runs from shapes alone"
SATURATED = ("w5_sweep__agg24", "w5_sweep__agg30", "w7_sweep__agg12", "w7_sweep__agg24")
"""Runs of the tenants in which all 256 places of the clients were taken."""
RTX = {"RTX4090__Llama-3.1-8B": "rtx-4090", "RTXPRO6000__Llama-3.1-8B": "rtx-pro-6000"}
ACCEPTED = "RTXPRO6000__Llama-3.1-8B"
METRICS = ("ttft_s", "tpot_s", "e2e_s")
MEAN_BOUND, WORST_BOUND = 0.05, 0.15
BEFORE = {
    "20260217-155451-llama-2-7b-tp1-codegen": (-0.381, -0.16, -0.163),
    "20260217-170634-llama-2-7b-tp1-reasoning": (0.06, -0.081, 0.013),
    "20260217-231439-llama-2-7b-tp1-general": (-0.344, -0.166, -0.168),
    "20260217-202857-llama-2-70b-tp4-general": (-0.563, -0.157, -0.165),
    "20260217-203421-llama-2-70b-hf-tp4-codegen": (-0.255, -0.112, -0.114),
    "20260218-065057-llama-2-70b-hf-tp4-reasoning": (-0.767, -0.197, -0.617),
    "20260218-084319-llama-2-70b-tp4-roleplay": (-0.243, -0.096, -0.098),
    "20260218-120914-mixtral-8x7b-v0-1-tp2-codegen": (-0.188, 0.015, 0.013),
    "20260218-130541-mixtral-8x7b-v0-1-tp2-general": (-0.267, -0.015, -0.019),
    "20260218-135247-mixtral-8x7b-v0-1-tp2-reasoning": (-0.831, -0.359, -0.67),
    "20260218-141024-mixtral-8x7b-v0-1-tp2-roleplay": (-0.213, 0.027, 0.024),
    "sweep_rate__agg_2rps__vanilla": (-0.106, -0.071, -0.072),
    "sweep_rate__agg_4rps__vanilla": (-0.113, -0.078, -0.08),
    "sweep_rate__agg_8rps__patched": (-0.111, -0.086, -0.087),
    "sweep_rate__agg_8rps__vanilla": (-0.124, -0.092, -0.093),
    "sweep_tenants__1T_agg_2rps__vanilla": (-0.101, -0.074, -0.075),
    "sweep_tenants__2T_agg_4rps__vanilla": (-0.119, -0.082, -0.084),
    "sweep_tenants__4T_agg_8rps__vanilla": (-0.111, -0.085, -0.086),
    "sweep_tenants__5T_agg_10rps__vanilla": (-0.14, -0.112, -0.113),
    "w5_sweep__agg12": (-0.197, -0.174, -0.175),
    "w5_sweep__agg24": (-0.469, -0.018, -0.044),
    "w5_sweep__agg30": (-0.409, -0.01, -0.036),
    "w5_sweep__agg6": (-0.128, -0.087, -0.089),
    "w7_sweep__agg12": (0.008, 0.007, 0.007),
    "w7_sweep__agg24": (0.009, 0.007, 0.008),
    "w7_sweep__agg6": (-0.027, -0.06, -0.058),
    "RTX4090__Llama-3.1-8B": (0.095, 0.063, 0.087),
    "RTXPRO6000__Llama-3.1-8B": (-0.406, -0.174, -0.233),
}
"""Errors of mean TTFT, TPOT and E2E before there were terms for kernels, prompts, contexts, links and the host."""


@dataclass(frozen=True)
class Predicted:
    """A run's name, its group (judged, overloaded or other), and its rows."""

    run: str
    group: str
    rows: tuple[Row, ...]

    def error(self, metric: str) -> float:
        """The relative error of the mean."""
        return next(row.error for row in self.rows if (row.metric, row.statistic) == (metric, "mean"))


def cost(model: str, device: str, devices: int) -> Curve:
    """The cost of shapes, as a scenario that names them gets it."""
    return from_shapes(
        architecture(model), DEVICES[device], date="computed when used", tensor_parallel=devices
    ).cost()


def of_clients(data: Path) -> Iterator[Predicted]:
    """Runs on H100s, measured at clients."""
    for model, of_model in inference_perf.runs(data).items():
        for run in of_model:
            group = "overloaded" if inference_perf.OVERLOADED in run.name else "judged"
            found = judge(SUITE, run, "", cost(model, "h100-sxm", inference_perf.MODELS[model]), 0, {}, "")
            yield Predicted(run.name, group, found.rows)
    for run in tenants.runs(data):
        group = "saturated" if run.name in SATURATED else "judged"
        found = judge(SUITE, run, "", cost("qwen3-14b", "h100-sxm", 1), 0, {}, "")
        yield Predicted(run.name, group, found.rows)


def of_operators(data: Path) -> Iterator[Predicted]:
    """Runs on the RTX 4090 and the RTX PRO 6000, measured in the engine."""
    for run in operators.RUNS:
        given = operators.scenario(data, run)
        shape = {"model": "llama-3.1-8b", "device": RTX[run.folder]}
        made = slotstep.parse({**slotstep.resolved(given), "cost": {"shape": shape}})
        found = operators.measurements(data, run)
        measured = {metric: found[metric].tolist() for metric in METRICS}
        rows = compared(SUITE, run.folder, measured, operators.predicted(slotstep.run(made)))
        yield Predicted(run.folder, "judged" if run.folder == ACCEPTED else "other", tuple(rows))


def predictions(data: Path) -> list[Predicted]:
    """Every run."""
    return [*of_clients(data), *of_operators(data)]


def report(data: Path) -> tuple[str, list[Predicted]]:
    """The section of docs/fidelity.md, and every prediction."""
    every = predictions(data)
    judged = [each.error("e2e_s") for each in every if each.group == "judged"]
    text = (
        f"Mean signed error of mean E2E over the {len(judged)} judged runs: {fmean(judged):+.1%} "
        f"(bound {MEAN_BOUND:.0%}); largest {max(judged, key=abs):+.1%} (bound {WORST_BOUND:.0%})"
    )
    before = [BEFORE[each.run][2] for each in every if each.group == "judged"]
    text += f"; before these terms {fmean(before):+.1%} and {max(before, key=abs):+.1%}"
    return f"{text}.\n\n{table(every)}", every


def table(every: Sequence[Predicted]) -> str:
    """A line per run: the errors of the means, and those before."""
    lines = [
        "| run | | TTFT | TPOT | E2E | before: TTFT | TPOT | E2E |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for each in every:
        now = [f"{each.error(metric):+.1%}" for metric in METRICS]
        then = [f"{error:+.1%}" for error in BEFORE[each.run]]
        lines.append(f"| {each.run} | {each.group} | " + " | ".join([*now, *then]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the section."""
    print(report(Path(sys.argv[1]))[0])


if __name__ == "__main__":
    main()
