"""KV that goes from one engine to another: pages kept after a prefill, and slots taken before the KV is there.

A leg that is `kept` leaves its slot with its first token, and its pages stay until they have been copied. A leg that
`fetches` is admitted like any other, with pages for the positions to come, and computes nothing until they are there.
What the driver reports of either takes effect with the next plan.
"""

from __future__ import annotations

from sim.sequence import Sequence


class Handover:
    """The sequences of one engine whose KV goes elsewhere, or is elsewhere.

    kept       without a slot, with pages that are still to be copied, by index; `positions` in all
    copied     of these, those copied since the last plan
    remote     waiting for admission, with KV on another engine, by index
    away       the same with a slot and pages
    come       those whose KV has come since the last plan
    news       since the driver last asked: (sequence, positions to be fetched) of those admitted, None for positions
               of those preempted before they came
    """

    def __init__(self) -> None:
        self.kept: dict[int, Sequence] = {}
        self.positions = 0
        self.copied: list[Sequence] = []
        self.remote: dict[int, Sequence] = {}
        self.away: dict[int, Sequence] = {}
        self.come: list[Sequence] = []
        self.news: list[tuple[Sequence, int | None]] = []

    @property
    def due(self) -> bool:
        """Whether the next plan has something to take note of."""
        return bool(self.copied or self.come)

    def expect(self, seq: Sequence) -> None:
        """A sequence is queued whose KV is on another engine."""
        self.remote[seq.index] = seq

    def begin(self, seq: Sequence, positions: int) -> None:
        """A sequence has been admitted, and `positions` of its KV are to be fetched."""
        self.away[seq.index] = self.remote.pop(seq.index)
        self.news.append((seq, positions))

    def displace(self, seq: Sequence) -> bool:
        """A running sequence is preempted; whether its KV was still away, and stays where it is."""
        if self.away.pop(seq.index, None) is None:
            return False
        self.remote[seq.index] = seq
        self.news.append((seq, None))
        return True

    def reported(self) -> list[tuple[Sequence, int | None]]:
        """The `news` since the last call, in order."""
        news, self.news = self.news, []
        return news

    def receive(self, seq: Sequence) -> None:
        """The KV of a sequence has come."""
        self.come.append(seq)

    def arrived(self) -> list[Sequence]:
        """The sequences whose KV has come since the last plan, and that still have their slot."""
        come, self.come = self.come, []
        return [seq for seq in come if self.away.pop(seq.index, None) is not None]

    def keep(self, seq: Sequence) -> None:
        """A sequence leaves its slot, and its pages stay."""
        self.kept[seq.index] = seq
        self.positions += seq.computed

    def let_go(self, seq: Sequence) -> None:
        """The pages of a kept sequence are not needed any more."""
        self.copied.append(seq)

    def freed(self) -> list[Sequence]:
        """The kept sequences whose pages are not needed any more since the last plan."""
        copied, self.copied = self.copied, []
        for seq in copied:
            del self.kept[seq.index]
            self.positions -= seq.computed
        return copied

    def forget(self, seq: Sequence) -> None:
        """A sequence has ended here."""
        self.remote.pop(seq.index, None)
        self.away.pop(seq.index, None)

    def lose_all(self) -> None:
        """The content of the memory is lost; what waits, waits."""
        for seq in self.kept.values():
            seq.pages.lose()
        self.kept, self.away = {}, {}
        self.positions = 0
        self.copied, self.come, self.news = [], [], []

    def check(self) -> None:
        """Check what holds once every request has ended: nothing is left over. Raises AssertionError."""
        assert not self.kept, f"pages of {len(self.kept)} sequences were never copied"
        assert not self.remote, "a sequence still waits for its KV"
        assert not self.away, "a slot still waits for KV"
        assert not self.positions, "positions are kept that are not there"
