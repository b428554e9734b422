"""The protocol of a law of lengths, and the conversion of drawn numbers to token counts of at least 1.

Real numbers are rounded to the nearest whole number, halves to even; 0 becomes 1, and a draw above 2^31 tokens is an
error and is not truncated.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from traces.errors import BadInput
from traces.limits import MAX_TOKENS
from traces.synthetic.streams import Stream

Tokens = NDArray[np.int64]
Uniforms = NDArray[np.float64]
BELOW_ONE = 1 - 2.0**-53


class Length(Protocol):
    """A law of token counts."""

    def sample(self, stream: Stream, n: int) -> Tokens:
        """The first `n` token counts of the stream, int64. Raises BadInput for one above 2^31."""
        ...

    def quantile(self, u: Uniforms) -> Tokens:
        """The quantile function at `u` (from 0 to below 1), in tokens, int64."""
        ...


def ranks(u: Uniforms, skew: float, n: int) -> Tokens:
    """Zipf-distributed ranks from 0 to n - 1, of weight (rank + 1)^-skew, by inversion of `u`."""
    return places(zipf_sums(skew, n), u)


@lru_cache(maxsize=8)
def zipf_sums(skew: float, n: int) -> NDArray[np.float64]:
    return np.cumsum(np.arange(1, n + 1, dtype=np.float64) ** -skew)


def places(sums: NDArray[np.float64], u: Uniforms) -> Tokens:
    found: Tokens = np.minimum(np.searchsorted(sums, u * sums[-1], side="right"), len(sums) - 1)
    return found


def nearest(drawn: NDArray[np.float64], name: str) -> Tokens:
    return whole(np.rint(drawn), name)


def whole(drawn: NDArray[np.float64] | Tokens, name: str) -> Tokens:
    """Whole numbers as token counts; 0 becomes 1. Raises BadInput for one above 2^31."""
    if drawn.size and drawn.max() > MAX_TOKENS:
        raise BadInput(f"{name}: drew {drawn.max():g} tokens; expected at most {MAX_TOKENS}")
    return np.maximum(drawn, 1).astype(np.int64)
