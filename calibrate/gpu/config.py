"""The sizes of the GPU check, at full scale on a GPU and for a rehearsal on a CPU; and the requests to replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrate.measure.points import Point
from calibrate.models.decoder_shape import DType, ModelShape
from sim.request import SECOND, Request


@dataclass(frozen=True)
class Scale:
    """The sizes of every stage.

    anchor  batch and context of the decode that the aims are stated for
    rate    requests a second, for `lasts` seconds
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
    seconds: float
    extra: int | None
    rounds: int
    anchor: tuple[int, int]
    rate: float
    lasts: float
    prompt: float
    output: float
    tolerance: float


FULL = Scale(
    "cuda", ("bfloat16", "float32"), ("triton", "torch", "flashinfer"), (1, 16, 64, 128), (512, 2048, 4096), (16, 32),
    128, 2048, 8192, None, 150.0, None, 4, (64, 2048), 20.0, 45.0, 512.0, 128.0, 0.03,
)  # fmt: skip
TINY = Scale(
    "cpu", ("float32",), ("torch", "triton", "flashinfer"), (2,), (64,), (16,),
    4, 48, 160, 200, 90.0, 8, 1, (4, 64), 12.0, 2.0, 24.0, 8.0, 0.2,
)  # fmt: skip
SCALES = {"full": FULL, "tiny": TINY}
MICRO = ModelShape("micro", 2, 128, 384, 4, 2, 32, 1000, dtype="float32", max_model_len=512)
"""The model of the rehearsal, unless one is given."""


def anchor(scale: Scale) -> Point:
    """The decode that the aims are stated for."""
    batch, context = scale.anchor
    return Point("decode", (context,) * batch)


def requests(scale: Scale) -> list[Request]:
    """Poisson arrivals, lognormal lengths of coefficient of variation 1; the same every time."""
    stream = np.random.default_rng(0)
    count = max(2, round(scale.rate * scale.lasts))
    arrivals = np.cumsum(stream.exponential(1 / scale.rate, count))
    sigma = np.sqrt(np.log(2.0))
    lengths = [stream.lognormal(np.log(mean) - sigma**2 / 2, sigma, count) for mean in (scale.prompt, scale.output)]
    most = scale.max_model_len // 2 - 1
    return [
        Request(str(n), round(at * SECOND), int(np.clip(prompt, 1, most)), int(np.clip(output, 1, most)))
        for n, (at, prompt, output) in enumerate(zip(arrivals, *lengths, strict=True))
    ]
