"""How long prompts and outputs are: laws of whole token counts, every one at least 1.

Laws of real numbers are rounded to the nearest whole, halves to even, and what would be 0 counts as 1;
the exponential is rounded up instead. A draw above 2^31 tokens is an error, never cut. The k-th draw of a
stream does not depend on how many are drawn. Knows nothing of arrivals or tenants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from traces.errors import BadInput, number_within, shown, whole_within
from traces.limits import MAX_TOKENS
from traces.synthetic.streams import Stream

Tokens = NDArray[np.int64]


class Length(Protocol):
    """A law of token counts."""

    def sample(self, stream: Stream, n: int) -> Tokens:
        """The first `n` counts of the stream; BadInput when one is above 2^31."""
        ...


@dataclass(frozen=True)
class Fixed:
    """Always `tokens`."""

    tokens: int

    def __post_init__(self) -> None:
        whole_within("tokens", self.tokens, least=1)

    def sample(self, stream: Stream, n: int) -> Tokens:
        return np.full(n, self.tokens, dtype=np.int64)


@dataclass(frozen=True)
class Lognormal:
    """Lognormal with the given `mean`, and its width as one of `sigma` and `cv`.

    `mean` is the mean of the law itself, before rounding (not of its logarithm, not the median);
    `sigma` is the standard deviation of the logarithm; `cv` is the law's standard deviation over its mean,
    so sigma^2 = ln(1 + cv^2). The median is mean x exp(-sigma^2 / 2).
    """

    mean: float
    sigma: float | None = None
    cv: float | None = None

    def __post_init__(self) -> None:
        number_within("mean", self.mean, 1e-9, MAX_TOKENS)
        if self.sigma is None and self.cv is None:
            raise BadInput("sigma is missing; expected sigma or cv")
        if self.sigma is not None and self.cv is not None:
            raise BadInput("cv stands beside sigma; expected one of the two")
        if self.sigma is not None:
            number_within("sigma", self.sigma, 0, 10)
        if self.cv is not None:
            number_within("cv", self.cv, 0, 1e9)

    @property
    def log_deviation(self) -> float:
        """The standard deviation of the logarithm, however it was given."""
        return self.sigma if self.sigma is not None else math.sqrt(math.log1p((self.cv or 0.0) ** 2))

    def sample(self, stream: Stream, n: int) -> Tokens:
        location = math.log(self.mean) - self.log_deviation**2 / 2
        return _nearest(stream.generator().lognormal(location, self.log_deviation, n), stream)


@dataclass(frozen=True)
class Exponential:
    """An exponential of the given `mean`, rounded up: geometric on 1, 2, ... with p = 1 - exp(-1/mean).

    Its mean after rounding is 1/p, about half a token above `mean`.
    """

    mean: float

    def __post_init__(self) -> None:
        number_within("mean", self.mean, 1e-9, MAX_TOKENS)

    def sample(self, stream: Stream, n: int) -> Tokens:
        return _whole(np.ceil(stream.generator().standard_exponential(n) * self.mean), stream)


@dataclass(frozen=True)
class Geometric:
    """Exactly geometric on 1, 2, ...: P(k) = p (1 - p)^(k - 1) with p = 1/mean; `mean` at least 1."""

    mean: float

    def __post_init__(self) -> None:
        number_within("mean", self.mean, 1, MAX_TOKENS)

    def sample(self, stream: Stream, n: int) -> Tokens:
        return _whole(stream.generator().geometric(1 / self.mean, n), stream)


@dataclass(frozen=True)
class Pareto:
    """P(X > x) = (minimum / x)^alpha from `minimum` on, rounded to the nearest token.

    With a `maximum` the law is the same one given that X <= maximum (drawn by inversion: nothing piles up
    there). Without, the mean is alpha x minimum / (alpha - 1), and infinite for alpha <= 1.
    """

    alpha: float
    minimum: int
    maximum: int | None = None

    def __post_init__(self) -> None:
        number_within("alpha", self.alpha, 0.01, 1000)
        whole_within("minimum", self.minimum, least=1)
        if self.maximum is not None:
            whole_within("maximum", self.maximum, least=self.minimum + 1)

    def sample(self, stream: Stream, n: int) -> Tokens:
        beyond = 0.0 if self.maximum is None else (self.minimum / self.maximum) ** self.alpha
        survival = 1.0 - stream.generator().random(n) * (1.0 - beyond)
        with np.errstate(over="ignore"):
            return _nearest(self.minimum * survival ** (-1.0 / self.alpha), stream)


@dataclass(frozen=True)
class Bimodal:
    """A mixture: `first` with probability `weight` (0 to 1), else `second`; both are laws."""

    first: Length
    second: Length
    weight: float

    def __post_init__(self) -> None:
        number_within("weight", self.weight, 0, 1)

    def sample(self, stream: Stream, n: int) -> Tokens:
        takes_first = (stream / "choice").generator().random(n) < self.weight
        first = self.first.sample(stream / "first", n)
        return np.where(takes_first, first, self.second.sample(stream / "second", n))


@dataclass(frozen=True)
class Empirical:
    """One of `values` (token counts), each as likely as its share of `weights`; equally likely without."""

    values: tuple[int, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _listed("values", self.values))
        for place, value in enumerate(self.values):
            whole_within(f"values[{place}]", value, least=1)
        if self.weights is None:
            return
        object.__setattr__(self, "weights", _listed("weights", self.weights))
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


def _listed(name: str, values: object) -> tuple[object, ...]:
    if not isinstance(values, list | tuple) or not values:
        raise BadInput(f"{name} is {shown(values)}; expected a list of at least one")
    return tuple(values)


def _nearest(drawn: NDArray[np.float64], stream: Stream) -> Tokens:
    return _whole(np.rint(drawn), stream)


def _whole(drawn: NDArray[np.float64] | Tokens, stream: Stream) -> Tokens:
    """Whole numbers as token counts: 0 counts as 1, and what no engine could hold is an error."""
    if drawn.size and drawn.max() > MAX_TOKENS:
        raise BadInput(f"{stream.name}: drew {drawn.max():g} tokens; expected at most {MAX_TOKENS}")
    return np.maximum(drawn, 1).astype(np.int64)
