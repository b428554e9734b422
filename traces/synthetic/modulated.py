"""Laws of arrival whose rate varies: over the day, piece by piece, or at random between states.

`cv` is that of the gaps where the rate is constant; 1, the default, is Poisson. A tenant's share of the rate
scales the intensity and leaves periods, pieces and stays in states as long as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.request import Nanoseconds
from traces.errors import BadInput, number_within, shown, whole_within
from traces.limits import LATEST
from traces.synthetic.arrivals import Arrivals, gamma_gaps
from traces.synthetic.courses import Chain, Course, Periodic, Wave
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
    """A rate that swings once per `period` around its mean, `rate`, highest at `peak` after the start.

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

    def course(self, stream: Stream) -> Course:
        del stream
        return Wave(self.amplitude, self.period, self.peak)


@dataclass(frozen=True)
class Piecewise(Arrivals):
    """A rate for each of `pieces`, in their order, and again from the first after the last."""

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

    def course(self, stream: Stream) -> Course:
        del stream
        return Periodic(*_columns(self.pieces))


@dataclass(frozen=True)
class Markov(Arrivals):
    """A Markov-modulated process: in each of `states` a rate, for an exponential time of mean `lasts`.

    From a state it goes to any other with equal chance; the first is as likely as its share of the time. Two
    states, one with rate 0, are bursts and silence.
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

    def course(self, stream: Stream) -> Course:
        return Chain(*_columns(self.states), stream)


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
