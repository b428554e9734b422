"""An instrumented vLLM on H100s, three models: fitted on the codegen run of each, the model's other runs predicted.

    python -m benchmarks.fidelity.inference_perf DATA

And by transfer: the coefficients of Qwen3-14B (`benchmarks.fidelity.tenants`) rescaled by shape to Llama-2-7B on the
same GPU, with only the host term fitted, on the codegen run. Overloaded runs (reasoning) are predicted too.

The logs do not contain the prompts, but imply them: lengths repeat with a period of 100, and after 100 requests the
time to first token drops (`first_round`). The client sent the same 100 prompts again and again, and the engine, which
caches prefixes by default, computed each of them once. So the n-th request has the prompt n modulo 100.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.fidelity.rows import Row
from benchmarks.fidelity.runs import ENGINES, Judged, amplified, judge, judged_table, part_of
from calibrate.fit.from_log import LogFit, fit
from calibrate.fit.initial import prior
from calibrate.fit.rescale import carried
from calibrate.hardware.devices import DEVICES
from calibrate.models.registry import architecture
from calibrate.profiles.profile import named
from sim.cost.forms import Roofline
from slotstep.validation import measured_runs
from slotstep.validation.measured_runs import Run
from slotstep.validation.validation import compared_run

SUITE = "inference-perf, vLLM on H100"
TRANSFER = "transfer by shape, Qwen3-14B to Llama-2-7B"
FOLDER = "traces/gt_h100_inference_perf"
FITTED_ON = "codegen"
OVERLOADED = "reasoning"
MODELS = {"llama-2-7b": 1, "llama-2-70b": 4, "mixtral-8x7b": 2}
"""And the devices that share each."""
STAGE_S = 600
PROMPTS = 100
"""Different prompts of each run, sent in turn."""
PARTS = ((0, 120, 0), (600, 720, PROMPTS))
"""Seconds of the fitted runs that are used, of each of their two rates, and requests that only fill the cache."""
BOUNDS = {("e2e_s", "p50"): 0.05}
TRANSFER_BOUNDS = {("e2e_s", "mean"): 0.10}
COLUMNS = (
    ("ttft_s", "p50"), ("ttft_s", "p99"), ("tpot_s", "p50"), ("e2e_s", "mean"), ("e2e_s", "p50"), ("e2e_s", "p99"),
    ("throughput", "1/s"),
)  # fmt: skip
PROFILE = "h100-qwen3-14b-vllm"


def runs(data: Path) -> dict[str, list[Run]]:
    """The runs of each model, each on an engine with the pages of its log."""
    experiments = json.loads((data / FOLDER / "experiments.json").read_text())
    pages = {each["experiment"]: each["config"]["kv_blocks_total_gpu"] for each in experiments}
    found: dict[str, list[Run]] = {model: [] for model in MODELS}
    for file in sorted((data / FOLDER).glob("*.csv.gz")):
        name = file.name.removesuffix(".csv.gz")
        model = next(model for model in MODELS if model in name)
        blocks = f"engine.num_gpu_blocks={pages[name]}"
        found[model] += measured_runs.runs([file], ENGINES / "h100-inference-perf.yaml", [blocks], PROMPTS)
    return found


def again(run: Run, after: int) -> float:
    """The share of requests whose prompt is as long as that of the one `after` places before."""
    lengths = np.array([request.prompt for request in run.made.requests])
    return float((lengths[:-after] == lengths[after:]).mean())


def first_round(run: Run) -> tuple[float, float]:
    """Median measured TTFT, s, of the last 50 requests of the first round of prompts, and of the next 50."""
    ttft = run.frame.sort_values("rank", kind="stable")["ttft_s"].to_numpy(float)
    return float(np.nanmedian(ttft[PROMPTS - 50 : PROMPTS])), float(np.nanmedian(ttft[PROMPTS : PROMPTS + 50]))


def evidence(of_all: Sequence[Run]) -> str:
    """A line per run that is not overloaded: the evidence in its log that prompts repeat."""
    heads = f"| run | as long as {PROMPTS} places before | median TTFT of requests 51 to 100 | 101 to 150 |"
    lines = f"{heads}\n|---|---:|---:|---:|\n"
    for run in of_all:
        if OVERLOADED not in run.name:
            cold, warm = first_round(run)
            lines += f"| {run.name} | {again(run, PROMPTS):.1%} | {1e3 * cold:.1f} ms | {1e3 * warm:.1f} ms |\n"
    return lines


def fitted(model: str, of_model: Sequence[Run]) -> LogFit:
    """The fit to two parts of the model's codegen run."""
    known = prior(architecture(model), DEVICES["h100-sxm"], tensor_parallel=MODELS[model])
    (run,) = (run for run in of_model if FITTED_ON in run.name)
    return fit([part_of(run, *part) for part in PARTS], start=known.start, within=known.within, draws=50)


