"""Every check and measurement on a machine with a GPU, as one command.

    python -m calibrate.gpu.gpu_check --out DIR [--scale full|tiny] [--model NAME]

Correctness checks, peaks, attention kernels, the grid of steps, the fit, and replays at three loads; each stage is a
process of its own, within one deadline. `results.json` grows with every result, `summary.md` has them beside their
aims, and all else is in an archive. `--scale tiny` runs every stage on a CPU. Needs torch, triton, numpy, pandas,
scipy, PyYAML and matplotlib, and no network; imports neither SimPy nor pydantic. Exit code 1 if a stage or a check
failed, or a prediction is beyond what is allowed; 3 if one could not be judged.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrate.decoder.engine.protocol import CannotRun
from calibrate.gpu.check import Check, engine_ways, fitted_way
from calibrate.gpu.config import MICRO, SCALES, Scale
from calibrate.gpu.run_stages import Results, Stage, archive, run_stages
from calibrate.gpu.stages import WORK
from calibrate.gpu.summary import markdown
from calibrate.measure.run_log import write_whole
from calibrate.models.decoder_shape import ModelShape, model_shape

STAGES = (
    Stage("machine", 40),
    Stage("correctness", 120),
    Stage("peaks", 45),
    Stage("kernels", 90),
    Stage("steps", 160, engine_ways),
    Stage("fit", 45, fitted_way),
    Stage("validation", 220, fitted_way),
)
RESULTS, SUMMARY = "results.json", "summary.md"


def run(out: Path, scale: Scale, forwarded: Sequence[str]) -> int:
    """All stages, the most important first; the exit code."""
    began, results = time.monotonic(), Results(out / RESULTS)

    def command(stage: str, way: str) -> list[str]:
        own = ["-m", "calibrate.gpu.gpu_check", "--out", str(out), "--stage", stage, "--way", way]
        return [sys.executable, *own, *forwarded]

    def summarise() -> None:
        text = markdown(results.read(), scale.anchor, time.monotonic() - began)
        write_whole(out / SUMMARY, text)

    run_stages(STAGES, command, out, results, scale.seconds, summarise)
    archive(out, (RESULTS, SUMMARY))
    return exit_code(results.read())


def exit_code(found: Mapping[str, Any]) -> int:
    """0: everything passed; 1: a stage or a check failed, or a prediction is beyond; 3: one could not be judged."""
    stages = found["stages"]
    whole = all(stages[stage.name]["way"] is not None and not stages[stage.name]["failed"] for stage in STAGES)
    checks = found.get("correctness", {}).get("checks", [])
    verdicts = [load["verdict"] for load in found.get("validation", {}).get("loads", [])]
    if not whole or any(each["passed"] is False for each in checks) or "beyond" in verdicts:
        return 1
    return 3 if "not measurable here" in verdicts else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="gpu_check", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="an empty folder, or a new one")
    parser.add_argument("--scale", choices=sorted(SCALES), default="full")
    parser.add_argument("--model", default=None, help="llama-3.1-8b, or a tiny shape of its own at --scale tiny")
    parser.add_argument("--seconds", type=float, default=None, help="for all stages")
    parser.add_argument("--stage", choices=sorted(WORK), help="only this stage, into a folder of such results")
    parser.add_argument("--way", default="", help="of the stage")
    given = parser.parse_args(arguments)
    scale = SCALES[given.scale] if given.seconds is None else replace(SCALES[given.scale], seconds=given.seconds)
    try:
        shape = model_shape(given.model or "llama-3.1-8b") if given.model or given.scale == "full" else MICRO
        if given.stage:
            return one_stage(given.stage, given.way, given.out, scale, shape)
        from calibrate.decoder.engine.device import device_of

        device_of(scale.device)
        if given.out.exists() and any(given.out.iterdir()):
            raise ValueError(f"{given.out}: is not empty; expected a new folder")
        given.out.mkdir(parents=True, exist_ok=True)
        chosen = ["--scale", given.scale, *(["--model", given.model] if given.model else [])]
        code = run(given.out.resolve(), scale, chosen)
    except (CannotRun, ValueError, ImportError) as error:
        print("error:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    print((given.out / SUMMARY).read_text(encoding="utf-8"))
    return code


def one_stage(name: str, way: str, out: Path, scale: Scale, shape: ModelShape) -> int:
    """Run a stage in this process; its errors are raised."""
    WORK[name](Check(name, out, scale, shape, way, Results(out / RESULTS)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
