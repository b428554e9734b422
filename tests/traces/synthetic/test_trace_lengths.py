"""Length laws against theory: means inside 99.99% intervals, whole distributions by chi-square and KS distances."""

import math

import numpy as np
import pytest
from scipy import stats

from traces import BadInput
from traces.synthetic import (
    Bimodal,
    Empirical,
    Exponential,
    Fixed,
    Geometric,
    Lognormal,
    Pareto,
    Quantiles,
    Stream,
    Uniform,
    Zipf,
)
from traces.synthetic.generator import drawn_together

SEEDS = range(8)
N = 50_000
EVERY_LAW = [
    Fixed(7),
    Lognormal(200, cv=1.0),
    Lognormal(200, sigma=0.5),
    Exponential(30),
    Geometric(30),
    Geometric(2),
    Pareto(2.5, 10),
    Pareto(0.8, 10, 1000),
    Bimodal(Fixed(5), Lognormal(300, sigma=0.3), 0.8),
    Empirical((3, 5, 9)),
    Empirical((3, 5, 9), (1, 0, 3)),
    Uniform(5, 40),
    Zipf(1.2, 500),
    Quantiles((0, 0.5, 0.9, 1), (10, 20, 400, 1000)),
]


def sample(law, seed, n=N):
    return law.sample(Stream(seed, "test"), n)


def assert_mean(law, mean, variance):
    """The mean over all seeds is inside a 99.99% interval around theory."""
    drawn = np.concatenate([sample(law, seed) for seed in SEEDS])
    half_width = stats.norm.ppf(1 - 0.5e-4) * math.sqrt(variance / len(drawn))
    assert abs(drawn.mean() - mean) <= half_width


def assert_distribution(drawn, pmf, last):
    """Chi-square of counts 1..last and the rest against `pmf`, at one in ten thousand."""
    expected = np.array([pmf(k) for k in range(1, last + 1)])
    expected = np.append(expected, 1 - expected.sum()) * len(drawn)
    observed = np.bincount(np.minimum(drawn, last + 1), minlength=last + 2)[1:]
    assert expected.min() >= 5
    assert ((observed - expected) ** 2 / expected).sum() < stats.chi2.ppf(1 - 1e-4, last)


@pytest.mark.parametrize("law", EVERY_LAW, ids=repr)
def test_every_law_gives_whole_counts_of_at_least_one_the_same_each_time(law):
    drawn = sample(law, 3, 1000)
    assert drawn.dtype == np.int64
    assert drawn.shape == (1000,)
    assert drawn.min() >= 1
    assert np.array_equal(drawn, sample(law, 3, 1000))


@pytest.mark.parametrize("law", EVERY_LAW[1:], ids=repr)
def test_more_draws_begin_with_the_same_ones_and_another_seed_with_others(law):
    assert np.array_equal(sample(law, 3, 5000)[:777], sample(law, 3, 777))
    assert not np.array_equal(sample(law, 3, 777), sample(law, 4, 777))


def test_fixed_is_always_the_same():
    assert sample(Fixed(512), 0, 4).tolist() == [512] * 4


@pytest.mark.parametrize("mean", [1.5, 2, 4, 20])
def test_geometric_is_exactly_geometric(mean):
    p = 1 / mean
    assert_mean(Geometric(mean), mean, (1 - p) / p**2)
    assert_distribution(sample(Geometric(mean), 1), lambda k: p * (1 - p) ** (k - 1), last=int(4 * mean))


def test_geometric_of_mean_one_is_one():
    assert set(sample(Geometric(1), 0).tolist()) == {1}


@pytest.mark.parametrize("mean", [0.5, 3, 20])
def test_exponential_rounded_up_is_geometric_with_the_stated_parameter(mean):
    p = 1 - math.exp(-1 / mean)
    assert_mean(Exponential(mean), 1 / p, (1 - p) / p**2)
    assert_distribution(sample(Exponential(mean), 2), lambda k: p * (1 - p) ** (k - 1), last=math.ceil(3 * mean))


@pytest.mark.parametrize("width", [{"cv": 1.0}, {"sigma": 0.5}, {"cv": 0.1}])
def test_lognormal_has_the_stated_mean_and_width(width):
    mean = 2000
    cv = width.get("cv") or math.sqrt(math.exp(width["sigma"] ** 2) - 1)
    law = Lognormal(mean, **width)
    assert_mean(law, mean, (cv * mean) ** 2 + 1 / 12)
    sigma = math.sqrt(math.log(1 + cv**2))
    logs = np.log(sample(law, 5))
    expected = stats.norm(math.log(mean) - sigma**2 / 2, sigma)
    assert stats.kstest(logs, expected.cdf).pvalue > 1e-4


