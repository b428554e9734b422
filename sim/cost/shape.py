"""The shape of a batch: all that the cost of its step depends on."""

from __future__ import annotations


class Shape:
    """The shape of a batch: all that its cost depends on.

    decodes        sequences that compute exactly one new token (held ones are computed too and count)
    context        cached positions the decoding sequences attend to, without the new ones
    longest        the most that one of them attends to, if the cost depends on it
    drafts         draft tokens that decoding sequences verify, besides their one new token each
    chunks         sequences that compute part of a prompt, or recompute
    chunk_tokens   positions those compute
    pieces         (start, positions) of each of those
    double_work    2 x sum of n x (start + n / 2) over the chunks: attention pairs, doubled to stay whole
    pages          pages in which the batch has tokens
    copied         positions copied to splice sequences into a contiguous cache
    swapped        positions moved between the device and the host, out and in
    """

    __slots__ = (
        "chunk_tokens",
        "chunks",
        "context",
        "copied",
        "decodes",
        "double_work",
        "drafts",
        "longest",
        "pages",
        "pieces",
        "swapped",
    )

    def __init__(self) -> None:
        self.decodes = self.context = self.longest = self.pages = 0
        self.chunks = self.chunk_tokens = self.double_work = 0
        self.copied = self.swapped = self.drafts = 0
        self.pieces: list[tuple[int, int]] = []

    @property
    def excess(self) -> int:
        """Positions that all decodes would read beyond `context` if each were as long as the longest."""
        return self.decodes * self.longest - self.context

    def add_decode(self, context: int) -> None:
        """Add a sequence that computes one new token and attends to `context` cached positions."""
        self.decodes += 1
        self.context += context
        self.longest = max(self.longest, context)

    @property
    def dense_tokens(self) -> int:
        """Positions that share the matrix products: of decodes, their drafts, and chunks."""
        return self.decodes + self.drafts + self.chunk_tokens

    def add_pages(self, pages: int) -> None:
        """The batch has tokens in so many pages more."""
        self.pages += pages

    def add_chunk(self, start: int, tokens: int) -> None:
        """Add a chunk of `tokens` positions that follow `start` computed ones."""
        self.chunks += 1
        self.pieces.append((start, tokens))
        self.chunk_tokens += tokens
        self.double_work += tokens * (2 * start + tokens)
