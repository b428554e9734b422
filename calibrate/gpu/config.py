"""The sizes of the GPU check, at full scale on a GPU and for a rehearsal on a CPU; and its requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrate.measure.points import Point
from calibrate.models.decoder_shape import DType, ModelShape
from sim.request import Request


@dataclass(frozen=True)
class Scale:
    """The sizes of every stage.

    dtypes     of the correctness checks
    batches    of the timed kernels, with `contexts` and `page_sizes`
    slots      of the engine, with `token_budget`, `max_model_len` and `pages` (None: as many as fit)
    steps      seconds for the grid of steps, in at most `rounds`
    anchor     batch and context of the decode that the aims are stated for
    clients    of the closed loop
    lasts      seconds that a replay takes about; prompts and outputs have these mean lengths
    tolerance  of busy time; that of the rehearsal passes any figure, as its figures mean nothing
    seconds    for all stages
    """

    device: Literal["cpu", "cuda"]
    dtypes: tuple[DType, ...]
    backends: tuple[str, ...]
    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    page_sizes: tuple[int, ...]
    slots: int
    token_budget: int
    max_model_len: int
    pages: int | None
    steps: float
    rounds: int
    held_out: int
    anchor: tuple[int, int]
    clients: int
    lasts: float
    prompt: float
    output: float
    tolerance: float
    seconds: float


FULL = Scale(
    "cuda", ("bfloat16", "float32"), ("triton", "torch", "flashinfer"), (1, 16, 64, 128), (512, 2048, 4096), (16, 32),
    128, 2048, 8192, None, 100.0, 4, 40, (64, 2048), 64, 10.0, 512.0, 128.0, 0.03, 470.0,
)  # fmt: skip
TINY = Scale(
    "cpu", ("float32",), ("torch", "triton", "flashinfer"), (2,), (64,), (16,),
    4, 48, 160, 200, 20.0, 1, 8, (4, 64), 4, 0.3, 24.0, 8.0, 3.0, 170.0,
)  # fmt: skip
SCALES = {"full": FULL, "tiny": TINY}
MICRO = ModelShape("micro", 2, 128, 384, 4, 2, 32, 1000, dtype="float32", max_model_len=512)
"""The model of the rehearsal, unless one is given."""


def anchor(scale: Scale) -> Point:
    """The decode that the aims are stated for."""
    batch, context = scale.anchor
    return Point("decode", (context,) * batch)


def requests(scale: Scale, seed: int, count: int = 2000) -> list[Request]:
    """Requests of lognormal lengths of coefficient of variation 1, the same every time; all arrive at 0."""
    stream = np.random.default_rng(seed)
    sigma = np.sqrt(np.log(2.0))
    most = scale.max_model_len // 2 - 1
    prompts, outputs = (
        np.clip(stream.lognormal(np.log(mean) - sigma**2 / 2, sigma, count), 1, most).astype(int).tolist()
        for mean in (scale.prompt, scale.output)
    )
    return [Request(str(n), 0, *both) for n, both in enumerate(zip(prompts, outputs, strict=True))]
