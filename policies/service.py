"""What a tenant has been served: prompt tokens and output tokens, weighted, counted while they are given.

An account is settled up to a step and goes on earning a fixed pace per step after it, so no step is counted one
by one. A request may have tokens prepaid: they were charged when it was admitted, so they are not when they
come, and what is left of them is given back when it ends. Charges are whole numbers, so sums are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from math import lcm

from sim.policy.base import Order
from sim.request import Sequence


@dataclass(frozen=True)
class Charge:
    """What one token of a tenant's prompts and one of its outputs cost."""

    prompt_token: int
    output_token: int


class Tariff:
    """The charges of every tenant: weights of prompt and output tokens over the tenant's own weight.

    All are multiplied by one number that makes them whole: 1 where all weights are whole and no tenant has its
    own. Raises ValueError for a weight that is no number above 0 (the prompt's may be 0).
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
        """In whole numbers."""
        return Charge(int(prompt * self.scale), int(output * self.scale))

    def of(self, tenant: str) -> Charge:
        """The charge of a tenant; its weight is 1 if nothing else is said."""
        return self.special.get(tenant, self.usual)


def weight(name: str, value: object, least: int | None = None) -> Fraction:
    """`value` as the exact number that it is written as; raises ValueError unless above 0 (or at least `least`)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is {value!r}; expected a number above 0")
    if not 0 < value < 10**9 and value != least:
        raise ValueError(f"{name} is {value!r}; expected a number above 0")
    return Fraction(str(value))


class Account:
    """One tenant: the queue of its requests, and its service, settled up to a step.

    payers   its sequences that decode and pay for it; they go on earning after the step settled
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
        self.pays_from: dict[int, int] = {}  # the step from which a decoding sequence pays
        self.starts: list[tuple[int, int]] = []  # heap of those yet to come; some may have stopped before

    @property
    def pace(self) -> int:
        """Service per step, until the next one begins to pay."""
        return self.charge.output_token * self.payers

    def service(self, step: int) -> int:
        """Service received before step number `step`; steps never go back."""
        self.settle(step)
        return self.settled

    def settle(self, step: int, more: int = 0) -> None:
        """Bring the counter up to date, and add to it."""
        while self.starts and self.starts[0][0] <= step:
            start, index = heappop(self.starts)
            if self.pays_from.get(index) == start:
                self.earn(start)
                self.payers += 1
        self.earn(step)
        self.settled += more

    def earn(self, step: int) -> None:
        """Up to a step, at the present pace."""
        self.settled += self.pace * (step - self.settled_at)
        self.settled_at = step

    def next_start(self) -> int | None:
        """The step from which on one more sequence may pay, as far as it is known."""
        return self.starts[0][0] if self.starts else None

    def admit(self, seq: Sequence, step: int, prepaid: int) -> None:
        """Charge a prompt, and the output tokens that are paid in advance."""
        if prepaid:
            self.prepaid[seq.index] = prepaid
        self.settle(step, self.charge.prompt_token * seq.request.prompt + self.charge.output_token * prepaid)

    def unpaid(self, seq: Sequence) -> int:
        """Tokens that a sequence has yet to get before it pays for them; below 0 if it has outgrown that."""
        return self.prepaid.get(seq.index, 0) - (seq.known - seq.request.prompt)

    def token(self, seq: Sequence, step: int) -> None:
        """Charge a token that came outside of plain decoding, unless it is prepaid."""
        if self.unpaid(seq) < 0:
            self.settle(step, self.charge.output_token)

    def decoding(self, seq: Sequence, step: int) -> None:
        """From here on the sequence gets one token more per step, and pays from some step on."""
        self.settle(step)
        start = step + max(0, self.unpaid(seq))
        self.pays_from[seq.index] = start
        if start > step:
            heappush(self.starts, (start, seq.index))
        else:
            self.payers += 1

    def paused(self, seq: Sequence, step: int) -> None:
        """It no longer does."""
        self.settle(step)
        if self.pays_from.pop(seq.index) <= step:
            self.payers -= 1

    def end(self, seq: Sequence, step: int) -> None:
        """Give back what was prepaid and never came."""
        left = max(0, self.unpaid(seq))
        self.prepaid.pop(seq.index, None)
        self.settle(step, -self.charge.output_token * left)
