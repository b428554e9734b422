"""Which attention backend: by name, or the best there is."""

from __future__ import annotations

import importlib.util
import os
from importlib.metadata import version

import numpy as np
import torch

from calibrate.decoder.attention.torch_reference import TorchAttention
from calibrate.decoder.engine.protocol import CannotRun
from calibrate.decoder.model.decoder import Attention
from calibrate.models.decoder_shape import ModelShape


def choose_attention(
    name: str, shape: ModelShape, dtype: torch.dtype, device: torch.device, rows: int, splits: int | None = None
) -> tuple[str, Attention]:
    """The backend of a name (`auto`: triton on a GPU, where its head size allows) and that name.

    `splits` fixes those of `triton`.

    Raises CannotRun for a backend that is not installed, or that does not run on this device or for this shape.
    """
    if name == "auto":
        usable = device.type == "cuda" and installed("triton") and shape.head_size in (16, 32, 64, 128, 256)
        name = "triton" if usable else "torch"
    if name == "torch":
        return name, TorchAttention(shape, dtype.itemsize)
    if not installed(name):
        raise CannotRun(f"attention {name}: {name} is not installed; expected torch, or pip install {PACKAGES[name]}")
    if name == "triton":
        return name, triton_attention(shape, dtype, device, rows, splits)
    if device.type != "cuda":
        raise CannotRun(f"attention {name}: needs a CUDA GPU; expected torch on {device.type}")
    if dtype == torch.float32 or shape.head_size not in FLASHINFER_HEADS:
        raise CannotRun(
            f"attention {name}: {dtype} and head_size {shape.head_size}; expected float16 or bfloat16, and one of "
            f"{', '.join(map(str, FLASHINFER_HEADS))}"
        )
    from calibrate.decoder.attention.flashinfer import FlashInferAttention

    return name, FlashInferAttention(shape, dtype, device)


FLASHINFER_HEADS = (64, 128, 256)
PACKAGES = {"triton": "'slotstep[calibrate]'", "flashinfer": "flashinfer-python"}


def triton_attention(
    shape: ModelShape, dtype: torch.dtype, device: torch.device, rows: int, splits: int | None
) -> Attention:
    """Our own kernels; on a CPU only where they are interpreted."""
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        raise CannotRun("attention triton: needs a CUDA GPU, or TRITON_INTERPRET=1 to interpret its kernels (slow)")
    if device.type != "cuda" and interpreter_breaks(version("triton"), np.__version__):
        raise CannotRun(
            f"attention triton: Triton {version('triton')} cannot interpret kernels with numpy {np.__version__}; "
            "expected Triton 3.7 or newer, or numpy below 2.4"
        )
    from calibrate.decoder.attention.triton_backend import TritonAttention

    try:
        return TritonAttention(shape, rows, device, splits, dtype.itemsize)
    except ValueError as error:
        raise CannotRun(str(error)) from None


def interpreter_breaks(triton: str, numpy: str) -> bool:
    """Whether a loop bound that is a tensor raises TypeError: github.com/triton-lang/triton/issues/9171."""
    return number(triton) < (3, 7) and number(numpy) >= (2, 4)


def number(release: str) -> tuple[int, ...]:
    """Major and minor number of a release."""
    return tuple(int(part) for part in release.split(".")[:2])


def installed(package: str) -> bool:
    """Whether a package can be imported."""
    return importlib.util.find_spec(package) is not None
