"""The tokens of every request that has begun, on the device, where generated tokens are appended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from calibrate.decoder.engine.input_batch import PADDING_ROW


class TokenStore:
    """A row of `max_model_len` + 1 token ids on the device for each request that has been in a step.

    There is room for `rows` of them at first. A request's prompt stays on the host until its first step. `known`
    counts the tokens of a request, those included that steps in flight will bring; `rows` has the row of each request
    that has one. Methods named `device_` run in the order of the steps, wherever those run; the others on the host.
    """

    def __init__(self, max_model_len: int, vocabulary: int, device: torch.device, rows: int) -> None:
        self.max_model_len = max_model_len
        self.vocabulary = vocabulary
        self.tokens = torch.zeros(PADDING_ROW + 1 + rows, max_model_len + 1, dtype=torch.int32, device=device)
        self.known: dict[int, int] = {}
        self.rows: dict[int, int] = {}
        self.prompts: dict[int, Tensor] = {}
        self.free: list[int] = []
        self.used = PADDING_ROW + 1

    def begin(self, request: int, prompt: Sequence[int]) -> None:
        """Store a prompt; raises ValueError for one that is empty, too long, or has an unknown token."""
        tokens = np.array(prompt, dtype=np.int64)
        if request in self.known:
            raise ValueError(f"request {request}: has begun already")
        if not 0 < len(tokens) <= self.max_model_len:
            raise ValueError(f"request {request}: {len(tokens)} tokens of prompt; expected 1 to {self.max_model_len}")
        if tokens.min() < 0 or tokens.max() >= self.vocabulary:
            strange = tokens.min() if tokens.min() < 0 else tokens.max()
            raise ValueError(f"request {request}: no token {strange}; expected 0 to {self.vocabulary - 1}")
        held = torch.from_numpy(tokens.astype(np.int32))
        self.prompts[request] = held.pin_memory() if self.tokens.is_cuda else held
        self.known[request] = len(tokens)

    def place(self, request: int) -> None:
        """Assign a row to a request that has none: before its first step."""
        if request not in self.rows:
            if not self.free:
                self.free.append(self.used)
                self.used += 1
            self.rows[request] = self.free.pop()

    def arrivals(self, requests: Iterable[int]) -> list[tuple[int, Tensor]]:
        """The prompts of these requests that are still on the host, with their rows, for `device_write`."""
        return [(self.rows[request], self.prompts.pop(request)) for request in requests if request in self.prompts]

    def end(self, request: int) -> None:
        """Forget a request; raises ValueError for one that has not begun."""
        if self.known.pop(request, None) is None:
            raise ValueError(f"request {request}: has not begun")
        self.prompts.pop(request, None)
        if request in self.rows:
            self.free.append(self.rows.pop(request))

    def device_write(self, row: int, prompt: Tensor) -> None:
        """Put a prompt into its row."""
        if row >= len(self.tokens):
            grown = self.tokens.new_zeros(2 * row, self.tokens.shape[1])
            grown[: len(self.tokens)] = self.tokens
            self.tokens = grown
        self.tokens[row, : len(prompt)].copy_(prompt, non_blocking=True)
