"""Predictors that learn from the outputs of ended requests, without a model and without the true length.

The order that uses one notifies it when a request ends, with the number of tokens generated. Of waiting and running
requests it uses the prompt length and the tenant. A prediction changes while the predictor learns, so an order
computes it once, when a sequence joins the queue or returns to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from math import ceil

from policies.base.entry import Choice, Option
from sim.request import Request
from sim.sequence import Sequence


class LearnedPredictor(ABC):
    """A predictor that is notified of every end; before the first one it returns `prior` (tokens)."""

    def __init__(self, prior: float) -> None:
        """Raises ValueError for a prior that is not a number of tokens above 0."""
        if isinstance(prior, bool) or not isinstance(prior, int | float) or not 0 < prior < 10**9:
            raise ValueError(f"prior is {prior!r}; expected a number of tokens above 0")
        self.prior = float(prior)

    @property
    @abstractmethod
    def name(self) -> str:
        """The predictor's name in results."""

    @abstractmethod
    def __call__(self, request: Request) -> float:
        """Predicted output tokens, from the requests that have ended so far."""

    def ended(self, seq: Sequence) -> None:
        """Learn from a request that left the engine, unless it was cut short."""
        if seq.over and not seq.target.cut_short:
            self.learn(seq.request, seq.known - seq.request.prompt)

    @abstractmethod
    def learn(self, request: Request, tokens: int) -> None:
        """Add a completed request and its output tokens."""


class ClassMean(LearnedPredictor):
    """The mean output of the ended requests of the same class: one tenant, prompts of the same power of two.

    Accurate where each tenant is one application with its own prompts. Slow to follow a change, as all ended requests
    count alike. A class without ended requests takes the mean of all classes.
    """

    name = "class mean"

    def __init__(self, prior: float) -> None:
        super().__init__(prior)
        self.sums: dict[tuple[str, int] | None, tuple[int, int]] = {}  # (tokens, requests); None: all classes

    def __call__(self, request: Request) -> float:
        tokens, requests = self.sums.get(prompt_class(request)) or self.sums.get(None) or (self.prior, 1)
        return tokens / requests

    def learn(self, request: Request, tokens: int) -> None:
        """Add to the sums of its class and of all classes."""
        for key in (prompt_class(request), None):
            before, requests = self.sums.get(key, (0, 0))
            self.sums[key] = (before + tokens, requests + 1)


def prompt_class(request: Request) -> tuple[str, int]:
    """The tenant, and the number of binary digits of the prompt length."""
    return request.tenant, request.prompt.bit_length()


class Quantile(LearnedPredictor):
    """A quantile of the outputs of all ended requests: the same for all requests that join at one time.

    It does not distinguish requests, so an order by it alone is almost by arrival. Use it where a length is needed
    that is seldom exceeded: slack, a charge in advance, the cost of a turn.
    """

    def __init__(self, prior: float, quantile: float) -> None:
        """Raises ValueError for a quantile that is not above 0 and at most 1."""
        super().__init__(prior)
        if isinstance(quantile, bool) or not isinstance(quantile, int | float) or not 0 < quantile <= 1:
            raise ValueError(f"quantile is {quantile!r}; expected above 0 and at most 1")
        self.quantile = quantile
        self.outputs: list[int] = []

    @property
    def name(self) -> str:
        """The predictor's name in results."""
        return f"quantile {self.quantile:g} of history"

    def __call__(self, request: Request) -> float:
        if not self.outputs:
            return self.prior
        return self.outputs[ceil(self.quantile * len(self.outputs)) - 1]

    def learn(self, request: Request, tokens: int) -> None:
        """Insert the length into the sorted outputs."""
        insort(self.outputs, tokens)


def class_mean(seed: int, prior: object) -> LearnedPredictor:
    """A predictor by class means; `seed` is not used."""
    return ClassMean(prior)  # type: ignore[arg-type]  # it checks


def quantile(seed: int, quantile: object, prior: object) -> LearnedPredictor:
    """A predictor by a quantile; `seed` is not used."""
    return Quantile(prior, quantile)  # type: ignore[arg-type]  # it checks


CLASS_MEAN = Choice(
    "The mean output of the ended requests of the same class: one tenant, prompts of the same power of two.",
    class_mean,
    {"prior": Option(100)},
)
QUANTILE = Choice(
    "A quantile of the outputs of all ended requests: the same for all requests that join at one time.",
    quantile,
    {"quantile": Option(0.9), "prior": Option(100)},
)
