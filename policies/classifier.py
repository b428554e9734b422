"""A classifier of output lengths: it names a bucket of lengths, and errs as a confusion matrix says.

What proxy models for length prediction do (S3, Jin et al., NeurIPS 2023).
Good where the order between short and long is all that counts; within a bucket it knows nothing. The bucket
it names is drawn, from the row of the true bucket, in a stream of the request's own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isclose
from random import Random

from sim.request import Request


@dataclass(frozen=True)
class Classifier:
    """Predicts the middle of the bucket it names.

    edges      where a new bucket begins, in tokens, ascending: k edges make k + 1 buckets, the first from 1 on
    confusion  for each true bucket the probabilities of the buckets named; none: it is never wrong

    The last bucket has no end; it counts as wide as the one before it. Raises ValueError for edges that do not
    ascend and for rows that are no probabilities of that many buckets.
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
        bucket = self.named(bisect_right(self.edges, request.output), request)
        bounds = (1, *self.edges, 2 * self.edges[-1] - (1, *self.edges)[-2])
        return (bounds[bucket] + bounds[bucket + 1]) / 2

    def named(self, true: int, request: Request) -> int:
        """The bucket that the classifier names for a request of this true bucket."""
        if not self.confusion:
            return true
        stream = Random(f"{self.seed}/prediction/{request.id}")
        return stream.choices(range(len(self.edges) + 1), self.confusion[true])[0]


def classifier(seed: int, edges: object, confusion: object = ()) -> Classifier:
    """One by the options of a scenario. Raises ValueError for values of the wrong kind too."""
    bounds = numbers("edges", edges)
    if any(edge != int(edge) for edge in bounds):
        raise ValueError(f"edges is {edges!r}; expected whole numbers of tokens")
    if isinstance(confusion, str) or not isinstance(confusion, Sequence):
        raise ValueError(f"confusion is {confusion!r}; expected a list of rows")
    rows = tuple(numbers("confusion", row) for row in confusion)
    return Classifier(tuple(map(int, bounds)), rows, seed)


def numbers(name: str, values: object) -> tuple[float, ...]:
    """A list of numbers; raises ValueError for anything else."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ValueError(f"{name} is {values!r}; expected a list of numbers")
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        raise ValueError(f"{name} is {list(values)!r}; expected a list of numbers")
    return tuple(values)
