"""Shortest job first, and the predictions it goes by."""

import ast
from math import log
from statistics import mean, stdev

import pytest
from repository import ROOT
from sim_stories import engine, happenings, job, jobs, run, times

from policies.predictors.base import Exact, PromptLength
from policies.predictors.lognormal_error import LognormalError
from policies.sjf import ShortestJobFirst

TRUTH = ("output", "goal", "finish_at", "cancel_after", "cancel_tokens")
"""Attributes of requests and sequences that give away the true output length, or what the client will do."""
READ_THE_TRUTH = {"Exact", "LognormalError", "Classifier", "Correlated"}
"""The exact predictor, and the models of an erroneous one that start from the true length."""


def served(log):
    return [event.who for event in happenings(log, "admitted")]


def test_the_shortest_goes_first_and_equals_in_order_of_arrival():
    log = run(jobs(a=5, b=2, c=9, d=1, e=2), engine(slots=1, order=ShortestJobFirst(Exact())))
    # d ends at 1, b at 3, e at 5, a at 10, c at 19.
    assert served(log) == ["d", "b", "e", "a", "c"]
    assert times(log, "finished") == {"d": 1, "b": 3, "e": 5, "a": 10, "c": 19}


def test_it_takes_nobody_s_slot_away():
    log = run([job("long", 10), job("short", 1, arrival=2)], engine(slots=1, order=ShortestJobFirst()))
    assert times(log, "finished") == {"long": 10, "short": 11}


def test_by_prompt_it_knows_only_the_prompt():
    requests = [job("a", 1, prompt=9), job("b", 50, prompt=2), job("c", 3, prompt=5)]
    assert served(run(requests, engine(slots=1, order=ShortestJobFirst(PromptLength())))) == ["b", "c", "a"]
    assert served(run(requests, engine(slots=1, order=ShortestJobFirst(Exact())))) == ["a", "c", "b"]


def test_predictions():
    request = job("a", 7, prompt=3, max_output=100)
    assert Exact()(request) == 7
    assert PromptLength()(request) == 3
    assert LognormalError(sigma=0, seed=1)(request) == 7
    names = [predictor.name for predictor in (Exact(), PromptLength(), LognormalError(0.5, 0))]
    assert names == ["exact", "prompt", "lognormal error 0.5"]


def test_a_wrong_prediction_is_the_same_each_time_and_of_nobody_else():
    requests = [job(str(name), 100) for name in range(50)]
    forwards = {request.id: LognormalError(0.5, seed=3)(request) for request in requests}
    predict = LognormalError(0.5, seed=3)
    backwards = {request.id: predict(request) for request in reversed(requests[::2])}
    assert backwards == {request.id: forwards[request.id] for request in requests[::2]}
    assert [predict(requests[0]) for _ in range(3)] == [forwards["0"]] * 3
    # The error belongs to the id and not to the length, and each seed has its own.
    assert predict(job("0", 200)) == pytest.approx(2 * forwards["0"])
    assert LognormalError(0.5, seed=4)(requests[0]) != forwards["0"]
    assert len(set(forwards.values())) == 50


def test_the_error_is_lognormal():
    # log(prediction / truth) has mean 0 and deviation sigma: over 4000 ids within 4 standard errors.
    predict = LognormalError(0.8, seed=0)
    errors = [log(predict(job(str(name), 100)) / 100) for name in range(4000)]
    assert abs(mean(errors)) < 4 * 0.8 / 4000**0.5
    assert abs(stdev(errors) - 0.8) < 4 * 0.8 / (2 * 4000) ** 0.5


@pytest.mark.parametrize("sigma", [-0.1, float("nan"), float("inf")])
def test_an_impossible_error_is_refused(sigma):
    with pytest.raises(ValueError, match=f"error is {sigma}; expected a sigma"):
        LognormalError(sigma, seed=0)


def attributes(tree):
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize(
    "path",
    sorted([*(ROOT / "policies").rglob("*.py"), *(ROOT / "sim" / "policy").glob("*.py")]),
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_no_policy_sees_the_true_output_length(path):
    tree = ast.parse(path.read_text())
    readers = [node for node in tree.body if isinstance(node, ast.ClassDef) and "output" in attributes(node)]
    assert {node.name for node in readers} <= READ_THE_TRUTH
    tree.body = [node for node in tree.body if node not in readers]
    assert not attributes(tree) & set(TRUTH)
    if path.name != "choices.py":  # which reads the entry of a class
        assert not {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & {"getattr", "vars"}
