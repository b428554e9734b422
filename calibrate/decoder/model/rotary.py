"""Rotary positions: the cosines and sines by which queries and keys are rotated."""

from __future__ import annotations

from math import pi

import torch
from torch import Tensor

from calibrate.models.decoder_shape import ModelShape, RopeScaling


def rotary_table(shape: ModelShape, positions: int, device: torch.device) -> Tensor:
    """(positions, 2, half a head) of cosines and sines, float32, computed in float64.

    Pair i of a head turns by position x base ** (-2 i / head_size) (Su et al., RoFormer, 2021).
    """
    half = torch.arange(0, shape.head_size, 2, dtype=torch.float64)
    speed = shape.rope_base ** (-half / shape.head_size)
    if shape.rope_scaling is not None:
        speed = slowed(speed, shape.rope_scaling)
    angle = torch.arange(positions, dtype=torch.float64)[:, None] * speed
    return torch.stack((angle.cos(), angle.sin()), dim=1).float().to(device)


def slowed(speed: Tensor, scaling: RopeScaling) -> Tensor:
    """Llama 3.1's frequencies: long wavelengths stretched by the factor, short ones kept, others interpolated."""
    turns = scaling.original * speed / (2 * pi)
    kept = ((turns - scaling.low_factor) / (scaling.high_factor - scaling.low_factor)).clamp(0.0, 1.0)
    return speed * (kept + (1.0 - kept) / scaling.factor)
