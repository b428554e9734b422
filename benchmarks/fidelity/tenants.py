"""vLLM 0.23.0 on one H100, Qwen3-14B, tenants at several rates: fitted on three runs, every other one predicted.

    python -m benchmarks.fidelity.tenants DATA [PROFILE.yaml]

With a second argument the shipped profile is written there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fidelity.runs import ENGINES, Judged, amplified, judge, judged_table
from calibrate.fit.from_log import LogFit, fit
from calibrate.fit.initial import prior
from calibrate.fit.rescale import Attained, attained
from calibrate.hardware.devices import DEVICES, GIB
from calibrate.models.registry import architecture
from calibrate.profiles.profile import Profile, profile
from sim.cost.forms import Curve, Roofline
from slotstep.validation import measured_runs
from slotstep.validation.measured_runs import Run
from slotstep.validation.provenance import coefficients

SUITE = "tenants, vLLM 0.23.0 on H100, Qwen3-14B"
NAME = "h100-qwen3-14b-vllm"
FOLDER = "traces/gt_h100_vllm023_tenants"
FITTED = ("sweep_rate__agg_2rps__vanilla", "sweep_rate__agg_8rps__vanilla", "w5_sweep__agg24")
BOUNDS = {
    ("e2e_s", "p50"): 0.03, ("e2e_s", "p99"): 0.05, ("ttft_s", "p50"): 0.05, ("ttft_s", "p99"): 0.10,
    ("throughput", "1/s"): 0.03,
}  # fmt: skip
COLUMNS = (
    ("ttft_s", "p50"), ("ttft_s", "p99"), ("tpot_s", "p50"), ("e2e_s", "mean"), ("e2e_s", "p50"), ("e2e_s", "p99"),
    ("throughput", "1/s"),
)  # fmt: skip


def runs(data: Path) -> list[Run]:
    """All runs."""
    files = sorted((data / FOLDER).glob("*.trace.csv.gz"))
    return measured_runs.runs(files, ENGINES / "h100-tenants.yaml")


def fitted(every: Sequence[Run]) -> LogFit:
    """The fit to three of the runs; it uses nothing of the others."""
    known = prior(architecture("qwen3-14b"), DEVICES["h100-sxm"])
    used = [run.for_fit() for run in every if run.name in FITTED]
    return fit(used, start=known.start, within=known.within, draws=100)


def predictions(every: Sequence[Run], found: LogFit) -> list[Judged]:
    """Every run, predicted whole."""
    return [
        judge(
            SUITE, run, "fitted" if run.name in FITTED else "held out", found.cost, found.delay, BOUNDS, "three cells"
        )
        for run in every
    ]


def physical(cost: Curve) -> list[Attained]:
    """The coefficients as bandwidths and rates of this model on this device."""
    assert isinstance(cost, Roofline)
    return attained(cost, architecture("qwen3-14b"), DEVICES["h100-sxm"])


def rates_table(found: LogFit) -> str:
    """The coefficients as bandwidths and rates, beside the data sheet."""
    lines = [
        "| coefficient | ns | 5% to 95% | is | attained | data sheet | share |",
        "|---|---:|---:|---|---:|---:|---:|",
    ]
    known = {each.term: each for each in physical(found.cost)}
    for term, (low, high) in found.intervals.items():
        value = getattr(found.cost, term, found.delay)
        row = f"| {term} | {value:,.4g} | {low:,.4g} to {high:,.4g} "
        if term in known:
            each = known[term]
            share = each.value / each.sheet
            row += f"| {each.what} | {each.value / 1e12:.2f}e12 | {each.sheet / 1e12:.2f}e12 | {share:.0%} |"
        else:
            row += "| | | | |"
        lines.append(row)
    return "\n".join(lines) + "\n"


def shipped(found: LogFit, judged: Sequence[Judged]) -> Profile:
    """The profile of the fit; residuals are mean sizes of relative errors over the runs."""
    residuals = {
        f"{part.replace(' ', '_')}_{metric.removesuffix('_s')}_{statistic}": mean(
            [abs(row.error) for each in judged if each.part == part for row in each.rows
             if (row.metric, row.statistic) == (metric, statistic)]
        )
        for part in ("fitted", "held out")
        for metric, statistic in (("ttft_s", "p50"), ("e2e_s", "p50"), ("e2e_s", "p99"))
    }  # fmt: skip
    return profile(
        {"roofline": coefficients(found.cost)},
        name=NAME,
        device="H100 SXM",
        memory=80 * GIB,
        software={"vllm": "0.23.0"},
        model={
            "name": "qwen3-14b",
            **{k: v for k, v in architecture("qwen3-14b").described().items() if k != "name"},
        },
        dtype="bfloat16",
        tensor_parallel=1,
        page_size=16,
        date="2026-11-30",
        method="fitted to measured requests of three serving runs (2/s, 8/s, saturated) with the simulator inside "
        "the fit; residuals are mean sizes of relative errors over runs",
        residuals=residuals,
        source="per-request measurements published in inference-sim/residency-vllm@2641b576210e",
        licence="the measurements have no licence and are not part of this; the coefficients are ours",
        range={"sequences": 256, "context": 288608, "tokens": 8192, "position": 4224},
        not_included=[
            f"{found.delay / 1e6:.2g} ms between client and engine, once per request (clients.delay)",
            "attention of prompts by itself: prompts in the fitted runs had one length, 1024 tokens",
        ],
        details={
            "client_delay_ns": found.delay,
            "intervals": {name: [float(f"{bound:.4g}") for bound in both] for name, both in found.intervals.items()},
            "not_identified": found.lines(),
        },
    )


def mean(values: Sequence[float]) -> float:
    """The mean of the values."""
    return sum(values) / len(values)


def report(data: Path) -> tuple[str, LogFit, list[Judged]]:
    """The section of docs/fidelity.md, the fit, and every prediction."""
    every = runs(data)
    found = fitted(every)
    judged = predictions(every, found)
    unseen = [each for each in judged if each.part == "held out"]
    met = sum(not each.misses for each in unseen)
    text = (
        f"Fitted on {', '.join(FITTED)} (of each, what ended before its 2,000th request was sent) in "
        f"{found.cpu_s:.0f} s of CPU time; every other cell is predicted. Bounds: E2E p50 3%, p99 5%; TTFT p50 5%, "
        "p99 10%; throughput 3%. "
        f"{met} of {len(unseen)} unseen cells are within all of them.\n\n{judged_table(judged, COLUMNS)}\n"
        f"{rates_table(found)}\n" + "".join(f"- {line}\n" for line in found.lines())
    )
    return text + amplified(every, judged, found.cost, found.delay), found, judged


def main() -> None:
    """Print the section; write the profile if a file is named."""
    text, found, judged = report(Path(sys.argv[1]))
    print(text)
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(shipped(found, judged).text())


if __name__ == "__main__":
    main()
