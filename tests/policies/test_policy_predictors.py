"""Predictors that err by a matrix or by a rank correlation, and those that learn from what has ended."""

from collections import Counter
from math import exp, pi

import numpy as np
import pytest
from scipy import stats
from sim_stories import engine, happenings, job, run

from policies.predictors.classifier import Classifier
from policies.predictors.correlated import Correlated
from policies.predictors.learned import ClassMean, Quantile
from policies.predictors.registry import predictor
from policies.registry import build
from policies.registry import predictor as named
from sim.sequence import Sequence

EDGES = (10, 50)
"""Buckets 1 to 9, 10 to 49, and from 50 on, which counts as wide as the one before: to 90."""


def test_a_classifier_that_never_errs_says_the_middle_of_the_bucket():
    predict = Classifier(EDGES)
    assert [predict(job("x", output)) for output in (1, 9, 10, 49, 50, 5000)] == [5.5, 5.5, 30, 30, 70, 70]


def test_the_buckets_named_follow_the_row_of_the_true_one():
    # 3000 requests of 20 tokens, and shares of 0.2, 0.5, 0.3 within 4 standard errors.
    rows = ((1, 0, 0), (0.2, 0.5, 0.3), (0, 0, 1))
    predict = Classifier(EDGES, rows, seed=5)
    named = Counter(predict(job(str(place), 20)) for place in range(3000))
    for middle, share in {5.5: 0.2, 30: 0.5, 70: 0.3}.items():
        assert abs(named[middle] / 3000 - share) < 4 * (share * (1 - share) / 3000) ** 0.5
    assert {predict(job(str(place), 5)) for place in range(50)} == {5.5}
    # The draw is the request's own.
    assert predict(job("7", 20)) == Classifier(EDGES, rows, seed=5)(job("7", 20))
    assert [predict(job(str(place), 20)) for place in range(50)] != [
        Classifier(EDGES, rows, seed=6)(job(str(place), 20)) for place in range(50)
    ]


@pytest.mark.parametrize("tau", [-0.5, 0.0, 0.3, 0.7, 1.0])
def test_the_kendall_tau_is_the_one_asked_for(tau):
    # Lognormal lengths, long enough that rounding makes no ties to speak of. For a pair of normals with
    # correlation r the deviation of the estimate is at most that of independence, sqrt(2 (2n + 5) / (9n (n - 1))).
    count = 2000
    lengths = np.exp(np.random.default_rng(1).normal(np.log(10**6), 0.8, count)).astype(int)
    predict = Correlated(tau, median=10**6, sigma=0.8, seed=2)
    predictions = [predict(job(str(place), int(length))) for place, length in enumerate(lengths)]
    error = (2 * (2 * count + 5) / (9 * count * (count - 1))) ** 0.5
    assert abs(stats.kendalltau(lengths, predictions).statistic - tau) < 4 * error + 1e-4
    # The predictions follow the law of the lengths.
    assert abs(np.log(predictions).mean() - np.log(10**6)) < 4 * 0.8 / count**0.5


def test_a_tau_of_one_is_the_truth_and_of_minus_one_its_mirror():
    assert Correlated(1, median=100, sigma=1)(job("x", 250)) == pytest.approx(250)
    assert Correlated(-1, median=100, sigma=1)(job("x", 250)) == pytest.approx(100 / 2.5)
    # A tau of 1/3 is a correlation of sin(pi / 6) = 1/2: with the noise of e = 0 the score is halved.
    predictions = [Correlated(1 / 3, 100, 1)(job(str(place), round(100 * exp(2)))) for place in range(4000)]
    assert abs(np.log(np.array(predictions) / 100).mean() - np.sin(pi / 6) * 2) < 4 * 0.75**0.5 / 4000**0.5 + 0.001


def ended(request):
    """A sequence that has had all its tokens."""
    seq = Sequence(request, 0)
    seq.known = request.prompt + request.output
    seq.over = True
    return seq


def test_the_mean_of_a_class_is_over_its_tenant_and_prompts_of_like_length():
    predict = ClassMean(prior=100)
    assert predict(job("new", 7)) == 100
    for output, prompt, tenant in [(10, 5, "a"), (30, 7, "a"), (500, 5, "b"), (60, 8, "a")]:
        predict.ended(ended(job("x", output, prompt, tenant=tenant)))
    # Prompts of 4 to 7 are one class, those of 8 to 15 another.
    assert predict(job("new", 7, prompt=4, tenant="a")) == 20
    assert predict(job("new", 7, prompt=6, tenant="b")) == 500
    assert predict(job("new", 7, prompt=15, tenant="a")) == 60
    # In an unknown class the mean of all: 600 / 4.
    assert predict(job("new", 7, prompt=99, tenant="a")) == 150


