"""The sequences of one forward pass, as tensors: positions and pages, without requests and tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from calibrate.models.decoder_shape import ModelShape


@dataclass(frozen=True)
class AttentionMetadata:
    """A ragged batch: rows of different lengths, end to end; first those that compute one position, then the chunks.

    tables     int32 (rows, width): the physical page of every page of a row; entries beyond a row's length are
               never read
    lengths    int32 (rows): positions a row attends to, those of this pass included; 0 for a row of padding
    positions  int32 (tokens): position of each computed token in its own sequence
    owners     int32 (tokens): the row of each
    offsets    int32 (chunks + 1): where each chunk's tokens begin, counted after the decodes
    counts     positions that each row computes, and `spans` its length, both known on the host; a captured pass
               has no spans: its lengths change from run to run
    page_size  positions in a page
    decodes    rows that compute one position
    """

    tables: Tensor
    lengths: Tensor
    positions: Tensor
    owners: Tensor
    offsets: Tensor
    counts: tuple[int, ...]
    spans: tuple[int, ...]
    page_size: int
    decodes: int
    pages: Tensor = field(init=False)
    places: Tensor = field(init=False)

    def __post_init__(self) -> None:
        """Compute `pages` and `places`: the page of every computed token's keys and values, and the place in it."""
        page = torch.div(self.positions, self.page_size, rounding_mode="floor")
        object.__setattr__(self, "pages", self.tables[self.owners, page])
        object.__setattr__(self, "places", self.positions - page * self.page_size)


@dataclass(frozen=True)
class Cache:
    """Keys and values of all layers in pages: (layers, 2, pages, kv_heads, page_size, head_size).

    The last page belongs to no sequence: rows of padding write there.
    """

    data: Tensor

    @classmethod
    def empty(cls, shape: ModelShape, pages: int, page_size: int, dtype: torch.dtype, device: torch.device) -> Cache:
        """A cache of `pages` pages and the spare one, uninitialised."""
        sizes = (shape.layers, 2, pages + 1, shape.kv_heads, page_size, shape.head_size)
        return cls(torch.empty(sizes, dtype=dtype, device=device))

    @property
    def spare(self) -> int:
        """The number of the page that belongs to no sequence."""
        return self.data.shape[2] - 1

    def layer(self, index: int) -> tuple[Tensor, Tensor]:
        """Keys and values of one layer, each (pages, kv_heads, page_size, head_size)."""
        return self.data[index, 0], self.data[index, 1]
