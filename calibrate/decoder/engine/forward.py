"""One forward pass, from the stored tokens that it reads to the tokens that it stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from calibrate.decoder.engine.input_batch import Moves
from calibrate.decoder.engine.token_store import TokenStore
from calibrate.decoder.model.attention_metadata import AttentionMetadata
from calibrate.decoder.model.decoder import Decoder


@dataclass(frozen=True)
class ForwardPass:
    """A decoder, the tokens of its requests, and how a token is chosen: `choose(logits, draws)`."""

    decoder: Decoder
    store: TokenStore
    choose: Callable[[Tensor, Tensor], Tensor]

    def __call__(self, batch: AttentionMetadata, moves: Moves, wanted: Tensor | None = None) -> Tensor:
        """The tokens after all computed ones, or after those wanted, which are in the store afterwards."""
        tokens = self.store.tokens[moves.sources, batch.positions]
        found = self.choose(self.decoder.logits(tokens, batch, wanted), moves.draws)
        self.store.tokens[moves.targets, moves.columns] = found.int()
        return found
