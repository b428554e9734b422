"""What a plan compares: GPUs, each with how many of them share a model, under each engine, as scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calibrate.hardware.devices import DEVICES
from slotstep.runs.loading import parse
from slotstep.scenario.presets import PRESETS
from traces.errors import BadInput, nearest

ALIASES = {"h100": "h100-sxm", "a100": "a100-sxm-80gb", "h200": "h200-sxm"}
DEGREES = (1, 2, 4, 8)
FURTHER = 2
"""How many degrees are compared, from the smallest that fits on."""
SHARE = 0.9
"""Of the memory of a GPU that the engine may use."""


@dataclass(frozen=True)
class Candidate:
    """One engine on so many GPUs, and its scenario without a workload; `refused` says why it cannot run."""

    gpu: str
    tensor_parallel: int
    engine: str
    scenario: dict[str, Any]
    refused: str | None = None

    @property
    def name(self) -> str:
        """`h100-sxm x2 vllm`."""
        return f"{self.gpu} x{self.tensor_parallel} {self.engine}"


def gpus(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names of devices, and a line for each alias. Raises BadInput for an unknown name, or one given twice."""
    names, said = [], []
    for name in given:
        full = ALIASES.get(name.lower(), name.lower())
        if full not in DEVICES:
            raise BadInput(f"--gpus {name}: unknown; did you mean {nearest(full, [*DEVICES, *ALIASES])}?")
        if full != name.lower():
            said.append(f"{name} is taken as {full}")
        if full in names:
            raise BadInput(f"--gpus {name}: {full} is named twice")
        names.append(full)
    return names, said


def engines(given: Sequence[str]) -> list[str]:
    """The names of presets. Raises BadInput for an unknown one."""
    for name in given:
        if name not in PRESETS:
            raise BadInput(f"--engines {name}: unknown; did you mean {nearest(name, PRESETS)}?")
    return list(given)


def candidates(
    model: str,
    devices: Sequence[str],
    presets: Sequence[str],
    *,
    content: bool,
    degrees: Sequence[int] = (),
    dtype: str | None = None,
) -> list[Candidate]:
    """Every GPU under every engine with every degree, in this order; refused ones too.

    content  whether the log says what is in its prompts; if not, no prefix cache is simulated
    degrees  of tensor parallelism; none: the smallest that fits, and the next

    Raises BadInput for an unknown model.
    """
    found = []
    for device in devices:
        for preset in presets:
            fitting = 0
            for degree in degrees or DEGREES:
                made = candidate(model, device, preset, degree, content, dtype)
                fitting += made.refused is None
                found.append(made)
                if not degrees and fitting == FURTHER:
                    break
    return found


def candidate(model: str, device: str, preset: str, degree: int, content: bool, dtype: str | None) -> Candidate:
    """One candidate, refused if the model does not fit."""
    shape = {"model": model, "device": device, "tensor_parallel": degree, "engine": preset}
    engine: dict[str, Any] = {"preset": preset, "fit": SHARE}
    scenario = {
        "name": f"{device}-x{degree}-{preset}",
        "engine": engine if content else {**engine, "prefix_cache": False},
        "cost": {"shape": shape if dtype is None else {**shape, "dtype": dtype}},
    }
    refused = None
    try:
        parse({**scenario, "workload": {"requests": [{"output": 1}]}})
    except BadInput as error:
        text = str(error)
        if "unknown" in text:
            raise BadInput(f"--model {model}: {text.partition('cost.shape: ')[2] or text}") from None
        refused = text.partition("cost.shape: ")[2] or text.partition("engine.fit: ")[2] or text
    return Candidate(device, degree, preset, scenario, refused)
