"""Service received by each tenant: weighted prompt and output tokens, counted as they are computed.

A counter is settled up to a step and grows by a fixed service per step after it, so steps are not counted one by one.
Output tokens may be prepaid: they are charged when the request is admitted and not when they are generated, and the
rest is refunded when the request ends. Charges are whole numbers, so sums are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from math import lcm

from policies.base.option_values import weight
from sim.policy.base import Order
from sim.sequence import Sequence


@dataclass(frozen=True)
class Charge:
    """Service charged for one prompt token and for one output token of a tenant."""

    prompt_token: int
    output_token: int


class Tariff:
    """The charges of every tenant: weights of prompt and output tokens divided by the tenant's own weight.

    All are multiplied by one factor that makes them whole: 1 where all weights are whole and no tenant has its
    own. Raises ValueError for a weight that is not a number above 0 (the prompt's may be 0).
    """

    def __init__(self, prompt: object = 1, output: object = 2, tenants: object = None) -> None:
        given = {} if tenants is None else tenants
        if not isinstance(given, Mapping):
            raise ValueError(f"weights is {given!r}; expected tenants with their weights")
        tokens = weight("prompt_weight", prompt, least=0), weight("output_weight", output)
        shares = {str(name): weight(f"weights.{name}", share) for name, share in given.items()}
        exact = {name: [token / share for token in tokens] for name, share in shares.items()}
        self.scale = lcm(*(part.denominator for parts in [tokens, *exact.values()] for part in parts))
        self.usual = self.charge(*tokens)
        self.special = {name: self.charge(*parts) for name, parts in exact.items()}

    def charge(self, prompt: Fraction, output: Fraction) -> Charge:
        """The charge scaled to whole numbers."""
        return Charge(int(prompt * self.scale), int(output * self.scale))

    def of(self, tenant: str) -> Charge:
        """The charge of a tenant; its weight is 1 unless given."""
        return self.special.get(tenant, self.usual)


class ServiceCounter:
    """One tenant: the queue of its requests, and its service counter, settled up to a step.

    payers   its decoding sequences whose tokens are charged; they are charged in every step after the settled one
    present  its requests in the engine, waiting or running
    """

    def __init__(self, queue: Order, charge: Charge) -> None:
        self.queue = queue
        self.charge = charge
        self.settled = 0
        self.settled_at = 0
        self.payers = 0
        self.present = 0
        self.prepaid: dict[int, int] = {}  # output tokens charged at admission, by request
        self.pays_from: dict[int, int] = {}  # the step from which a decoding sequence is charged
        self.starts: list[tuple[int, int]] = []  # heap of starts still ahead; some have stopped

    @property
    def service_per_step(self) -> int:
        """Service charged per step, until the next sequence starts to be charged."""
        return self.charge.output_token * self.payers

    def service(self, step: int) -> int:
        """Service received before step number `step`, which must not decrease between calls."""
        self.settle(step)
        return self.settled

    def settle(self, step: int, more: int = 0) -> None:
        """Settle the counter up to `step`, and add `more`."""
        while self.starts and self.starts[0][0] <= step:
            start, index = heappop(self.starts)
            if self.pays_from.get(index) == start:
                self.accrue(start)
                self.payers += 1
        self.accrue(step)
        self.settled += more

    def accrue(self, step: int) -> None:
        """Settle up to a step at the present service per step."""
        self.settled += self.service_per_step * (step - self.settled_at)
        self.settled_at = step

    def next_start(self) -> int | None:
        """The next step at which one more sequence may start to be charged; None if none is known."""
        return self.starts[0][0] if self.starts else None

    def admit(self, seq: Sequence, step: int, prepaid: int) -> None:
        """Charge a prompt and its prepaid output tokens."""
        if prepaid:
            self.prepaid[seq.index] = prepaid
        self.settle(step, self.charge.prompt_token * seq.request.prompt + self.charge.output_token * prepaid)

    def unpaid(self, seq: Sequence) -> int:
        """Prepaid tokens that the sequence has not generated yet; below 0 once it has generated more."""
        return self.prepaid.get(seq.index, 0) - (seq.known - seq.request.prompt)

    def token(self, seq: Sequence, step: int) -> None:
        """Charge a token generated outside of a decoding run, unless it is prepaid."""
        if self.unpaid(seq) < 0:
            self.settle(step, self.charge.output_token)

    def decoding(self, seq: Sequence, step: int) -> None:
        """From `step` on the sequence generates one token per step; it is charged after its prepaid tokens."""
        self.settle(step)
        start = step + max(0, self.unpaid(seq))
        self.pays_from[seq.index] = start
        if start > step:
            heappush(self.starts, (start, seq.index))
        else:
            self.payers += 1

    def paused(self, seq: Sequence, step: int) -> None:
        """From `step` on the sequence no longer generates a token per step."""
        self.settle(step)
        if self.pays_from.pop(seq.index) <= step:
            self.payers -= 1

    def end(self, seq: Sequence, step: int) -> None:
        """Refund prepaid tokens that were not generated."""
        left = max(0, self.unpaid(seq))
        self.prepaid.pop(seq.index, None)
        self.settle(step, -self.charge.output_token * left)
