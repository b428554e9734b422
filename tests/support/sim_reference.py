"""The default step in the most naive way: lists, one object per sequence, one iteration per step.

Written from the description of the engine, to be compared with the one that is fast. Costs are affine with
integer coefficients, so that there is nothing to round.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Engine:
    slots: int
    budget: int
    pages: int
    page_size: int
    reserve: bool
    chunked: bool


@dataclass(frozen=True)
class Prices:
    """Nanoseconds; `per_pair` for each pair of a chunk's token and a token it attends to, its own by half."""

    base: int
    per_sequence: int
    per_context_token: int
    per_prefill_token: int
    two_pairs: int
    per_page: int


@dataclass(eq=False)
class Life:
    """What becomes of one request."""

    request: object
    known: int = 0
    computed: int = 0
    most_computed: int = 0
    held: int = 0
    rejected: bool = False
    admissions: list[int] = field(default_factory=list)
    preemptions: list[tuple[int, int]] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)


def pages_of(positions, engine):
    return (positions + engine.page_size - 1) // engine.page_size


def reference(requests, engine, prices):
    """(records in order of arrival, [(start, duration, tokens computed)] of the steps)."""
    arriving = [Life(request, known=request.prompt) for request in requests]
    records = list(arriving)
    waiting, running, steps = [], [], []
    free = engine.pages
    now = 0
    while arriving or waiting or running:
        if not waiting and not running:
            now = max(now, arriving[0].request.arrival)
        while arriving and arriving[0].request.arrival <= now:
            life = arriving.pop(0)
            most = life.request.prompt + life.request.max_output - 1
            too_long = not engine.chunked and life.request.prompt > engine.budget
            if too_long or pages_of(most, engine) > engine.pages:
                life.rejected = True
            else:
                waiting.append(life)
        if not waiting and not running:
            continue

        # Continue: in the order of admission, as far as budget and pages go.
        budget = engine.budget
        plan = []
        preempted = False
        for life in running:
            tokens = min(life.known - life.computed, budget)
            more = pages_of(life.computed + tokens, engine) - life.held
            while not engine.reserve and more > free and life in running:
                victim = running.pop()
                budget += sum(count for other, count in plan if other is victim)
                plan = [(other, count) for other, count in plan if other is not victim]
                victim.preemptions.append((now, victim.computed))
                free += victim.held
                victim.held = victim.computed = 0
                waiting.insert(0, victim)
                preempted = True
            if life not in running:
                break
            if not engine.reserve:
                free -= more
                life.held += more
            budget -= tokens
            plan.append((life, tokens))

        # Admit: from the front of the line, as long as there are a slot, budget and pages.
        while waiting and not preempted and len(running) < engine.slots and budget:
            life = waiting[0]
            tokens = min(life.known, budget)
            if not engine.chunked and tokens < life.known <= engine.budget:
                break
            most = life.request.prompt + life.request.max_output - 1
            if pages_of(most if engine.reserve else life.known, engine) > free:
                break
            life.held = pages_of(most if engine.reserve else tokens, engine)
            free -= life.held
            budget -= tokens
            life.admissions.append(now)
            running.append(waiting.pop(0))
            plan.append((life, tokens))

        # Forward: a token that follows what was generated is a decode, all else is part of a chunk.
        cost = prices.base
        for life, tokens in plan:
            again = life.computed < life.most_computed
            if tokens and (again or life.computed < life.request.prompt):
                cost += prices.per_prefill_token * tokens
                cost += prices.two_pairs * (tokens * life.computed * 2 + tokens * tokens)
            elif tokens:
                cost += prices.per_sequence + prices.per_context_token * life.computed
        filled = {id(life): life.computed + tokens for life, tokens in plan}
        cost += prices.per_page * sum(pages_of(filled[id(life)], engine) for life in running)
        steps.append((now, cost, sum(tokens for _, tokens in plan)))
        now += cost

        # Harvest: who has computed all that is known gets a token; whoever has all of them leaves.
        for life, tokens in plan:
            life.computed += tokens
            life.most_computed = max(life.most_computed, life.computed)
            if life.computed == life.known:
                life.known += 1
                life.tokens.append(now)
                if len(life.tokens) == life.request.output:
                    running.remove(life)
                    free += life.held
    assert free == engine.pages
    return records, steps
