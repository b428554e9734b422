"""A classifier of output lengths: it predicts a bucket of lengths, with errors by a confusion matrix.

Proxy models for length prediction work this way (S3, Jin et al., NeurIPS 2023). Sufficient where only the order
between short and long matters; requests in one bucket are not distinguished. The predicted bucket is drawn from the
row of the true bucket, in a random stream of the request's own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isclose
from random import Random

from policies.base.entry import Choice, Option
from policies.base.option_values import numbers
from sim.request import Request


@dataclass(frozen=True)
class Classifier:
    """Predicts the middle of the drawn bucket, in tokens.

    edges      where a new bucket begins, in tokens, ascending: k edges make k + 1 buckets, the first from 1 on
    confusion  for each true bucket the probabilities of the predicted buckets; empty: always the true bucket

    The last bucket has no end; its width is taken to be that of the one before it. Raises ValueError for edges that
    do not ascend and for rows that are not probabilities of that many buckets.
    """

    edges: tuple[int, ...]
    confusion: tuple[tuple[float, ...], ...] = ()
    seed: int = 0
    name: str = "classifier"

    def __post_init__(self) -> None:
        if not self.edges or any(low >= high for low, high in pairwise((1, *self.edges))):
            raise ValueError(f"edges is {list(self.edges)}; expected ascending token counts above 1")
        buckets = len(self.edges) + 1
        if self.confusion and len(self.confusion) != buckets:
            raise ValueError(f"confusion has {len(self.confusion)} rows; expected {buckets}")
        for row in self.confusion:
            if len(row) != buckets or min(row) < 0 or not isclose(sum(row), 1, abs_tol=1e-9):
                raise ValueError(
                    f"confusion has the row {list(row)}; expected {buckets} probabilities that add up to 1"
                )

    def __call__(self, request: Request) -> float:
        bucket = self.predicted_bucket(bisect_right(self.edges, request.output), request)
        bounds = (1, *self.edges, 2 * self.edges[-1] - (1, *self.edges)[-2])
        return (bounds[bucket] + bounds[bucket + 1]) / 2

    def predicted_bucket(self, true: int, request: Request) -> int:
        """The bucket drawn for a request of this true bucket."""
        if not self.confusion:
            return true
        stream = Random(f"{self.seed}/prediction/{request.id}")
        return stream.choices(range(len(self.edges) + 1), self.confusion[true])[0]


def classifier(seed: int, edges: object, confusion: object) -> Classifier:
    """A classifier from the options of a scenario. Raises ValueError, also for values of the wrong type."""
    bounds = numbers("edges", edges)
    if any(edge != int(edge) for edge in bounds):
        raise ValueError(f"edges is {edges!r}; expected whole numbers of tokens")
    if isinstance(confusion, str) or not isinstance(confusion, Sequence):
        raise ValueError(f"confusion is {confusion!r}; expected a list of rows")
    rows = tuple(numbers("confusion", row) for row in confusion)
    return Classifier(tuple(map(int, bounds)), rows, seed)


ENTRY = Choice(
    "Predicts the middle of the drawn bucket, in tokens.",
    classifier,
    {"edges": Option(None, needed=True), "confusion": Option(())},
)
