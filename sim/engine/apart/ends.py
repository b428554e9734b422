"""Whether the memory lasts if sequences end one after the other when expected (where nothing is cached)."""

from __future__ import annotations

from collections.abc import Iterable

RESERVE = 1
"""Positions a running sequence that must stay free at each end."""


class Ends:
    """The expected ends of the sequences that run, are picked, or have asked for admission in one pass.

    Each entry is (tokens it is expected to produce still, positions that are free once it has ended).
    """

    def __init__(self, entries: Iterable[tuple[float, int]]) -> None:
        self.entries = sorted((entry for entry in entries if entry[0] > 0), key=lambda entry: entry[0])

    def ask(self, left: float, held: int) -> None:
        """Add a candidate, as SGLang does: before the first that ends no sooner, else before the last."""
        if left <= 0:
            return
        later = (at for at, entry in enumerate(self.entries) if left <= entry[0])
        self.entries.insert(next(later, max(len(self.entries) - 1, 0)), (left, held))

    def memory_lasts(self, free: float) -> bool:
        """Whether `free` positions are enough until each end, all that still run growing to it."""
        running = len(self.entries)
        for left, held in self.entries:
            if free - left * running <= RESERVE * running:
                return False
            free += held
            running -= 1
        return True
