"""What attention to a paged cache must give, position by position in float64: slow, and nobody else's code."""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor

from calibrate.gpu.test_batches import AttentionInputs


def one_by_one(told: AttentionInputs) -> Tensor:
    """Every query looks its keys and values up in the tables; zeros for rows without positions."""
    queries = told.queries.double()
    heads, kv_heads = queries.shape[1], told.keys.shape[1]
    out = torch.zeros_like(queries)
    token = 0
    for row, (count, span) in enumerate(zip(told.batch.counts, told.batch.spans, strict=True)):
        for i in range(count):
            seen = span - count + i + 1 if span else 0
            pages = [int(told.batch.tables[row, p // told.batch.page_size]) for p in range(seen)]
            for head in range(heads if seen else 0):
                shared = head * kv_heads // heads
                at = [(page, shared, p % told.batch.page_size) for p, page in enumerate(pages)]
                key = torch.stack([told.keys[place] for place in at]).double()
                value = torch.stack([told.values[place] for place in at]).double()
                score = key @ queries[token, head] / sqrt(queries.shape[2])
                out[token, head] = score.softmax(0) @ value
            token += 1
    return out
