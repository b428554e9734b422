"""Parametric laws of prompt and output lengths.

Real numbers are rounded to the nearest whole number of tokens, halves to even, and 0 becomes 1; the exponential is
rounded up instead. A draw above 2^31 tokens is an error and is not truncated. The k-th draw of a stream does not
depend on how many are drawn. `quantile` draws by inversion, which correlated prompts and outputs need.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from traces.errors import BadInput, number_within, whole_within
from traces.limits import MAX_TOKENS
from traces.synthetic.streams import Stream
from traces.synthetic.token_counts import (
    BELOW_ONE,
    Length,
    Tokens,
    Uniforms,
    nearest,
    ranks,
    whole,
)

MOST_RANKS = 10**6


@dataclass(frozen=True)
class Fixed:
    """Always `tokens`."""

    tokens: int

    def __post_init__(self) -> None:
        whole_within("tokens", self.tokens, least=1)

    def sample(self, stream: Stream, n: int) -> Tokens:
        return np.full(n, self.tokens, dtype=np.int64)

    def quantile(self, u: Uniforms) -> Tokens:
        return np.full(len(u), self.tokens, dtype=np.int64)


@dataclass(frozen=True)
class Uniform:
    """Each whole number from `minimum` to `maximum` with equal probability."""

    minimum: int
    maximum: int

    def __post_init__(self) -> None:
        whole_within("minimum", self.minimum, least=1)
        whole_within("maximum", self.maximum, least=self.minimum)

    def sample(self, stream: Stream, n: int) -> Tokens:
        return self.quantile(stream.generator().random(n))

    def quantile(self, u: Uniforms) -> Tokens:
        return self.minimum + np.floor(u * (self.maximum - self.minimum + 1)).astype(np.int64)


@dataclass(frozen=True)
class Lognormal:
    """Lognormal with the given `mean`, and either `sigma` or `cv`.

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
            raise BadInput("cv is given beside sigma; expected one of the two")
        if self.sigma is not None:
            number_within("sigma", self.sigma, 0, 10)
        if self.cv is not None:
            number_within("cv", self.cv, 0, 1e9)

    @property
    def log_deviation(self) -> float:
        """The standard deviation of the logarithm."""
        return self.sigma if self.sigma is not None else math.sqrt(math.log1p((self.cv or 0.0) ** 2))

    def sample(self, stream: Stream, n: int) -> Tokens:
        location = math.log(self.mean) - self.log_deviation**2 / 2
        return nearest(stream.generator().lognormal(location, self.log_deviation, n), stream.name)

    def quantile(self, u: Uniforms) -> Tokens:
        from scipy.special import ndtri

        location = math.log(self.mean) - self.log_deviation**2 / 2
        if self.log_deviation == 0:
            return nearest(np.full(len(u), self.mean), "lognormal")
        return nearest(np.exp(location + self.log_deviation * ndtri(u)), "lognormal")


@dataclass(frozen=True)
class Exponential:
    """An exponential of the given `mean`, rounded up: geometric on 1, 2, ... with p = 1 - exp(-1/mean).

    Its mean after rounding is 1/p, about half a token above `mean`.
    """

    mean: float

    def __post_init__(self) -> None:
        number_within("mean", self.mean, 1e-9, MAX_TOKENS)

    def sample(self, stream: Stream, n: int) -> Tokens:
        return whole(np.ceil(stream.generator().standard_exponential(n) * self.mean), stream.name)

    def quantile(self, u: Uniforms) -> Tokens:
        return whole(np.ceil(-np.log1p(-u) * self.mean), "exponential")


@dataclass(frozen=True)
class Geometric:
    """Exactly geometric on 1, 2, ...: P(k) = p (1 - p)^(k - 1) with p = 1/mean; `mean` at least 1."""

    mean: float

    def __post_init__(self) -> None:
        number_within("mean", self.mean, 1, MAX_TOKENS)

    def sample(self, stream: Stream, n: int) -> Tokens:
        return whole(stream.generator().geometric(1 / self.mean, n), stream.name)

    def quantile(self, u: Uniforms) -> Tokens:
        if self.mean == 1:
            return np.ones(len(u), dtype=np.int64)
        return whole(np.ceil(np.log1p(-u) / math.log1p(-1 / self.mean)), "geometric")


@dataclass(frozen=True)
class Pareto:
    """P(X > x) = (minimum / x)^alpha from `minimum` on, rounded to the nearest token.

    With a `maximum` it is the law conditioned on X <= maximum, drawn by inversion, so there is no mass at the
    maximum. Without, the mean is alpha x minimum / (alpha - 1), and infinite for alpha <= 1.
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
        return self._invert(stream.generator().random(n), stream.name)

    def quantile(self, u: Uniforms) -> Tokens:
        return self._invert(u, "pareto")

    def _invert(self, u: Uniforms, name: str) -> Tokens:
        beyond = 0.0 if self.maximum is None else (self.minimum / self.maximum) ** self.alpha
        with np.errstate(over="ignore"):
            return nearest(self.minimum * (1.0 - u * (1.0 - beyond)) ** (-1.0 / self.alpha), name)


@dataclass(frozen=True)
class Zipf:
    """P(k) in proportion to k^-alpha on 1, 2, ... `maximum` (at most 10^6); `alpha` from 0 to 100."""

    alpha: float
    maximum: int

    def __post_init__(self) -> None:
        number_within("alpha", self.alpha, 0, 100)
        whole_within("maximum", self.maximum, least=1, most=MOST_RANKS)

    def sample(self, stream: Stream, n: int) -> Tokens:
        return self.quantile(stream.generator().random(n))

    def quantile(self, u: Uniforms) -> Tokens:
        return ranks(u, self.alpha, self.maximum) + 1


@dataclass(frozen=True)
class Bimodal:
    """A mixture: `first` with probability `weight` (0 to 1), else `second`; both are laws.

    By inversion, quantiles below `weight` are those of `first`: give the smaller law first if prompts and outputs
    are to be correlated.
    """

    first: Length
    second: Length
    weight: float

    def __post_init__(self) -> None:
        number_within("weight", self.weight, 0, 1)

    def sample(self, stream: Stream, n: int) -> Tokens:
        takes_first = (stream / "choice").generator().random(n) < self.weight
        first = self.first.sample(stream / "first", n)
        return np.where(takes_first, first, self.second.sample(stream / "second", n))

    def quantile(self, u: Uniforms) -> Tokens:
        takes_first = u < self.weight
        below = np.minimum(u[takes_first] / (self.weight or 1), BELOW_ONE)
        above = np.minimum((u[~takes_first] - self.weight) / ((1 - self.weight) or 1), BELOW_ONE)
        drawn = np.empty(len(u), dtype=np.int64)
        drawn[takes_first] = self.first.quantile(below)
        drawn[~takes_first] = self.second.quantile(above)
        return drawn