def test_the_quantile_of_history():
    predict = Quantile(prior=100, quantile=0.5)
    assert predict(job("new", 7)) == 100
    for output in (9, 1, 5, 7):
        predict.ended(ended(job("x", output)))
    # The smallest number that half of 1, 5, 7, 9 do not exceed.
    assert predict(job("new", 7)) == 5
    assert predict.name == "quantile 0.5 of history"


def test_one_that_was_cut_short_teaches_nothing():
    predict = Quantile(prior=100, quantile=0.5)
    seq = Sequence(job("x", 50), 0)
    seq.known += 3
    predict.ended(seq)
    seq = ended(job("x", 50))
    seq.target.cut_short = True
    predict.ended(seq)
    assert predict(job("new", 7)) == 100


@pytest.mark.parametrize("name", ["sjf", "srpt", "longest", "hrrn"])
def test_an_order_tells_its_predictor_of_every_end_and_of_no_other(name):
    """One slot; tenant a's requests are long, b's short, and nobody knows until one of each has ended.

    "a1" comes first and ends at 20, "b1" at 22: both had the prior of 10. What joins later is ranked by what has
    ended by then: "b2", "a2" join at 21, when only an end of 20 tokens is known, so both are taken for 20.
    At 30 b2 (or a2) runs, and "a3" and "b3" join with 20 and 2.
    """
    requests = [job("a1", 20, tenant="a"), job("b1", 2, tenant="b")]
    requests += [job("a2", 20, tenant="a", arrival=21), job("b2", 2, tenant="b", arrival=21)]
    requests += [job("a3", 20, tenant="a", arrival=30), job("b3", 2, tenant="b", arrival=30)]
    order = build(name, {"predict": {"class_mean": {"prior": 10}}}, 0)
    log = run(requests, engine(slots=1, order=order))
    served = [event.who for event in happenings(log, "admitted")]
    assert served[:3] == ["a1", "b1", "a2"]
    if name in ("sjf", "srpt"):
        assert served[3:] == ["b3", "b2", "a3"]
    assert order.predict(job("new", 7, tenant="a")) == 20
    assert order.predict(job("new", 7, tenant="b")) == 2


def test_results_can_name_them():
    options = {"correlated": {"tau": 0.5, "median": 100, "sigma": 1}}
    assert named("srpt", {"predict": options}) == "Kendall tau 0.5"
    assert named("drr", {"predict": "class_mean"}) == "class mean"
    assert named("vtc", {}) is None
    assert named("vtc", {"prepay": True}) == "exact"
    assert named("max_wait", {"order": {"hrrn": {"predict": {"classifier": {"edges": [9]}}}}}) == "classifier"


@pytest.mark.parametrize(
    ("predict", "words"),
    [
        ("oracle", "predict is 'oracle'; known are exact, prompt"),
        (["exact"], r"predict is \['exact'\]; did you mean exact"),
        ("classifier", "predict.classifier: edges is missing; its options are edges, confusion"),
        ({"classifier": {"edges": [5], "rows": []}}, "predict.classifier.rows: unknown option"),
        ({"classifier": {"edges": [5, 5]}}, "edges is .5, 5.; expected ascending token counts above 1"),
        ({"classifier": {"edges": [1]}}, "expected ascending token counts above 1"),
        ({"classifier": {"edges": [5.5]}}, "expected whole numbers of tokens"),
        ({"classifier": {"edges": "5"}}, "edges is '5'; expected a list of numbers"),
        ({"classifier": {"edges": [5], "confusion": [[1, 0]]}}, "confusion has 1 rows; expected 2"),
        (
            {"classifier": {"edges": [5], "confusion": [[1, 0], [0.5, 0.4]]}},
            "expected 2 probabilities that add up to 1",
        ),
        ({"correlated": {"tau": 2, "median": 10, "sigma": 1}}, "tau is 2.0; expected -1 to 1"),
        ({"correlated": {"tau": 0, "median": 0, "sigma": 1}}, "median is 0.0"),
        ({"correlated": {"tau": 0, "median": 10, "sigma": 0}}, "sigma is 0.0"),
        ({"correlated": {"tau": "x", "median": 10, "sigma": 1}}, "tau is 'x'; expected a number"),
        ({"quantile": {"quantile": 0}}, "quantile is 0; expected above 0 and at most 1"),
        ({"quantile": {"prior": -1}}, "prior is -1; expected a number of tokens above 0"),
    ],
)
def test_what_predicts_nothing_is_refused(predict, words):
    with pytest.raises(ValueError, match=words):
        predictor(predict, 0, seed=0)
