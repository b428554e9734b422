"""Make the profiles that ship with slotstep from public tables.

    python -m benchmarks.shipped DATA [FOLDER]

DATA is the folder of public data (its README names the sources); FOLDER is where the profiles are written, by default
where they ship from. The tables themselves are not shipped.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd

from calibrate.compose.compose import EVEN, HOST, composed_profile
from calibrate.compose.operators import read
from calibrate.compose.step_sums import compose_sums
from calibrate.hardware.devices import DEVICES, GIB
from calibrate.models.registry import architecture
from calibrate.profiles.profile import Profile, profile
from reports.files import write_text

SHIPPED = Path(__file__).parent.parent / "calibrate" / "profiles"

OPERATORS: dict[str, tuple[str, str, int, dict[str, Any]]] = {
    "rtx4090-llama-3.1-8b": (
        "RTX4090__Llama-3.1-8B__tp1", "llama-3.1-8b", 1, {"device": "NVIDIA GeForce RTX 4090", "memory": 24 * GIB},
    ),
    "rtxpro6000-llama-3.1-8b": (
        "RTXPRO6000__Llama-3.1-8B__tp1", "llama-3.1-8b", 1, {"device": "NVIDIA RTX PRO 6000", "memory": 96 * GIB},
    ),
    "rtxpro6000-qwen3-32b-tp2": (
        "RTXPRO6000__Qwen3-32B__tp2", "qwen3-32b", 2, {"device": "NVIDIA RTX PRO 6000", "memory": 96 * GIB},
    ),
}  # fmt: skip
"""By name: the folder, the model, devices that share it, and what the folder's name says of the device."""

MULTIPROCESSORS = {"NVIDIA GeForce RTX 4090": 128, "NVIDIA RTX PRO 6000": 188}
"""By device, of NVIDIA's data sheets."""

SUMS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "h200-llama-3.1-8b": ("h200_sxm", "vllm", {"device": "NVIDIA H200 SXM", "memory": 141 * 10**9}),
    "h100-llama-3.1-8b": ("h100_sxm", "vllm", {"device": "NVIDIA H100 SXM", "memory": 80 * GIB}),
    "a100-llama-3.1-8b": ("a100_sxm", "vllm", {"device": "NVIDIA A100 SXM", "memory": 80 * GIB}),
    "h100-llama-3.1-8b-trtllm": ("h100_sxm", "trtllm", {"device": "NVIDIA H100 SXM", "memory": 80 * GIB}),
}
"""By name: system and backend of the rows, and what the system's name says of the device."""

METHOD = (
    "Steps that aiconfigurator sums from kernel times measured on this device, by class of operator: matrix "
    "products and the rest by tokens, attention as lines by batch, and by size of a chunk. The rise of a chunk's "
    "attention with its start is derived from longer prompts. Residuals are of whole steps against those sums."
)


def profiles(data: Path) -> list[Profile]:
    """All shipped profiles, made from the tables below `data`."""
    folder = data / "profiles"
    made = []
    for name, (source, model, devices, about) in OPERATORS.items():
        shape = architecture(model)
        made.append(
            composed_profile(
                read(folder / "llmservingsim" / source, shape, devices),
                shape,
                name=name,
                dtype="bfloat16",
                tensor_parallel=devices,
                link=DEVICES["rtx-pro-6000"].link if devices > 1 else None,
                multiprocessors=MULTIPROCESSORS[about["device"]],
                software={"vllm": "not stated by the tables; its layer profiler, eager mode"},
                date="2026-11-30",
                source=f"casys-kaist/LLMServingSim, commit 5daddb21a545, profiler/perf, {source}",
                licence="MIT, (c) 2024 CASYS Lab at KAIST",
                **about,
            )
        )
    steps = pd.read_csv(folder / "aiconfigurator" / "llama8b_steps.csv.gz")
    for name, (system, backend, about) in SUMS.items():
        rows = steps[(steps["system"] == system) & (steps["backend"] == backend)]
        found = compose_sums(rows)
        made.append(
            profile(
                {"table": found.content},
                name=name,
                dtype="bfloat16",
                tensor_parallel=1,
                model=architecture("llama-3.1-8b").described(),
                software={backend: str(rows["backend_version"].iloc[0]), "aiconfigurator-core": "0.12.0"},
                date="2026-11-29",
                method=METHOD,
                residuals=found.residuals,
                range=found.range,
                source="ai-dynamo/aiconfigurator, PyPI aiconfigurator-core 0.12.0",
                licence="Apache-2.0",
                not_included=[*HOST, EVEN],
                **about,
            )
        )
    return made


def main() -> None:
    """Write the profiles."""
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else SHIPPED
    for made in profiles(Path(sys.argv[1])):
        path = write_text(folder / f"{made.name}.yaml", made.text())
        print(f"{path}: content {made.sha256[:12]}, {len(made.text()) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
