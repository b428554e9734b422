"""The most that one engine could bear: its rate with a full batch, in closed form.

With B requests in the batch, each of O output tokens, every step finishes B / O of them and computes B P / O prompt
tokens:

    rate = (B / O) / step(B)

B is the least of the slots, of what the memory holds, and of what the token budget serves. An engine that speculates
finishes B E / O requests a step, for E tokens that a verification brings. Of two pools, the one that computes prompts
runs steps of whole prompts, or of pieces as long as its budget, and the other has no prompts. No latency is limited,
and nothing is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from sim.cost.drafted import Drafted
from sim.cost.forms import Curve, StepCost
from sim.cost.shape import Shape
from sim.request import Request

PARTS = ("weights", "cache reads", "arithmetic", "host")


@dataclass(frozen=True)
class Machine:
    """What bounds a batch: slots, pages of so many positions, tokens of a step.

    apart   whether prompts are computed in passes of their own, which no token budget shares with decodes
    drafts  tokens that a decode verifies besides its own, and `brings`: tokens that a step brings it on average
    """

    slots: int
    pages: int
    page_size: int
    token_budget: int
    apart: bool = False
    drafts: int = 0
    brings: float = 1.0


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
    batch     requests in a full batch, and `slots` of the engine
    bound_by  what keeps the batch from being larger: `slots`, `KV pages` or `the token budget`
    parts     shares of the time of its steps, by PARTS: host; weights: what a step takes however little is in it;
              cache reads: what the context adds; arithmetic: what the tokens add. They add up to 1
    """

    rate: float
    batch: float
    slots: int
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
    """The bound of one engine at one step cost; without prompts if they are computed elsewhere (`load.prompt` 0)."""
    limits = {"slots": float(machine.slots)}
    limits["KV pages"] = machine.pages / ceil((load.held + machine.drafts) / machine.page_size)
    if not machine.apart:
        limits["the token budget"] = machine.token_budget / (
            1 + machine.drafts + load.prompt * machine.brings / load.output
        )
    bound_by = min(limits, key=lambda name: limits[name])
    batch = max(limits[bound_by], 1.0)
    whole = lasting(cost, machine, load, batch, context=True)
    bare = lasting(cost, machine, load, batch, context=False)
    least = Shape()
    least.add_decode(0)
    return Bound(
        batch * machine.brings / load.output / (whole / 1e9),
        batch,
        machine.slots,
        bound_by,
        shares(cost, whole, bare, min(cost.step(least), bare)),
    )


def bound_of_prompts(cost: StepCost, machine: Machine, load: Load) -> Bound:
    """The bound of an engine that computes prompts alone: as many in a step as fit, or one in several steps."""
    size = max(round(load.prompt), 1)
    limits = {"slots": float(machine.slots), "KV pages": machine.pages / ceil(size / machine.page_size)}
    limits["the token budget"] = machine.token_budget / size
    bound_by = min(limits, key=lambda name: limits[name])
    batch = max(int(limits[bound_by]), 1)
    steps = [(min(machine.token_budget, size - start), start) for start in range(0, size, machine.token_budget)]
    whole = sum(cost.step(chunks(batch, tokens, start)) for tokens, start in steps)
    bare = sum(cost.step(chunks(batch, tokens, 0)) for tokens, _ in steps)
    least = len(steps) * cost.step(chunks(1, 1, 0))
    parts = shares(cost, whole, bare, min(least, bare), len(steps))
    return Bound(batch / (whole / 1e9), batch, machine.slots, bound_by, parts)


def shares(cost: StepCost, whole: float, bare: float, least: float, steps: int = 1) -> dict[str, float]:
    """The parts of `steps` steps of `whole` ns, `bare` without context and `least` with the least that a step has."""
    of_model = cost.cost if isinstance(cost, Drafted) else cost
    host = min(float(of_model.host * steps), least) if isinstance(of_model, Curve) else 0.0
    times = dict(zip(PARTS, (least - host, whole - bare, bare - least, host), strict=True))
    return {name: max(time, 0.0) / whole for name, time in times.items()}


def lasting(cost: StepCost, machine: Machine, load: Load, batch: float, context: bool) -> float:
    """Nanoseconds for each token of each request of a full batch, with its share of prompts; `context`: with reads.

    Prompts are computed beside decodes, as many tokens a step as the budget leaves, or in passes of their own.
    """
    decodes = max(round(batch), 1)
    read = round(batch * load.held) if context else 0
    drafts = decodes * machine.drafts
    decoding = cost.step(shape(decodes, drafts, read))
    if not load.prompt:
        return decoding
    prompts = batch * machine.brings / load.output
    size = max(round(load.prompt), 1)
    if machine.apart:
        return decoding + prompts * cost.step(chunks(1, size, 0))
    room = max(machine.token_budget - decodes - drafts, 1)
    mixed = min(prompts * ceil(size / room), 1.0)
    tokens = max(round(prompts * size / mixed), 1)
    return (1 - mixed) * decoding + mixed * cost.step(shape(decodes, drafts, read, tokens))


def shape(decodes: int, drafts: int, context: int, chunk: int = 0) -> Shape:
    """A step of so many decodes over so much context, of drafts that they verify, and of a chunk."""
    made = Shape()
    made.decodes, made.drafts, made.context, made.longest = decodes, drafts, context, context // max(decodes, 1)
    if chunk:
        made.add_chunk(0, chunk)
    return made


def chunks(count: int, tokens: int, start: int) -> Shape:
    """A step of `count` chunks of so many tokens from a position on."""
    made = Shape()
    for _ in range(count):
        made.add_chunk(start, tokens)
    return made