def to_llama() -> Roofline:
    """Qwen3-14B's coefficients at Llama-2-7B's shape."""
    cost = named(PROFILE).cost()
    assert isinstance(cost, Roofline)
    return carried(cost, architecture("qwen3-14b"), architecture("llama-2-7b"))


def transferred(of_model: Sequence[Run], start: Roofline) -> LogFit:
    """Those coefficients with a host term fitted to the codegen run."""
    delay = int(named(PROFILE).content["details"]["client_delay_ns"])
    (run,) = (run for run in of_model if FITTED_ON in run.name)
    return fit([part_of(run, *part) for part in PARTS], start=start, delay=delay, free=["host"], starts=1, draws=50)


def predictions(
    suite: str, of_model: Sequence[Run], found: LogFit, bounds: dict[tuple[str, str], float]
) -> list[Judged]:
    """Every run of a model, predicted whole; an overloaded one has no bounds."""
    made = []
    for run in of_model:
        part = "overloaded" if OVERLOADED in run.name else "fitted in part" if FITTED_ON in run.name else "held out"
        made.append(
            judge(suite, run, part, found.cost, found.delay, {} if part == "overloaded" else bounds, "codegen")
        )
    return made


def survivors(of_model: Sequence[Run], found: LogFit) -> str:
    """Requests that timed out in the overloaded runs, measured and predicted."""
    lines = ""
    for run in of_model:
        if OVERLOADED in run.name:
            result = run.at(found.cost, found.delay).result()
            late = int((run.frame["status"] == "timed_out").sum())
            lost = int((~run.frame["replayed"]).sum())
            said = int((result.requests["status"] == "timed_out").sum())
            lines += (
                f"- {run.name}: {late:,} of {len(run.frame):,} timed out when measured, {lost:,} of them without "
                f"lengths and so not replayed; of the {len(result.requests):,} replayed {said:,} are predicted to. "
                "Those who are missing were served for a while: nothing is concluded from this run.\n"
            )
    return lines


def by_stage(run: Run, found: LogFit) -> str:
    """The mean E2E of the requests of a run's first ten minutes and of the others, which came at another rate."""
    pairs = compared_run(run.at(found.cost, found.delay)).pairs
    begun = {request.id: request.arrival / 1e9 for request in run.made.requests}
    early = pairs["id"].map(begun) < STAGE_S
    lines = ""
    for words, part in (("first ten minutes", pairs[early]), ("rest", pairs[~early])):
        error = part["e2e_s_predicted"].mean() / part["e2e_s_measured"].mean() - 1
        lines += f"- {run.name}, {words}, {len(part) / STAGE_S:.0f} requests/s: mean E2E {error:+.1%}\n"
    return lines


def terms(found: LogFit) -> str:
    """The fitted terms with their 90% intervals, in one line."""
    each = [
        f"{name} {getattr(found.cost, name, found.delay):.4g} ns ({low:.4g} to {high:.4g})"
        for name, (low, high) in found.intervals.items()
    ]
    return f"fitted in {found.cpu_s:.0f} s of CPU time: {', '.join(each)}"


def by_shape(start: Roofline) -> str:
    """The carried terms in one line."""
    names = ("weight_pass", "per_token", "per_context_token")
    return f"Carried: {', '.join(f'{name} {getattr(start, name):.4g} ns' for name in names)}."


def report(data: Path) -> tuple[str, list[Row]]:
    """The two sections of docs/fidelity.md, and every row."""
    by_model = runs(data)
    text, rows = evidence([run for of_model in by_model.values() for run in of_model]) + "\n", []
    for model, of_model in by_model.items():
        found = fitted(model, of_model)
        judged = predictions(SUITE, of_model, found, BOUNDS)
        rows += [row for each in judged for row in each.rows]
        grown = amplified(of_model, judged, found.cost, found.delay)
        text += f"{model}, {terms(found)}.\n\n{judged_table(judged, COLUMNS)}\n"
        text += f"{grown}{survivors(of_model, found)}\n"
    llama = by_model["llama-2-7b"]
    start = to_llama()
    found = transferred(llama, start)
    judged = predictions(TRANSFER, llama, found, TRANSFER_BOUNDS)
    rows += [row for each in judged for row in each.rows]
    text += f"### {TRANSFER}\n\n{by_shape(start)}\n\n"
    text += f"Bound: mean E2E 10%; {terms(found)}.\n\n{judged_table(judged, COLUMNS)}\n"
    text += "".join(by_stage(run, found) for run in llama if "general" in run.name)
    return text, rows


def main() -> None:
    """Print the sections."""
    print(report(Path(sys.argv[1]))[0])


if __name__ == "__main__":
    main()