def test_lognormal_rounds_to_the_nearest_token_and_nothing_is_below_one():
    law = Lognormal(mean=2, cv=1.0)
    sigma = math.sqrt(math.log(2))
    cdf = stats.lognorm(sigma, scale=2 * math.exp(-(sigma**2) / 2)).cdf
    assert_distribution(sample(law, 6), lambda k: cdf(k + 0.5) - (cdf(k - 0.5) if k > 1 else 0), last=8)


def test_lognormal_without_width_is_its_mean():
    assert set(sample(Lognormal(99.6, sigma=0), 0, 50).tolist()) == {100}


def test_pareto_has_the_stated_tail():
    drawn = sample(Pareto(1.5, 100), 7)
    assert drawn.min() >= 100
    for x in (150, 400, 1500):
        expected = (100 / (x + 0.5)) ** 1.5
        assert abs((drawn > x).mean() - expected) < 3.9 * math.sqrt(expected * (1 - expected) / N)
    assert_mean(Pareto(5, 1000), 5 * 1000 / 4, 1000**2 * 5 / (16 * 3) + 1 / 12)


def test_pareto_with_a_maximum_is_truncated_and_nothing_piles_up_there():
    law = Pareto(0.8, 10, 1000)
    drawn = np.concatenate([sample(law, seed) for seed in SEEDS])
    assert drawn.min() >= 10
    assert drawn.max() <= 1000

    def cdf(x):
        return (1 - (10 / x) ** 0.8) / (1 - (10 / 1000) ** 0.8)

    for low, high in ((10.5, 20.5), (99.5, 199.5), (900.5, 1000)):
        expected = cdf(high) - cdf(low)
        found = ((drawn > low) & (drawn <= high)).mean()
        assert abs(found - expected) < 3.9 * math.sqrt(expected / len(drawn))


def test_bimodal_mixes_two_laws_by_weight():
    assert_mean(Bimodal(Fixed(10), Fixed(110), 0.7), 0.7 * 10 + 0.3 * 110, 100**2 * 0.7 * 0.3)
    mixed = sample(Bimodal(Fixed(1000), Geometric(4), 0.25), 8)
    assert_distribution(mixed[mixed < 1000], lambda k: 0.25 * 0.75 ** (k - 1), last=12)
    assert set(sample(Bimodal(Fixed(1), Fixed(2), 1), 0, 99).tolist()) == {1}
    assert set(sample(Bimodal(Fixed(1), Fixed(2), 0), 0, 99).tolist()) == {2}


def test_empirical_draws_values_by_weight():
    drawn = sample(Empirical((3, 5, 9), (1, 0, 3)), 9)
    assert set(drawn.tolist()) == {3, 9}
    assert_mean(Empirical((3, 5, 9), (1, 0, 3)), 7.5, 36 * 3 / 16)
    assert_mean(Empirical([3, 5, 9]), 17 / 3, 56 / 9)


def test_uniform_draws_every_count_alike():
    assert_distribution(sample(Uniform(1, 12), 3), lambda k: 1 / 12, last=11)
    assert set(sample(Uniform(7, 9), 0).tolist()) == {7, 8, 9}
    assert set(sample(Uniform(7, 7), 0, 9).tolist()) == {7}


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.5])
def test_zipf_is_a_power_of_the_rank(alpha):
    total = sum(k**-alpha for k in range(1, 31))
    assert_distribution(sample(Zipf(alpha, 30), 4), lambda k: k**-alpha / total, last=5)
    assert sample(Zipf(0.0, 30), 4).max() == 30


def test_quantiles_are_met_and_uniform_in_between():
    law = Quantiles((0, 0.5, 0.9, 1), (1000, 2000, 40_000, 100_000))
    drawn = sample(law, 5)
    expected = stats.rv_histogram((np.array([0.5, 0.4, 0.1]), np.array([1000, 2000, 40_000, 100_000])), density=False)
    assert stats.kstest(drawn, expected.cdf).pvalue > 1e-4
    assert law.quantile(np.array([0, 0.25, 0.5, 0.7])).tolist() == [1000, 1500, 2000, 21_000]
    assert set(sample(Quantiles((0, 0.5, 1), (7, 7, 7)), 0, 99).tolist()) == {7}


@pytest.mark.parametrize("law", EVERY_LAW, ids=repr)
def test_inversion_gives_the_same_law_and_rises(law):
    shares = (np.arange(N) + 0.5) / N
    inverted = law.quantile(shares)
    assert inverted.dtype == np.int64
    assert inverted.min() >= 1
    if not isinstance(law, Bimodal):
        assert (np.diff(inverted) >= 0).all()
    drawn = sample(law, 11)
    for value in np.quantile(drawn, [0.05, 0.3, 0.5, 0.9, 0.99]):
        expected = (inverted <= value).mean()
        assert abs((drawn <= value).mean() - expected) <= 3.9 * math.sqrt(expected * (1 - expected) / N) + 2 / N


