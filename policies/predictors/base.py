"""The protocol of a predictor of output length, and the two that need no options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from policies.base.entry import Choice
from sim.request import Request


class Predictor(Protocol):
    """A callable from a request to its predicted output length, in tokens.

    Any number that grows with the expected length can order requests; policies that add it to other token counts
    (`least_slack`, `drr`, `vtc`, `tenant_rate`) need a length. The prediction of one request stays the same, unless
    the predictor learns.
    """

    @property
    def name(self) -> str:
        """The predictor's name in results."""

    def __call__(self, request: Request) -> float:
        """Predicted output tokens of the request."""


@dataclass(frozen=True)
class Exact:
    """The true output length: an upper bound on what real predictors achieve."""

    name: str = "exact"

    def __call__(self, request: Request) -> float:
        return request.output


@dataclass(frozen=True)
class PromptLength:
    """The prompt's length: known without a model, and often a poor prediction."""

    name: str = "prompt"

    def __call__(self, request: Request) -> float:
        return request.prompt


def prompt(seed: int) -> Predictor:
    """The predictor by prompts; `seed` is not used."""
    return PromptLength()


PROMPT = Choice("The prompt's length: known without a model, and often a poor prediction.", prompt)
