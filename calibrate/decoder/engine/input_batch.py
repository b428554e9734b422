"""From a step to the numbers a forward pass needs: one array of int32, which goes to the device in one copy.

layout = layout_of(rows, page_size, capture_size)         what is in it, and in which order
pack(rows, layout, ...)                             written on the host, with numpy alone
batch, moves = unpacked(copy, layout, page_size)    views of the copy on the device
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrate.decoder.engine.protocol import Row
from calibrate.decoder.model.attention_metadata import AttentionMetadata

PADDING_ROW = 0
"""The row of the token store that no request has: the tokens of padding are stored there."""


@dataclass(frozen=True)
class Layout:
    """How a packed step is divided, as far as the host has it.

    counts   positions that each row computes, and `spans` the lengths of the sequences after it; rows of padding come
             last and have span 0
    decodes  rows at the front that compute one position each
    width    pages in a row of the table
    yields   rows whose next token is computed, in order
    """

    counts: tuple[int, ...]
    spans: tuple[int, ...]
    decodes: int
    width: int
    yields: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Rows as they run, padding included."""
        return len(self.counts)

    @property
    def sizes(self) -> list[int]:
        """Lengths of the parts, those of `AttentionMetadata` and of `Moves`, in the order that `pack` names them."""
        tokens, yields, chunks = sum(self.counts), len(self.yields), self.rows - self.decodes
        return [tokens] * 3 + [self.rows, chunks + 1] + [yields] * 4 + [self.rows * self.width]


@dataclass(frozen=True)
class Moves:
    """The token store's rows and columns that a pass reads and writes.

    sources  row of the store from which each computed token is read, at its position
    wanted   indices of the computed tokens after which a new one is generated
    targets  row of the store into which that is written, and `columns` its position
    draws    for each, a number from 0 to 1 that selects it, where tokens are sampled
    """

    sources: Tensor
    wanted: Tensor
    targets: Tensor
    columns: Tensor
    draws: Tensor


def layout_of(rows: Sequence[Row], page_size: int, capture_size: int | None = None) -> Layout:
    """How rows (decodes first) are packed; with a capture size they are padded to it, and every row yields."""
    padding = 0 if capture_size is None else capture_size - len(rows)
    spans = tuple(row.start + row.count for row in rows)
    yields = (place for place, row in enumerate(rows) if row.yields)
    return Layout(
        counts=tuple(row.count for row in rows) + (1,) * padding,
        spans=spans + (0,) * padding,
        decodes=sum(row.count == 1 for row in rows) + padding,
        width=max(-(-span // page_size) for span in spans),
        yields=tuple(yields if capture_size is None else range(capture_size)),
    )


def pack(
    packed: NDArray[np.int32],
    rows: Sequence[Row],
    layout: Layout,
    stored: Mapping[int, int],
    page_size: int,
    pages: int,
    draw: Any = None,
) -> None:
    """Write rows (decodes first) into an array of sum(layout.sizes).

    `stored` has each request's row in the token store; page number `pages` is the spare one. `draw(request,
    position)` gives the numbers that choose sampled tokens.
    Raises ValueError for a row with too few pages, or with one that does not exist.
    """
    parts = np.split(packed, np.cumsum(layout.sizes)[:-1])
    positions, owners, sources, lengths, offsets, wanted, targets, columns, draws, flat = parts
    counts = np.array(layout.counts, np.int32)
    ends = np.cumsum(counts)
    lengths[:] = layout.spans
    owners[:] = np.repeat(np.arange(layout.rows, dtype=np.int32), counts)
    first = np.maximum(lengths - counts, 0)
    positions[:] = np.arange(len(positions), dtype=np.int32) - (ends - counts - first)[owners]
    offsets[0] = 0
    offsets[1:] = np.cumsum(counts[layout.decodes :])
    stored_rows = np.full(layout.rows, PADDING_ROW, np.int32)
    stored_rows[: len(rows)] = [stored[row.request] for row in rows]
    sources[:] = stored_rows[owners]

    yields = np.array(layout.yields, np.int32)
    brings = np.zeros(layout.rows, bool)
    brings[: len(rows)] = [row.yields for row in rows]
    wanted[:] = ends[yields] - 1
    targets[:] = np.where(brings, stored_rows, PADDING_ROW)[yields]
    columns[:] = np.where(brings, lengths, 0)[yields]
    draws[:] = 0
    if draw is not None:
        numbers = [draw(row.request, row.start + row.count) if row.yields else 0.0 for row in rows]
        numbers += [0.0] * (layout.rows - len(rows))
        draws.view(np.float32)[:] = np.array(numbers, np.float32)[yields]

    tables = flat.reshape(layout.rows, layout.width)
    tables[:] = pages
    tables[np.arange(layout.width) < -(-lengths // page_size)[:, None]] = used_pages(rows, page_size, pages)


def used_pages(rows: Sequence[Row], page_size: int, pages: int) -> NDArray[np.int32]:
    """The pages of all rows that hold a position, end to end."""
    used = array("i")
    for row in rows:
        needed = -(-(row.start + row.count) // page_size)
        if len(row.pages) < needed:
            raise ValueError(
                f"request {row.request}: {len(row.pages)} pages for {row.start + row.count} positions; "
                f"expected {needed}"
            )
        used.extend(row.pages[:needed])
    found = np.frombuffer(used, np.int32)
    if found.min() < 0 or found.max() >= pages:
        missing = found.min() if found.min() < 0 else found.max()
        raise ValueError(f"page {missing} does not exist; expected 0 to {pages - 1}")
    return found


def unpacked(packed: Tensor, layout: Layout, page_size: int) -> tuple[AttentionMetadata, Moves]:
    """A step on the device: views of its packed copy."""
    parts = torch.split(packed, layout.sizes)
    positions, owners, sources, lengths, offsets, wanted, targets, columns, draws, tables = parts
    batch = AttentionMetadata(
        tables=tables.view(layout.rows, layout.width),
        lengths=lengths,
        positions=positions,
        owners=owners,
        offsets=offsets,
        counts=layout.counts,
        spans=layout.spans,
        page_size=page_size,
        decodes=layout.decodes,
    )
    return batch, Moves(sources, wanted, targets, columns, draws.view(torch.float32))
