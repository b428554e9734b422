"""The most that one engine could bear: its rate with a full batch, in closed form.

With B requests in the batch, each of O output tokens, every step finishes B / O of them and computes B P / O prompt
tokens:

    rate = (B / O) / step(B)

B is the least of the slots, of what the memory holds, and of what the token budget serves. No latency is limited, and
nothing is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from sim.cost.forms import Curve, StepCost
from sim.cost.shape import Shape
from sim.request import Request

PARTS = ("weights", "cache reads", "arithmetic", "host")


@dataclass(frozen=True)
class Machine:
    """What bounds a batch: slots, pages of so many positions, tokens of a step.

    apart  whether prompts are computed in passes of their own, which no token budget shares with decodes
    """

    slots: int
    pages: int
    page_size: int
    token_budget: int
    apart: bool = False


@dataclass(frozen=True)
class Load:
    """Mean lengths of requests, in tokens.

    prompt  of a request, without those that a prefix cache holds
    output  of a request
    held    positions of a request, averaged over its decode steps
    """

    prompt: float
    output: float
    held: float


@dataclass(frozen=True)
class Bound:
    """The most that one engine can bear.

    rate      requests/s with a full batch
    batch     requests in a full batch
    bound_by  what keeps the batch from being larger: `slots`, `KV pages` or `the token budget`
    parts     shares of the time of its steps, by PARTS: host; weights: what a step takes however little is in it;
              cache reads: what the context adds; arithmetic: what the tokens add. They add up to 1
    """

    rate: float
    batch: float
    bound_by: str
    parts: Mapping[str, float]

    @property
    def largest(self) -> str:
        """The largest part of a step."""
        return max(self.parts, key=lambda name: self.parts[name])


def load_of(requests: Sequence[Request], cached: float = 0.0) -> Load | None:
    """The mean lengths of requests, of whose prompts the share `cached` is not computed; None without any."""
    if not requests:
        return None
    outputs = sum(each.output for each in requests)
    prompts = sum(each.prompt for each in requests)
    held = sum(each.output * (each.prompt + each.output / 2) for each in requests) / outputs
    return Load((1 - cached) * prompts / len(requests), outputs / len(requests), held)


def bound(cost: StepCost, machine: Machine, load: Load) -> Bound:
    """The bound of one engine at one step cost."""
    limits = {"slots": float(machine.slots)}
    limits["KV pages"] = machine.pages / ceil(load.held / machine.page_size)
    if not machine.apart:
        limits["the token budget"] = machine.token_budget / (1 + load.prompt / load.output)
    bound_by = min(limits, key=lambda name: limits[name])
    batch = max(limits[bound_by], 1.0)
    whole = lasting(cost, machine, load, batch, context=True)
    bare = lasting(cost, machine, load, batch, context=False)
    least = Shape()
    least.add_decode(0)
    host = min(float(cost.host), bare) if isinstance(cost, Curve) else 0.0
    weights = min(cost.step(least), bare) - host
    times = dict(zip(PARTS, (weights, whole - bare, bare - host - weights, host), strict=True))
    shares = {name: max(time, 0.0) / whole for name, time in times.items()}
    return Bound(batch / load.output / (whole / 1e9), batch, bound_by, shares)


def lasting(cost: StepCost, machine: Machine, load: Load, batch: float, context: bool) -> float:
    """Nanoseconds for each token of each request of a full batch, with its share of prompts; `context`: with reads.

    Prompts are computed beside decodes, as many tokens a step as the budget leaves, or in passes of their own.
    """
    decodes = max(round(batch), 1)
    read = round(batch * load.held) if context else 0
    decoding = cost.step(shape(decodes, read))
    prompts = batch / load.output
    size = max(round(load.prompt), 1)
    if machine.apart:
        return decoding + prompts * cost.step(shape(0, 0, size))
    room = max(machine.token_budget - decodes, 1)
    mixed = min(prompts * ceil(size / room), 1.0)
    tokens = max(round(prompts * size / mixed), 1)
    return (1 - mixed) * decoding + mixed * cost.step(shape(decodes, read, tokens))


def shape(decodes: int, context: int, chunk: int = 0) -> Shape:
    """A step of so many decodes over so much context, and a chunk."""
    made = Shape()
    made.decodes, made.context, made.longest = decodes, context, context // max(decodes, 1)
    if chunk:
        made.add_chunk(0, chunk)
    return made
