"""A policy of one's own: the request with the least work in all goes first, prompt and output together.

    cd examples
    slotstep compare chat.yaml --policies fcfs,sjf,least_work:LeastWork

An order by rank needs one method; see `sim.policy.base.Order` for one that keeps a queue of its own.
"""

from policies.predictors.base import Exact
from sim.policy.base import RankedOrder


class LeastWork(RankedOrder):
    """Ascending by prompt plus predicted output; an output token counts as `weight` prompt tokens."""

    def __init__(self, weight=10):
        super().__init__()
        self.weight = weight
        self.predict = Exact()

    def rank(self, seq):
        """The smaller goes first."""
        return (seq.request.prompt + self.weight * self.predict(seq.request),)
