"""Named streams of random numbers: one seed, a generator of its own for every name.

A stream depends on the seed and its name alone, so adding one never moves another. The same numpy draws
the same numbers from it in any process; numpy does not promise that its next version draws the same.
Knows nothing of what is drawn.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Stream:
    """The stream called `name` under `seed`; `stream / "part"` is another, called `name/part`."""

    seed: int
    name: str

    def __truediv__(self, part: str) -> Stream:
        return Stream(self.seed, f"{self.name}/{part}")

    def generator(self) -> np.random.Generator:
        """A fresh generator at the start of this stream, seeded with SHA-256 of `seed/name`."""
        digest = hashlib.sha256(f"{self.seed}/{self.name}".encode()).digest()
        return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
