"""Empirical laws of length: a list of values with weights, or a few quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from traces.errors import BadInput, number_within, shown, whole_within
from traces.limits import MAX_TOKENS
from traces.synthetic.streams import Stream
from traces.synthetic.token_counts import Tokens, Uniforms, nearest, places


@dataclass(frozen=True)
class Empirical:
    """One of `values` (token counts), with probabilities in proportion to `weights`; equally likely without."""

    values: tuple[int, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", listed("values", self.values))
        for place, value in enumerate(self.values):
            whole_within(f"values[{place}]", value, least=1)
        if self.weights is None:
            return
        object.__setattr__(self, "weights", listed("weights", self.weights))
        for place, weight in enumerate(self.weights):
            number_within(f"weights[{place}]", weight, 0, 1e9)
        if len(self.weights) != len(self.values):
            raise BadInput(f"weights has {len(self.weights)} entries; expected one for each of {len(self.values)}")
        if sum(self.weights) == 0:
            raise BadInput("weights are all 0; expected at least one above")

    def sample(self, stream: Stream, n: int) -> Tokens:
        weights = np.array(self.weights or [1.0] * len(self.values), dtype=np.float64)
        chosen = stream.generator().choice(len(self.values), size=n, p=weights / weights.sum())
        return np.array(self.values, dtype=np.int64)[chosen]

    def quantile(self, u: Uniforms) -> Tokens:
        values = np.array(self.values, dtype=np.int64)
        order = np.argsort(values, kind="stable")
        weights = np.array(self.weights or [1.0] * len(values), dtype=np.float64)[order]
        return values[order][places(np.cumsum(weights), u)]


@dataclass(frozen=True)
class Quantiles:
    """A piecewise linear quantile function through (`shares[k]`, `values[k]`), rounded to the nearest token.

    Shares increase from 0 to 1; values are at least 1 and do not decrease.
    """

    shares: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", listed("shares", self.shares))
        object.__setattr__(self, "values", listed("values", self.values))
        for place, share in enumerate(self.shares):
            number_within(f"shares[{place}]", share, 0, 1)
        for place, value in enumerate(self.values):
            number_within(f"values[{place}]", value, 1, MAX_TOKENS)
        if len(self.values) != len(self.shares):
            raise BadInput(
                f"values has {len(self.values)} entries; expected one for each of {len(self.shares)} shares"
            )
        if len(self.shares) < 2 or self.shares[0] != 0 or self.shares[-1] != 1 or not rising(self.shares):
            raise BadInput(f"shares is {shown(self.shares)}; expected ascending numbers from 0 to 1")
        if any(later < earlier for earlier, later in pairwise(self.values)):
            raise BadInput(f"values is {shown(self.values)}; expected non-decreasing numbers")

    def sample(self, stream: Stream, n: int) -> Tokens:
        return self.quantile(stream.generator().random(n))

    def quantile(self, u: Uniforms) -> Tokens:
        return nearest(np.interp(u, self.shares, self.values), "quantiles")


def rising(numbers: tuple[float, ...]) -> bool:
    return all(earlier < later for earlier, later in pairwise(numbers))


def listed(name: str, values: object) -> tuple[object, ...]:
    if not isinstance(values, list | tuple) or not values:
        raise BadInput(f"{name} is {shown(values)}; expected a list of at least one")
    return tuple(values)
