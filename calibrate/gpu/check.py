"""One stage of the GPU check: where it writes, and the way in which it opens its engine.

An engine is opened in one of three ways, from the fastest to the plainest; the later ones are taken where an earlier
one fails.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrate.decoder.engine.opening import open_engine
from calibrate.decoder.engine.options import EngineOptions
from calibrate.fit.fit_run import Fitted
from calibrate.gpu.config import Scale
from calibrate.gpu.run_stages import Results
from calibrate.measure.run_log import write_whole
from calibrate.models.decoder_shape import DType, ModelShape

GRAPHS, EAGER, TORCH = "triton, graphs", "triton, eager", "torch"
ENGINE: Mapping[str, dict[str, Any]] = {
    GRAPHS: {"attention": "auto"},
    EAGER: {"attention": "auto", "capture_sizes": ()},
    TORCH: {"attention": "torch", "capture_sizes": ()},
}
"""The ways to open an engine. On a CPU `auto` is torch, without graphs."""


@dataclass(frozen=True)
class Check:
    """One stage of a run: where it writes, at which scale, of which model, and which way."""

    stage: str
    out: Path
    scale: Scale
    shape: ModelShape
    way: str
    results: Results

    def put(self, **values: Any) -> None:
        """Add to the results of this stage."""
        self.results.put(self.stage, **values)

    @property
    def dtype(self) -> DType:
        """Of weights and cache."""
        return self.shape.dtype if self.scale.device == "cuda" else "float32"

    @property
    def measured(self) -> Path:
        """The folder of the measured steps of this way."""
        return self.out / "measured" / self.way.replace(", ", "-")

    def engine(self) -> Any:
        """The engine of this way."""
        scale = self.scale
        options = EngineOptions(
            device=scale.device, pages=scale.pages, slots=scale.slots, token_budget=scale.token_budget,
            max_model_len=scale.max_model_len, **ENGINE[self.way],
        )  # fmt: skip
        return open_engine(self.shape, options)

    def write_profile(self, found: Fitted, about: Mapping[str, Any], host_ns: float) -> None:
        """profile.yaml: what was fitted, and `host_ns` a step."""
        made = found.profile(about, "profile", datetime.date.today().isoformat(), host_ns)
        write_whole(self.out / "profile.yaml", made.text())


def engine_ways(results: Mapping[str, Any]) -> Sequence[str]:
    """The ways to open an engine: without Triton where one of its correctness checks failed."""
    checks = results.get("correctness", {}).get("checks", [])
    broken = any("triton" in each["check"] and each["passed"] is False for each in checks)
    return (TORCH,) if broken else (GRAPHS, EAGER, TORCH)


def fitted_way(results: Mapping[str, Any]) -> Sequence[str]:
    """The way in which the steps were measured; none: they were not."""
    way = results.get("stages", {}).get("steps", {}).get("way")
    return () if way is None else (way,)
