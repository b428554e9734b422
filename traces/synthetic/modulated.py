"""Arrival laws of varying rate: diurnal, piecewise constant, or Markov-modulated.

`cv` is the coefficient of variation of the gaps at constant rate; 1, the default, is Poisson. A tenant's share of the
rate scales the intensity and does not change periods, pieces and stays in states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.request import Nanoseconds
from traces.errors import BadInput, number_within, shown, whole_within
from traces.limits import LATEST
from traces.synthetic.arrivals import Arrivals, gamma_gaps
from traces.synthetic.intensity import Intensity, MarkovChain, PiecewiseConstant, Sinusoid
from traces.synthetic.streams import Stream

DAY: Nanoseconds = 86_400_000_000_000


@dataclass(frozen=True)
class Piece:
    """A time of constant rate: `rate` requests per second (0 to 1e9) for `lasts` nanoseconds."""

    rate: float
    lasts: Nanoseconds

    def __post_init__(self) -> None:
        number_within("rate", self.rate, 0, 1e9)
        whole_within("lasts", self.lasts, least=1, most=LATEST)


@dataclass(frozen=True)
class Diurnal(Arrivals):
    """A sinusoidal rate of mean `rate` and period `period`, highest at `peak` after the start.

    rate x (1 + amplitude x cos(2 pi (t - peak) / period)); `amplitude` from 0 to 1.
    """

    rate: float
    amplitude: float
    period: Nanoseconds = DAY
    peak: Nanoseconds = 0
    cv: float = 1.0

    def __post_init__(self) -> None:
        number_within("rate", self.rate, 1e-9, 1e9)
        number_within("amplitude", self.amplitude, 0, 1)
        whole_within("period", self.period, least=1, most=LATEST)
        whole_within("peak", self.peak, least=0, most=LATEST)
        number_within("cv", self.cv, 0.01, 100)

    def unit_gaps(self, generator: np.random.Generator, n: int) -> NDArray[np.float64]:
        return gamma_gaps(generator, self.cv, n)

    def intensity(self, stream: Stream) -> Intensity:
        del stream
        return Sinusoid(self.amplitude, self.period, self.peak)


@dataclass(frozen=True)
class Piecewise(Arrivals):
    """The rates of `pieces` in order, repeated after the last."""

    pieces: tuple[Piece, ...]
    cv: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "pieces", _listed("pieces", self.pieces))
        number_within("cv", self.cv, 0.01, 100)

    @property
    def rate(self) -> float:  # type: ignore[override]  # the mean over the pieces
        return mean_rate(self.pieces)

    def unit_gaps(self, generator: np.random.Generator, n: int) -> NDArray[np.float64]:
        return gamma_gaps(generator, self.cv, n)

    def intensity(self, stream: Stream) -> Intensity:
        del stream
        return PiecewiseConstant(*_columns(self.pieces))


@dataclass(frozen=True)
class Markov(Arrivals):
    """A Markov-modulated process: each of `states` has a rate and lasts for an exponential time of mean `lasts`.

    All other states are equally likely next; the first state is drawn with probability equal to its share of time.
    Two states, one with rate 0, form an on-off process.
    """

    states: tuple[Piece, ...]
    cv: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", _listed("states", self.states))
        number_within("cv", self.cv, 0.01, 100)

    @property
    def rate(self) -> float:  # type: ignore[override]  # the mean over the states
        return mean_rate(self.states)

    def unit_gaps(self, generator: np.random.Generator, n: int) -> NDArray[np.float64]:
        return gamma_gaps(generator, self.cv, n)

    def intensity(self, stream: Stream) -> Intensity:
        return MarkovChain(*_columns(self.states), stream)


def mean_rate(pieces: tuple[Piece, ...]) -> float:
    """Requests per second over the pieces, each weighted by how long it lasts."""
    rates, lasts = _columns(pieces)
    return float(rates @ lasts / lasts.sum())


def _columns(pieces: tuple[Piece, ...]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rates = np.array([piece.rate for piece in pieces], dtype=np.float64)
    return rates, np.array([piece.lasts for piece in pieces], dtype=np.int64)


def _listed(name: str, pieces: object) -> tuple[Piece, ...]:
    if not isinstance(pieces, list | tuple) or not pieces or not all(isinstance(piece, Piece) for piece in pieces):
        raise BadInput(f"{name} is {shown(pieces)}; expected a list such as [{{rate: 5, lasts: 60s}}]")
    if not any(piece.rate for piece in pieces):
        raise BadInput(f"{name} all have rate 0; expected at least one above")
    if sum(piece.lasts for piece in pieces) > LATEST:
        raise BadInput(f"{name} last longer than {LATEST} ns together")
    return tuple(pieces)
