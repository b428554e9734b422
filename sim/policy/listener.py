"""What an engine tells those that watch the service its sequences receive."""

from __future__ import annotations

from sim.sequence import Sequence


class Listener:
    """Notified of what happens to the sequences of an engine; `step` counts the steps planned so far.

    An order registers its listeners, often itself, in `Order.listeners`.
    """

    def admitted(self, seq: Sequence, step: int) -> None:
        """A sequence has been admitted, in the plan of step number `step`."""

    def token(self, seq: Sequence, step: int) -> None:
        """A sequence gets a token from step number `step` - 1: its first, or the next after a preemption."""

    def decoding(self, seq: Sequence, step: int) -> None:
        """A sequence gets one token from every step from number `step` on."""

    def paused(self, seq: Sequence, step: int) -> None:
        """A sequence gets none from step number `step` on: it ended, was preempted or got no budget."""

    def processed(self, tokens: int) -> None:
        """The engine computes so many positions more, in steps that have been planned."""

    def left(self, seq: Sequence, step: int) -> None:
        """A sequence has ended or was aborted, and is gone from slots and queue, before step number `step`."""
