"""Laws of arrival against theory: means inside 99.99% intervals, exact instants where a law has them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gamma

from sim.request import SECOND
from traces import BadInput
from traces.synthetic import (
    Batches,
    Diurnal,
    Fixed,
    Markov,
    Piece,
    Piecewise,
    Poisson,
    Stream,
    Synthetic,
    Tenant,
    Ticks,
    Weibull,
    generate,
    intensity,
)
from traces.synthetic.arrivals import ArrivalTimes
from traces.synthetic.intensity import Sinusoid

BURSTS = Markov((Piece(2, 10 * SECOND), Piece(40, 2 * SECOND)))
EVERY_LAW = [
    Weibull(20, 0.7),
    BURSTS,
    Markov((Piece(0, SECOND), Piece(50, SECOND), Piece(5, 3 * SECOND)), cv=2.0),
    Piecewise((Piece(10, 3 * SECOND), Piece(0, SECOND), Piece(70, SECOND // 2))),
    Diurnal(20, 1.0, period=10 * SECOND, peak=3 * SECOND),
    Batches(20, 4),
    Batches(20, 4, cv=1.5),
    Ticks(Poisson(20), SECOND),
    Ticks(BURSTS, SECOND),
]


def times(law, until=1000 * SECOND, seed=0):
    return ArrivalTimes(law, law.rate, Stream(seed, "test")).until(until)


def inside(found, expected, deviation):
    return abs(found - expected) < 3.9 * deviation


@pytest.mark.parametrize("law", EVERY_LAW, ids=repr)
def test_every_law_brings_its_rate_in_order_the_same_each_time(law):
    found = np.array([len(times(law, seed=seed)) for seed in range(16)]) / 1000
    assert inside(found.mean(), law.rate, max(found.std(ddof=1), 0.01) / 4)
    once = times(law)
    assert (np.diff(once) >= 0).all()
    assert once[0] > 0
    assert np.array_equal(once, times(law))


@given(st.sampled_from(EVERY_LAW), st.lists(st.integers(0, 60 * SECOND), min_size=1, max_size=4))
def test_a_clock_gives_the_same_times_however_it_is_asked(law, horizons):
    asked, fresh = (ArrivalTimes(law, law.rate, Stream(1, "x")) for _ in range(2))
    for horizon in horizons:
        assert (asked.until(horizon) <= horizon).all()
    assert np.array_equal(asked.until(horizons[-1]), fresh.until(horizons[-1]))


@pytest.mark.parametrize("shape", [0.5, 1.0, 3.0])
def test_weibull_gaps_are_weibull(shape):
    gaps = np.diff(times(Weibull(20, shape))) / SECOND
    scale = 1 / 20 / gamma(1 + 1 / shape)
    assert stats.kstest(gaps, stats.weibull_min(shape, scale=scale).cdf).pvalue > 1e-4


def test_counts_of_a_markov_modulated_process_scatter_as_theory_says():
    """Heffes and Lucantoni 1986: the index of dispersion of a two-state process."""
    (low, high), (leave_low, leave_high) = (2, 40), (1 / 10, 1 / 2)
    both = leave_low + leave_high
    window = 4.0
    excess = 2 * (low - high) ** 2 * leave_low * leave_high / both**2 / (low * leave_high + high * leave_low)
    expected = 1 + excess * (1 - (1 - math.exp(-both * window)) / (both * window))
    found = []
    for seed in range(16):
        counts = np.bincount(times(BURSTS, 8000 * SECOND, seed) // (4 * SECOND), minlength=2000)
        found.append(counts.var() / counts.mean())
    assert inside(np.mean(found), expected, np.std(found, ddof=1) / 4)


def test_pieces_have_their_rates_and_come_again():
    law = Piecewise((Piece(10, 3 * SECOND), Piece(0, SECOND), Piece(70, SECOND // 2)))
    phase = times(law, 4500 * SECOND) % (4500 * SECOND // 1000)
    counts = [
        int(((phase >= start) & (phase < end)).sum())
        for start, end in ((0, 3 * SECOND), (3 * SECOND, 4 * SECOND), (4 * SECOND, 4500 * SECOND // 1000))
    ]
    assert counts[1] == 0
    assert inside(counts[0], 30_000, math.sqrt(30_000))
    assert inside(counts[2], 35_000, math.sqrt(35_000))


def test_a_day_has_its_peak_where_it_is_said():
    law = Diurnal(50, 0.8, period=100 * SECOND, peak=30 * SECOND)
    phase = times(law, 10_000 * SECOND) % (100 * SECOND) / (100 * SECOND)
    for start in np.arange(0, 1, 0.1):
        end = start + 0.1
        waves = (math.sin(2 * math.pi * (end - 0.3)) - math.sin(2 * math.pi * (start - 0.3))) / (2 * math.pi)
        expected = 50 * 10_000 * (0.1 + 0.8 * waves)
        assert inside(((phase >= start) & (phase < end)).sum(), expected, math.sqrt(expected))


@given(st.floats(0, 1), st.integers(0, 10**12), st.lists(st.integers(0, 10**13), min_size=1, max_size=20))
def test_a_wave_is_inverted_to_the_nanosecond(amplitude, peak, steady):
    period = 10**12
    steady = np.sort(np.array(steady, dtype=np.int64))
    found = Sinusoid(amplitude, period, peak).times(steady)
    assert (np.diff(found) >= 0).all()
    turn = 2 * math.pi / period

    def work(t):
        return t + amplitude / turn * (np.sin(turn * (t - peak)) + math.sin(turn * peak))

    assert (work(found - 1.0) <= steady + 1).all()
    assert (work(found + 1.0) >= steady - 1).all()


def test_batches_come_together_at_equal_distances():
    assert times(Batches(6, 3), 2 * SECOND).tolist() == [k * SECOND // 2 for k in (1, 2, 3, 4) for _ in range(3)]


def test_a_tick_shows_what_arrived_since_the_last():
    exact, seen = times(Poisson(5), 101 * SECOND), times(Ticks(Poisson(5), SECOND), 100 * SECOND)
    assert np.array_equal(seen, [-(-t // SECOND) * SECOND for t in exact if t <= 100 * SECOND])


def test_a_share_of_the_rate_leaves_pieces_as_long_as_they_are():
    law = Piecewise((Piece(60, SECOND), Piece(0, SECOND)))
    tenants = (Tenant("a", weight=3), Tenant("b"))
    requests = generate(Synthetic(duration=200 * SECOND, arrivals=law, output=Fixed(1), tenants=tenants), 0)
    assert all(request.arrival % (2 * SECOND) <= SECOND for request in requests)
    for name, expected in (("a", 4500), ("b", 1500)):
        assert inside(sum(request.tenant == name for request in requests), expected, math.sqrt(expected))


@pytest.mark.parametrize(
    ("law", "arguments", "expected"),
    [
        (Weibull, {"rate": 1, "shape": 0.1}, "shape is 0.1; expected a number from 0.2 to 100"),
        (Batches, {"rate": 1, "size": 0}, "size is 0; expected a whole number from 1"),
        (Ticks, {"arrivals": Poisson(1), "every": 0}, "every is 0; expected a whole number from 1"),
        (Diurnal, {"rate": 1, "amplitude": 1.5}, "amplitude is 1.5; expected a number from 0 to 1"),
        (Piece, {"rate": -1, "lasts": 5}, "rate is -1; expected a number from 0"),
        (Piece, {"rate": 1, "lasts": 0}, "lasts is 0; expected a whole number from 1"),
        (Piecewise, {"pieces": ()}, "pieces is (); expected a list such as [{rate: 5, lasts: 60s}]"),
        (Markov, {"states": (Piece(0, 5),)}, "states all have rate 0; expected at least one above"),
        (Piecewise, {"pieces": (Piece(1, 2**62), Piece(1, 2))}, "pieces last longer than"),
    ],
)
def test_an_impossible_law_names_its_field(law, arguments, expected):
    with pytest.raises(BadInput) as caught:
        law(**arguments)
    assert str(caught.value).startswith(expected)


def test_states_too_short_to_be_counted_are_an_error(monkeypatch):
    monkeypatch.setattr(intensity, "MOST_STAYS", 1000)
    law = Markov((Piece(1e-6, 5), Piece(0, 5)))
    with pytest.raises(BadInput, match=r"^markov: more than 1000 stays in states"):
        times(law)
