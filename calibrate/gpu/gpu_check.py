"""Every check and measurement on a machine with a GPU, as one command; each result is written when its stage ends.

    python -m calibrate.gpu.gpu_check --out DIR [--scale full|tiny] [--model NAME]

Correctness checks, ceilings, attention kernels, the grid of steps, the fit, two replays and a simulation; and
`summary.md`, which has every result beside its aim. `--scale tiny` runs every stage on a CPU. Needs torch, triton,
numpy, pandas, scipy, PyYAML and matplotlib, and no network; imports neither SimPy nor pydantic. Exit code 1 if a
check fails or a stage raises; the stages after it run all the same.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
import traceback
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from calibrate.decoder.engine.opening import open_engine
from calibrate.decoder.engine.options import EngineOptions
from calibrate.decoder.engine.protocol import CannotRun
from calibrate.fit.fit_run import Fitted, fit
from calibrate.gpu.config import MICRO, SCALES, Scale, anchor, requests
from calibrate.measure.measure import Plan, measure
from calibrate.measure.run_log import read_about, read_lines, write_whole
from calibrate.models.decoder_shape import DType, ModelShape, model_shape
from calibrate.replay.arrival_order import ByArrival
from calibrate.replay.live import replay
from calibrate.replay.prompts import prompts
from calibrate.validate.experiment import Subject, Trial, judged
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.numbered import NumberedPool
from sim.policy.base import Policy
from sim.request import Request
from sim.service.clients import OpenLoop


@dataclass
class GpuCheck:
    """One run of the script: where it writes, its results so far, and the stages that raised."""

    out: Path
    scale: Scale
    shape: ModelShape
    began: float = field(default_factory=time.monotonic)
    found: dict[str, Any] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def stage(self, name: str, work: Callable[[], Any]) -> Any:
        """Run one stage, write its result to NAME.json and the summary; an exception is recorded, not raised."""
        began = time.monotonic()
        print(f"{began - self.began:6.1f} s  {name}", flush=True)
        try:
            self.found[name] = work()
        except Exception as error:
            self.broken.append(f"{name}: {type(error).__name__}: {error}")
            (self.out / f"{name}.error.txt").write_text(traceback.format_exc(), encoding="utf-8")
            print(f"          broke: {self.broken[-1]}", flush=True)
            self.found[name] = None
        self.found.setdefault("seconds", {})[name] = round(time.monotonic() - began, 1)
        write_whole(self.out / f"{name}.json", json.dumps(self.found[name], indent=1, default=float) + "\n")
        write_whole(self.out / "summary.md", summary(self))
        return self.found[name]

    @property
    def passed(self) -> bool:
        """Whether no stage raised and no check failed."""
        return not self.broken and all(check["passed"] is not False for check in self.found.get("correctness") or ())


def run(check: GpuCheck) -> bool:
    """All stages, the most important first; whether all passed."""
    import torch

    from calibrate.decoder.engine.executor import device_of
    from calibrate.gpu.correctness import run_checks
    from calibrate.gpu.kernel_bench import kernel_bench
    from calibrate.hardware.environment import engine_on, machine
    from calibrate.hardware.nvml import state_reader
    from calibrate.hardware.peaks import ceilings

    scale, shape = check.scale, check.shape
    device = device_of(scale.device)
    dtype: DType = shape.dtype if scale.device == "cuda" else "float32"
    read_state = state_reader(scale.device)
    check.stage("machine", lambda: machine(device) | {"state": read_state(), "model": shape.name, "dtype": dtype})
    check.stage("correctness", lambda: run_checks(device, scale.backends, scale.dtypes))
    bounds = check.stage("ceilings", lambda: ceilings(device, dtype))
    attention = (shape, device, dtype, [each for each in scale.backends if runs(each, device.type)])
    check.stage("kernels", lambda: kernel_bench(*attention, scale.batches, scale.contexts, scale.page_sizes))
    if device.type == "cuda":
        torch.cuda.empty_cache()
    options = EngineOptions(
        device=scale.device, pages=scale.pages, slots=scale.slots, token_budget=scale.token_budget,
        max_model_len=scale.max_model_len,
    )  # fmt: skip
    with open_engine(shape, options) as engine:
        engine.fill_cache(0)
        about = engine_on(engine)
        check.stage("steps", lambda: measured(check, engine, about, bounds, read_state))
        fitted: list[Fitted] = []
        check.stage("fit", lambda: fit_of(check, fitted))
        if fitted:
            check.stage("validation", lambda: validated(check, engine, fitted[0]))
    return check.passed


def runs(backend: str, device_type: str) -> bool:
    """Whether a backend's kernels run natively here: interpreted ones are not timed."""
    return device_type == "cuda" or backend == "torch"


