"""Longest first: the request expected to generate most goes first.

For a job that is done when its last request is, such as an offline batch: the long ones do not come last, when
slots stand empty (Graham 1969: on m equal machines the longest first ends within 4/3 - 1/(3m) of the best
makespan). The worst order for the mean wait, and it starves the short while long ones come.
"""

from __future__ import annotations

from policies.entry import Entry
from policies.predict import predictor
from policies.predicted import OPTIONS, PredictedOrder, name_of_predictor
from sim.policy.base import Order, Rank
from sim.request import Sequence


class LongestFirst(PredictedOrder):
    """Ranked by predicted tokens to come, the most first."""

    def rank(self, seq: Sequence) -> Rank:
        """Less than nothing, by the predicted number of tokens to come."""
        return (-self.remaining(seq),)


def make(seed: int, predict: object, error: object) -> Order:
    """An order by the predictor that the options ask for. Raises ValueError for options that ask for none."""
    return LongestFirst(predictor(predict, error, seed))


ENTRY = Entry(
    "Most predicted tokens to come first, for the earliest end of a batch.",
    make,
    OPTIONS,
    name_of_predictor,
    source="Graham, SIAM Journal on Applied Mathematics 1969",
)
