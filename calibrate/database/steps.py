"""The parts of a step as the database sums them, in nanoseconds: the interface, and its engine behind it.

`aiconfigurator_core` sums the times of the operators of a model: kernels only, no launches, no host. Its operators
are told apart by what they depend on: those that change with the context are attention, the output head is the one
named logits, and all others depend on the tokens of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

Operator = tuple[str, float, float, str]
"""Name, milliseconds, energy, source: as the engine returns an operator."""

NS = 1e6
"""Nanoseconds in a millisecond, the engine's unit."""
FAR = 8192
"""A context long enough to tell which operators depend on it."""


class Steps(Protocol):
    """Nanoseconds of the parts of a step, and of whole steps as the source itself sums them."""

    @property
    def shares_projections(self) -> bool:
        """Whether the attention of decodes includes projections that a chunk in the same step reads for them."""

    def shared(self, tokens: int) -> float:
        """All that depends on the tokens alone, in a step with a chunk."""

    def decode_shared(self, decodes: int) -> float:
        """The same in a step of decodes alone."""

    def heads(self, sequences: int) -> float:
        """The output head of so many sequences."""

    def decode(self, decodes: int, context: int) -> float:
        """Attention of decodes with `context` cached positions each."""

    def chunk(self, tokens: int, start: int, prompts: int = 1) -> float:
        """Attention of chunks of `tokens` positions after `start` cached ones."""

    def whole_decode(self, decodes: int, context: int) -> float:
        """A whole step of decodes."""

    def whole_prefill(self, tokens: int, start: int, prompts: int = 1) -> float:
        """A whole step of chunks."""

    def whole_mixed(self, tokens: int, decodes: int, context: int) -> float | None:
        """A whole step of one prompt and of decodes; None where the source has no such sum."""


class DatabaseSteps:
    """The steps of an `AicEngine`. Whatever that raises for missing tables is raised here."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        near, far = self.decode_operators(8, 64), self.decode_operators(8, FAR)
        self.decode_attention = differing(near, far)
        self.chunk_attention = differing(self.chunk_operators(1024, 0), self.chunk_operators(1024, FAR))
        self.sources = {name: source for name, _, _, source in [*near, *self.chunk_operators(1024, 0)]}
        self.chunks_have_head = any(is_head(name) for name, _, _, _ in self.chunk_operators(1024, 0))
        mixed = engine.mixed_step_breakdown_per_op(1024, 8, 1024, 0)
        self.shares_projections = not mixed[2]

    def decode_operators(self, decodes: int, context: int) -> list[Operator]:
        """The operators of a step of decodes; the engine counts the new token by itself."""
        found: list[Operator] = self.engine.decode_step_per_op(decodes, context, 0)
        return found

    def chunk_operators(self, tokens: int, start: int, prompts: int = 1) -> list[Operator]:
        """The operators of a step of chunks."""
        found: list[Operator]
        found, _ = self.engine.run_static_per_op(prompts, 1, start + tokens, 2, start, 1.0, 1.0, "static_ctx", 32)
        return found

    def shared(self, tokens: int) -> float:
        """All operators of a chunk but attention and the output head."""
        names = self.chunk_attention
        return total(self.chunk_operators(tokens, 0), lambda name: name not in names and not is_head(name))

    def decode_shared(self, decodes: int) -> float:
        """All operators of decodes but attention and the output head."""
        names = self.decode_attention
        return total(self.decode_operators(decodes, 64), lambda name: name not in names and not is_head(name))

    def heads(self, sequences: int) -> float:
        """The output head, as a step of so many decodes has it."""
        return total(self.decode_operators(sequences, 64), is_head)

    def decode(self, decodes: int, context: int) -> float:
        """Attention of decodes."""
        return total(self.decode_operators(decodes, context), self.decode_attention.__contains__)

    def chunk(self, tokens: int, start: int, prompts: int = 1) -> float:
        """Attention of chunks."""
        return total(self.chunk_operators(tokens, start, prompts), self.chunk_attention.__contains__)

    def whole_decode(self, decodes: int, context: int) -> float:
        """The engine's own sum."""
        return float(self.engine.decode_step_latency(decodes, context, 0)) * NS

    def whole_prefill(self, tokens: int, start: int, prompts: int = 1) -> float:
        """The engine's own sum; for some models that leaves out the output head, which is added."""
        whole = float(self.engine.predict_prefill_latency(prompts, start + tokens, start)) * NS
        return whole + self.missing_head(prompts)

    def whole_mixed(self, tokens: int, decodes: int, context: int) -> float | None:
        """The engine's own sum; None for latent attention, whose mixed steps it sums without the decodes' attention.

        The engine takes the decodes' context from the prompt's length, so their attention is replaced.
        """
        if self.shares_projections:
            return None
        whole, _, _, decode = self.engine.mixed_step_breakdown(tokens, decodes, tokens, 0)
        return float(whole - decode) * NS + self.decode(decodes, context) + self.missing_head(decodes + 1)

    def missing_head(self, sequences: int) -> float:
        """The output head, where the engine's steps with a chunk have none."""
        return 0.0 if self.chunks_have_head else self.heads(sequences)


def differing(one: Iterable[Operator], other: Iterable[Operator]) -> frozenset[str]:
    """The names of the operators whose times differ."""
    times = {name: time for name, time, _, _ in one}
    return frozenset(name for name, time, _, _ in other if abs(time - times.get(name, 0.0)) > 1e-9 * time)


def is_head(name: str) -> bool:
    """Whether an operator is the output head."""
    return "logits" in name


def total(operators: Iterable[Operator], wanted: Callable[[str], bool]) -> float:
    """Nanoseconds of the operators whose names are wanted."""
    return sum(time for name, time, _, _ in operators if wanted(name)) * NS
