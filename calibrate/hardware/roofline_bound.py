"""The least duration of a step on a device: its bytes at the measured bandwidth, or its operations at the rate.

Weights are read once a step, the cache of every row once, and every position is multiplied with every weight; nothing
else is counted, and the longer of the two is the bound. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Mapping

from calibrate.measure.points import Point
from calibrate.models.architecture import BYTES
from calibrate.models.decoder_shape import DType, ModelShape


def lower_bound_ns(shape: ModelShape, dtype: DType, point: Point, ceilings: Mapping[str, float]) -> float:
    """Nanoseconds that a step takes at least, given `read_bytes_per_s` and `matrix_flop_per_s` of `ceilings`."""
    rows = point.rows
    tokens = sum(count for _, count in rows)
    cached = sum(start + count for start, count in rows)
    pairs = sum(count * start + count * (count + 1) / 2 for start, count in rows)
    weights = shape.streamed_parameters * BYTES[dtype]
    moved = weights + cached * shape.kv_bytes_per_token(dtype)
    computed = 2.0 * tokens * shape.layers * shape.layer_parameters
    computed += 2.0 * len(rows) * shape.vocabulary * shape.hidden
    computed += 4.0 * pairs * shape.layers * shape.query_width
    return 1e9 * max(moved / ceilings["read_bytes_per_s"], computed / ceilings["matrix_flop_per_s"])
