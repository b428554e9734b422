"""Pages on the host: the copies by which a sequence is swapped out and in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from calibrate.decoder.model.attention_metadata import Cache

AT_ONCE = 32
"""Pages gathered on the device for one round of copies."""


class HostPages:
    """Room for `pages` pages, each contiguous; pinned where the device is a GPU, so that copies overlap with it."""

    def __init__(self, cache: Cache, pages: int) -> None:
        layers, both, _, heads, size, width = cache.data.shape
        self.cache = cache.data
        self.room = torch.empty(
            (pages, layers, both, heads, size, width),
            dtype=cache.data.dtype,
            pin_memory=cache.data.is_cuda and pages > 0,
        )

    def leave(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy pages out: (device page, host page)."""
        for pages, places in rounds(pairs):
            gathered = self.cache[:, :, self.index(pages)].movedim(2, 0).contiguous()
            for page, place in zip(gathered, places, strict=True):
                self.room[place].copy_(page, non_blocking=True)

    def come_back(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy pages in: (host page, device page)."""
        for places, pages in rounds(pairs):
            gathered = self.cache.new_empty((len(places), *self.room.shape[1:]))
            for page, place in zip(gathered, places, strict=True):
                page.copy_(self.room[place], non_blocking=True)
            self.cache[:, :, self.index(pages)] = gathered.movedim(0, 2)

    def index(self, pages: Sequence[int]) -> Tensor:
        """Page numbers on the cache's device, without waiting for what runs there."""
        numbers = torch.tensor(pages)
        if self.cache.is_cuda:
            numbers = numbers.pin_memory()
        return numbers.to(self.cache.device, non_blocking=True)


def rounds(pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The pairs in groups of AT_ONCE, each as sources and targets."""
    for start in range(0, len(pairs), AT_ONCE):
        sources, targets = zip(*pairs[start : start + AT_ONCE], strict=True)
        yield sources, targets
