"""Predictions learned from the requests that have ended: no model, no oracle, only what a server can count.

They hear of a request's end from the order that uses them, and of how many tokens it got by then; of those that
wait or run they know the prompt and the tenant. What they say of a request changes while they learn, so an
order asks once, when a sequence joins the queue or returns to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from math import ceil

from sim.request import Request, Sequence


class History(ABC):
    """A predictor that is told of every end; before the first it says `prior`."""

    def __init__(self, prior: float) -> None:
        """Raises ValueError for a prior that is no number of tokens."""
        if isinstance(prior, bool) or not isinstance(prior, int | float) or not 0 < prior < 10**9:
            raise ValueError(f"prior is {prior!r}; expected a number of tokens above 0")
        self.prior = float(prior)

    @property
    @abstractmethod
    def name(self) -> str:
        """What results call it."""

    @abstractmethod
    def __call__(self, request: Request) -> float:
        """What the requests that have ended so far let expect."""

    def ended(self, seq: Sequence) -> None:
        """A request has left the engine; one that was cut short says nothing about its length."""
        if seq.over and not seq.cut_short:
            self.learn(seq.request, seq.known - seq.request.prompt)

    @abstractmethod
    def learn(self, request: Request, tokens: int) -> None:
        """A request has had so many tokens, and they were all."""


class ClassMean(History):
    """The mean output of the ended requests of the same class: one tenant, prompts of the same power of two.

    Good where a tenant is an application with its own prompts; slow to follow a change, for it never forgets. A
    class that nobody has ended in takes the mean of all.
    """

    name = "class mean"

    def __init__(self, prior: float) -> None:
        super().__init__(prior)
        self.sums: dict[tuple[str, int] | None, tuple[int, int]] = {}  # (tokens, requests); None: all classes

    def __call__(self, request: Request) -> float:
        tokens, requests = self.sums.get(prompt_class(request)) or self.sums.get(None) or (self.prior, 1)
        return tokens / requests

    def learn(self, request: Request, tokens: int) -> None:
        """Count it in its class and in all."""
        for key in (prompt_class(request), None):
            before, requests = self.sums.get(key, (0, 0))
            self.sums[key] = (before + tokens, requests + 1)


def prompt_class(request: Request) -> tuple[str, int]:
    """The tenant, and the power of two up to which its prompt reaches."""
    return request.tenant, request.prompt.bit_length()


class Quantile(History):
    """A quantile of the outputs of all ended requests: the same number for everyone who joins at one time.

    It tells nobody apart, so an order by it alone is by arrival nearly; it serves where a length is needed that
    is seldom exceeded: slack, a charge in advance, a fair share of work.
    """

    def __init__(self, prior: float, quantile: float) -> None:
        """Raises ValueError for a quantile that is none."""
        super().__init__(prior)
        if isinstance(quantile, bool) or not isinstance(quantile, int | float) or not 0 < quantile <= 1:
            raise ValueError(f"quantile is {quantile!r}; expected above 0 and at most 1")
        self.quantile = quantile
        self.outputs: list[int] = []

    @property
    def name(self) -> str:
        """What results call it."""
        return f"quantile {self.quantile:g} of history"

    def __call__(self, request: Request) -> float:
        if not self.outputs:
            return self.prior
        return self.outputs[ceil(self.quantile * len(self.outputs)) - 1]

    def learn(self, request: Request, tokens: int) -> None:
        """Enter it among those seen, in order of length."""
        insort(self.outputs, tokens)