@pytest.mark.parametrize("correlation", [-1, -0.5, 0.3, 0.9])
def test_prompts_and_outputs_go_together_as_their_ranks_do(correlation):
    found = []
    for seed in range(8):
        pair = drawn_together(Lognormal(2e5, cv=1), Pareto(3, 10**5), correlation, Stream(seed, "test"), 20_000)
        found.append(stats.spearmanr(*pair).statistic)
    expected = 6 / math.pi * math.asin(correlation / 2)
    assert abs(np.mean(found) - expected) < 3.9 / math.sqrt(8 * 20_000)


def test_correlation_leaves_both_laws_as_they_are():
    prompt, output = drawn_together(Geometric(20), Uniform(1, 9), 0.8, Stream(3, "test"), N)
    assert_distribution(prompt, lambda k: 0.05 * 0.95 ** (k - 1), last=60)
    assert_distribution(output, lambda k: 1 / 9, last=8)


def test_a_draw_no_engine_could_hold_is_an_error_and_not_cut():
    with pytest.raises(BadInput, match=r"^test: drew .* tokens; expected at most 2147483648$"):
        sample(Pareto(0.01, 1), 0)


@pytest.mark.parametrize(
    ("law", "arguments", "expected"),
    [
        (Fixed, {"tokens": 0}, "tokens is 0; expected a whole number from 1 to"),
        (Fixed, {"tokens": 1.5}, "tokens is 1.5; expected a whole number"),
        (Fixed, {"tokens": True}, "tokens is True; expected a whole number"),
        (Lognormal, {"mean": -1, "cv": 1}, "mean is -1; expected a number from"),
        (Lognormal, {"mean": float("nan"), "cv": 1}, "mean is nan; expected a number from"),
        (Lognormal, {"mean": 5}, "sigma is missing; expected sigma or cv"),
        (Lognormal, {"mean": 5, "cv": 1, "sigma": 1}, "cv is given beside sigma; expected one of the two"),
        (Lognormal, {"mean": 5, "sigma": -1}, "sigma is -1; expected a number from 0"),
        (Lognormal, {"mean": 5, "cv": "1"}, "cv is '1'; expected a number from 0"),
        (Exponential, {"mean": 0}, "mean is 0; expected a number from"),
        (Geometric, {"mean": 0.9}, "mean is 0.9; expected a number from 1 to"),
        (Pareto, {"alpha": 0, "minimum": 1}, "alpha is 0; expected a number from"),
        (Pareto, {"alpha": 1, "minimum": 0.5}, "minimum is 0.5; expected a whole number from 1"),
        (Pareto, {"alpha": 1, "minimum": 9, "maximum": 9}, "maximum is 9; expected a whole number from 10"),
        (
            Bimodal,
            {"first": Fixed(1), "second": Fixed(2), "weight": 1.1},
            "weight is 1.1; expected a number from 0 to 1",
        ),
        (Empirical, {"values": []}, "values is []; expected a list of at least one"),
        (Empirical, {"values": "12"}, "values is '12'; expected a list"),
        (Empirical, {"values": [1, 0]}, "values[1] is 0; expected a whole number from 1"),
        (Empirical, {"values": [1, 2], "weights": [1]}, "weights has 1 entries; expected one for each of 2"),
        (Empirical, {"values": [1], "weights": [0]}, "weights are all 0; expected at least one above"),
        (Empirical, {"values": [1], "weights": [-1]}, "weights[0] is -1; expected a number from 0"),
        (Uniform, {"minimum": 5, "maximum": 4}, "maximum is 4; expected a whole number from 5"),
        (Zipf, {"alpha": 1, "maximum": 10**7}, "maximum is 10000000; expected a whole number from 1 to 1000000"),
        (Quantiles, {"shares": [0, 1], "values": [5]}, "values has 1 entries; expected one for each of 2 shares"),
        (
            Quantiles,
            {"shares": [0, 0.5], "values": [5, 6]},
            "shares is (0, 0.5); expected ascending numbers",
        ),
        (Quantiles, {"shares": [0, 1], "values": [6, 5]}, "values is (6, 5); expected non-decreasing numbers"),
        (Quantiles, {"shares": [0, 1], "values": [0, 5]}, "values[0] is 0; expected a number from 1"),
    ],
)
def test_an_impossible_law_names_its_field(law, arguments, expected):
    with pytest.raises(BadInput) as caught:
        law(**arguments)
    assert str(caught.value).startswith(expected)
