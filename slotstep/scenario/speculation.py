"""The section of an engine that speculates: how many tokens it drafts, how, and which are accepted."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, PlainSerializer, model_validator

from slotstep.scenario.cost import Cost
from slotstep.scenario.fields import Count, Portion, Section, Seed, Time, number, sequence
from traces.synthetic.acceptance import MOST_DRAFTS, ByPosition, ForcedLength, Law, OfEachRequest

EXPECTED = "a chance, a list of chances by position, {mean, spread} over requests, or {length} in tokens"


def law(value: object) -> Law:
    """A law of acceptance: 0.8, [0.9, 0.8], {mean: 0.8, spread: 0.1} or {length: 3.6}. Raises ValueError."""
    if isinstance(value, ByPosition | OfEachRequest | ForcedLength):
        return value
    if isinstance(value, list | tuple):
        return ByPosition(tuple(float(number(each, "chances")) for each in sequence(value)))
    if not isinstance(value, dict):
        return ByPosition((float(number(value, EXPECTED)),))
    if set(value) == {"length"}:
        return ForcedLength(float(number(value["length"])))
    if set(value) == {"mean", "spread"}:
        return OfEachRequest(float(number(value["mean"])), float(number(value["spread"])))
    raise ValueError(f"found the keys {', '.join(map(str, value))}; expected {EXPECTED}")


def written(value: Law) -> Any:
    """A law as a scenario has it."""
    if isinstance(value, ByPosition):
        return value.chances[0] if len(value.chances) == 1 else list(value.chances)
    if isinstance(value, OfEachRequest):
        return {"mean": value.mean, "spread": value.spread}
    assert isinstance(value, ForcedLength)
    return {"length": value.tokens}


class Draft(Section):
    """What drafting costs; nothing by default.

    lookup  time of a step in which tokens are drafted by looking them up (n-grams, suffixes)
    share   of a step that decodes one token each: time of drafting one token by heads of the model (EAGLE, MTP)
    layers  of those heads, for `fit`: their weights and KV memory
    cost    of a draft model: one pass for each token that it drafts, and over every prompt
    """

    lookup: Time | None = None
    share: Portion | None = None
    layers: Seed = 0
    cost: Cost | None = None

    @model_validator(mode="after")
    def one_way(self) -> Self:
        """One way of drafting."""
        given = [key for key in ("lookup", "share", "cost") if getattr(self, key) is not None]
        if len(given) > 1:
            raise ValueError(f"found {' and '.join(given)}; expected one of lookup, share and cost")
        if self.layers and self.share is None:
            raise ValueError("layers needs share: they are those of the heads that draft")
        return self


class Speculation(Section):
    """Speculative decoding: `tokens` are drafted behind each sequence, and the next step verifies them."""

    tokens: Count
    acceptance: Annotated[Any, BeforeValidator(law), PlainSerializer(written)]
    draft: Draft = Draft()

    @model_validator(mode="after")
    def not_too_many(self) -> Self:
        """As many drafts as an acceptance is counted for."""
        if self.tokens > MOST_DRAFTS:
            raise ValueError(f"tokens is {self.tokens}; expected at most {MOST_DRAFTS}")
        return self
