"""Named random streams: one seed, and an independent generator for every name.

A stream depends only on the seed and its name, so adding a stream does not change others. The same numpy version
draws the same numbers in any process; numpy does not guarantee this across versions.
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
        """A new generator at the start of this stream, seeded with SHA-256 of `seed/name`."""
        digest = hashlib.sha256(f"{self.seed}/{self.name}".encode()).digest()
        return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
