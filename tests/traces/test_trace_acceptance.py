"""Laws of acceptance: their means by theory, and that a request's draws are its own."""

from __future__ import annotations

import numpy as np
import pytest

from sim.request import Request
from traces.synthetic.acceptance import ByPosition, ForcedLength, OfEachRequest, accepted, run_lengths

REQUESTS = 2_000


def measured(law, drafts):
    """Mean tokens of a verification over many requests, and its standard error between requests."""
    draw = accepted(law, 1, drafts)
    means = np.array(
        [1 + np.frombuffer(draw(Request(str(each), 0, 1, 50)), np.uint8).mean() for each in range(REQUESTS)]
    )
    return means.mean(), means.std() / np.sqrt(REQUESTS)


@pytest.mark.parametrize(
    ("law", "drafts", "expected"),
    [
        # Equal chances: (1 - p^(k + 1)) / (1 - p).
        (ByPosition((0.8,)), 4, (1 - 0.8**5) / 0.2),
        (ByPosition((0.5,)), 1, 1.5),
        # 1 + 0.9 + 0.9 x 0.5 + 0.9 x 0.5 x 0.5: the third draft has the last chance.
        (ByPosition((0.9, 0.5)), 3, 1 + 0.9 + 0.45 + 0.225),
        # A chance uniform in [0, 1] has mean 1/2 and standard deviation sqrt(1/12): E[p^n] = 1 / (n + 1).
        (OfEachRequest(0.5, 12**-0.5), 3, 1 + 1 / 2 + 1 / 3 + 1 / 4),
        (ForcedLength(3.61), 5, 3.61),
        (ForcedLength(3.61), 2, 3.0),
    ],
)
def test_the_mean_is_that_of_theory(law, drafts, expected):
    assert law.expected(drafts) == pytest.approx(expected)
    mean, error = measured(law, drafts)
    assert abs(mean - expected) < 4 * error + 1e-9


def test_a_draft_is_accepted_while_all_before_it_were():
    right = np.array([[True, True, False], [True, False, True], [False, True, True], [True, True, True]])
    assert run_lengths(right).tolist() == [2, 1, 0, 3]


def test_a_request_has_the_same_drafts_wherever_it_runs():
    law, request = ByPosition((0.6,)), Request("a", 0, 1, 30)
    assert accepted(law, 7, 4)(request) == accepted(law, 7, 4)(Request("a", 99, 5, 30))
    assert accepted(law, 7, 4)(request) != accepted(law, 8, 4)(request)
    assert accepted(law, 7, 4)(request) != accepted(law, 7, 4)(Request("b", 0, 1, 30))


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda: ByPosition((1.2,)), "from 0 to 1"),
        (lambda: ByPosition(()), "one or more"),
        (lambda: OfEachRequest(0.5, 0.6), "spread"),
        (lambda: OfEachRequest(1.0, 0.1), "mean"),
        (lambda: ForcedLength(0.5), "at least 1"),
    ],
)
def test_what_no_law_is(make, wrong):
    with pytest.raises(ValueError, match=wrong):
        make()