def measured(check: GpuCheck, engine: Any, about: dict[str, Any], bounds: Any, read_state: Any) -> dict[str, Any]:
    """The grid and the anchor, into `measured/`."""
    scale = check.scale
    plan = Plan(scale.slots, scale.token_budget, scale.rounds, ragged=8, seconds=scale.seconds, extra=scale.extra)
    given = None if bounds is None else lambda: bounds
    clock = "cpu" if scale.device == "cpu" else "device"
    run_log = measure(
        engine, check.shape.vocabulary, about, check.out / "measured", plan, ceilings=given, read_state=read_state,
        clock=clock, say=print, beside=[anchor(scale)],
    )  # fmt: skip
    return {"visits": len(run_log.of("visit")), "skipped": run_log.of("skip"), "end": run_log.of("end")[-1]}


def fit_of(check: GpuCheck, fitted: list[Fitted]) -> dict[str, Any]:
    """A profile of what was measured, into profile.yaml; and the figures of the anchor."""
    folder = check.out / "measured"
    about, lines = read_about(folder), read_lines(folder)
    found = fit(lines, about)
    fitted.append(found)
    profile = found.profile(about, "profile", datetime.date.today().isoformat())
    write_whole(check.out / "profile.yaml", profile.text())
    figure(found, check.out / "fit.png")
    by_device = fit(lines, about, clock="cpu" if check.scale.device == "cpu" else "device").points.set_index("name")
    at = by_device.loc[anchor(check.scale).name]
    return {
        "residuals": found.residuals,
        "drift": found.drift.verdict,
        "clock": found.clock,
        "anchor": {"name": at.name, "device_ns": at["duration_ns"], "over_floor": at["over_floor"]},
    }


def figure(found: Fitted, path: Path) -> None:
    """Predicted over measured, each point by its kind."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    made, axes = pyplot.subplots(figsize=(7, 4))
    for kind, points in found.points.groupby("kind"):
        axes.plot(points["duration_ns"] / 1e6, 100 * points["error"], "o", label=str(kind), alpha=0.7)
    axes.axhline(0, color="0.5", lw=1)
    axes.set(xscale="log", xlabel="measured step, ms", ylabel="predicted over measured - 1, %")
    axes.legend(frameon=False)
    made.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(made)


def validated(check: GpuCheck, engine: Any, fitted: Fitted) -> dict[str, Any]:
    """Two replays of the same requests on the wall clock, and a simulation with what was fitted."""
    scale = check.scale
    pages = min(engine.pages, 2 * scale.slots * -(-scale.max_model_len // engine.page_size))
    asked = requests(scale)
    told = prompts(check.shape.vocabulary, 0)
    subject = Subject(
        lambda: OpenLoop(asked),
        lambda: Scheduler(
            Policy(ByArrival()), NumberedPool(pages, engine.page_size),
            EngineConfig(slots=scale.slots, token_budget=scale.token_budget),
        ),
        cached(told),
    )  # fmt: skip
    pacing: Literal["wall", "cpu"] = "wall" if scale.device == "cuda" else "cpu"
    first, second = (
        replay(subject.clients(), subject.scheduler(), engine, subject.prompts, pacing) for _ in range(2)
    )
    found: Trial = judged(subject, fitted, first, second, pacing, scale.tolerance)
    print("\n".join(found.judgement.lines()), flush=True)
    return found.judgement.told() | {"requests": len(asked), "steps": first.log.steps, "host": first.timing.summary()}


def cached(tokens: Callable[[Request], array[int]]) -> Callable[[Request], array[int]]:
    """The same function with each prompt computed once."""
    known: dict[str, array[int]] = {}

    def look_up(request: Request) -> array[int]:
        if request.id not in known:
            known[request.id] = tokens(request)
        return known[request.id]

    return look_up


def summary(check: GpuCheck) -> str:
    """The results so far beside their aims, as Markdown."""
    from calibrate.gpu.summary import markdown

    return markdown(check.found, check.scale.anchor, check.broken, time.monotonic() - check.began)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="gpu_check", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="an empty folder, or a new one")
    parser.add_argument("--scale", choices=sorted(SCALES), default="full")
    parser.add_argument("--model", default=None, help="llama-3.1-8b, or a tiny shape of its own at --scale tiny")
    parser.add_argument("--seconds", type=float, default=None, help="for the grid of steps")
    given = parser.parse_args(arguments)
    scale = SCALES[given.scale]
    if given.seconds is not None:
        scale = replace(scale, seconds=given.seconds)
    try:
        if given.out.exists() and any(given.out.iterdir()):
            raise ValueError(f"{given.out}: is not empty; expected a new folder")
        shape = model_shape(given.model or "llama-3.1-8b") if given.model or given.scale == "full" else MICRO
        given.out.mkdir(parents=True, exist_ok=True)
        fine = run(GpuCheck(given.out, scale, shape))
    except (CannotRun, ValueError, ImportError) as error:
        print("error:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    print((given.out / "summary.md").read_text(encoding="utf-8"))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
