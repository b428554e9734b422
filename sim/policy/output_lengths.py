"""Lengths of the outputs of ended requests: how many of the last ones were longer than a number of tokens.

Requests that still run are not counted: right after the start, when only short ones have ended, long outputs are
underestimated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


class OutputLengths:
    """The last `window` output lengths, in tokens. Raises ValueError for a window below 1."""

    def __init__(self, window: int, lengths: Iterable[int] = ()) -> None:
        if window < 1:
            raise ValueError(f"window is {window}; expected at least 1")
        self.recent = deque(lengths, maxlen=window)
        self.counted: Counts | None = None

    def add(self, tokens: int) -> None:
        """Add the length of an output that has ended; with more than `window`, the oldest is dropped."""
        self.recent.append(tokens)
        self.counted = None

    @property
    def longer(self) -> Counts:
        """How many lengths are above 0, 1, 2, ... tokens: int64 of shape (longest + 1,), the last is 0."""
        if self.counted is None:
            lengths = np.bincount(np.fromiter(self.recent, np.int64), minlength=1)
            self.counted = len(self.recent) - np.cumsum(lengths)
        return self.counted
