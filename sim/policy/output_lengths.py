"""How long outputs are, as far as ended requests tell: how many of the last ones were longer than so many tokens.

Knows nothing of requests that still run, so right after the start, when only short ones have ended, it knows too
little of long ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


class OutputLengths:
    """The last `window` lengths that were added, in tokens. Raises ValueError for a window below 1."""

    def __init__(self, window: int, lengths: Iterable[int] = ()) -> None:
        if window < 1:
            raise ValueError(f"window is {window}; expected at least 1")
        self.recent = deque(lengths, maxlen=window)
        self.counted: Counts | None = None

    def add(self, tokens: int) -> None:
        """An output has ended with so many tokens; the oldest one is forgotten if there are too many."""
        self.recent.append(tokens)
        self.counted = None

    @property
    def longer(self) -> Counts:
        """How many are longer than 0, 1, 2, ... tokens; the last is 0."""
        if self.counted is None:
            lengths = np.bincount(np.fromiter(self.recent, np.int64), minlength=1)
            self.counted = len(self.recent) - np.cumsum(lengths)
        return self.counted
