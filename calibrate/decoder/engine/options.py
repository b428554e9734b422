"""How a model is run: device, precision, attention backend, memory and batch sizes. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from calibrate.models.decoder_shape import DType

Backend = Literal["auto", "torch", "triton", "flashinfer"]


@dataclass(frozen=True)
class EngineOptions:
    """How a model is run.

    device           "cpu", "cuda", or "auto": a GPU if there is one
    dtype            of weights and cache; None: the model's own, float32 on a CPU
    attention        the backend; "auto": triton on a GPU where the head size allows, else torch
    page_size        positions in a page
    pages            on the device; None: as many as fit and all slots can use
    host_pages       on the host, to swap to
    memory_fraction  of the device's memory (a CPU's: what the machine has, or the process may use) used at most
    slots            most rows of a step
    token_budget     most positions that a step computes
    max_model_len    most tokens of one request, prompt and output
    threads          that a CPU computes with; CPU time is measured with one only
    capture_sizes    batches that decodes are padded to; None: on a GPU a captured graph for each of a list up to
                     `slots`, on a CPU no padding; (): no padding
    temperature      0 takes the best token, above 0 tokens are drawn
    seed             of weights and draws
    weights          a folder with a checkpoint; None: random weights
    """

    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: DType | None = None
    attention: Backend = "auto"
    page_size: int = 16
    pages: int | None = None
    host_pages: int = 0
    memory_fraction: float = 0.9
    slots: int = 64
    token_budget: int = 2048
    max_model_len: int = 4096
    threads: int = 1
    capture_sizes: tuple[int, ...] | None = None
    temperature: float = 0.0
    seed: int = 0
    weights: Path | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for an option out of its range."""
        for key in ("page_size", "slots", "token_budget", "max_model_len", "threads"):
            if getattr(self, key) < 1:
                raise ValueError(f"{key} is {getattr(self, key)}; expected at least 1")
        if self.page_size > 128:
            raise ValueError(f"page_size is {self.page_size}; expected at most 128")
        if self.pages is not None and self.pages < 1:
            raise ValueError(f"pages is {self.pages}; expected at least 1")
        if self.host_pages < 0:
            raise ValueError(f"host_pages is {self.host_pages}; expected 0 or more")
        if not 0 < self.memory_fraction <= 1:
            raise ValueError(f"memory_fraction is {self.memory_fraction}; expected above 0 and at most 1")
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature is {self.temperature}; expected 0 or more")
        for rows in self.capture_sizes or ():
            if not 1 <= rows <= self.slots:
                raise ValueError(f"capture_sizes has {rows}; expected 1 to {self.slots}, the slots")
