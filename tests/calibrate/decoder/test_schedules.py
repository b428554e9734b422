"""Whatever a scheduler does with its requests, each gets the tokens that it gets alone: random schedules."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from calibrate.decoder.engine.executor import Executor
from calibrate.decoder.engine.opening import open_engine
from calibrate.decoder.engine.options import EngineOptions
from calibrate.decoder.engine.protocol import Row, Step
from calibrate.models.decoder_shape import ModelShape

SHAPE = ModelShape("small", 2, 64, 160, 4, 2, 16, 320, dtype="float32", max_model_len=256)
PAGE, PAGES, HOST = 8, 60, 24
PROMPTS = [[(31 * n + 7 * request) % 320 for n in range(3 + 11 * request)] for request in range(5)]
OUTPUT = 10


@pytest.fixture(scope="module")
def engine() -> Iterator[Executor]:
    options = EngineOptions(
        device="cpu", page_size=PAGE, pages=PAGES, host_pages=HOST, slots=5, token_budget=64, max_model_len=96, seed=5
    )
    with open_engine(SHAPE, options) as opened:
        yield opened


@pytest.fixture(scope="module")
def alone(engine: Executor) -> list[list[int]]:
    """The tokens of each request by itself, its prompt in one piece."""
    found = []
    for request, prompt in enumerate(PROMPTS):
        engine.begin(request, prompt)
        tokens: list[int] = []
        for position in range(len(prompt) - 1, len(prompt) - 1 + OUTPUT):
            start, count = (position, 1) if tokens else (0, len(prompt))
            row = Row(request, start, count, list(range(12)), True)
            tokens += engine.collect(engine.launch(Step((row,)))).tokens
        engine.end(request)
        found.append(tokens)
    return found


class Life:
    """One request in a random schedule: how far it is, where its pages are, on the device or on the host."""

    def __init__(self, request: int) -> None:
        self.request = request
        self.known = len(PROMPTS[request])
        self.goal = self.known + OUTPUT
        self.computed = 0
        self.pages: list[int] = []
        self.away: list[int] = []
        self.tokens: list[int] = []


class Schedule:
    """Steps drawn at random: who computes, how much, who is dropped, swapped out, or brought back; two in flight."""

    def __init__(self, engine: Executor, seed: int) -> None:
        self.engine = engine
        self.draw = Random(seed)
        self.free = self.draw.sample(range(PAGES), PAGES)
        self.host = self.draw.sample(range(HOST), HOST)
        self.requests = [Life(request) for request in range(len(PROMPTS))]
        self.flying: deque[tuple[Any, list[Life]]] = deque()
        self.seen = {"dropped": 0, "swapped": 0, "mixed": 0}

    def run(self) -> list[list[int]]:
        """Until every request has its tokens."""
        for life in self.requests:
            self.engine.begin(life.request, PROMPTS[life.request])
        while any(life.known < life.goal for life in self.requests):
            self.step()
            if len(self.flying) == 2:
                self.collect()
        while self.flying:
            self.collect()
        for life in self.requests:
            self.engine.end(life.request)
        return [life.tokens for life in self.requests]

    def step(self) -> None:
        """Plan one and launch it."""
        going = [life for life in self.requests if life.known < life.goal]
        out, back = self.leave(going), self.come_back(going)
        chosen = self.draw.sample(going, self.draw.randint(1, len(going)))
        rows = [self.row(life, self.draw.choice((1, 2, 5, 30, 60))) for life in chosen if not life.away]
        if not rows:
            back += self.come_back(going, surely=True)
            rows.append(self.row(next(life for life in going if not life.away), 60))
        self.seen["mixed"] += {row.count > 1 for row in rows} == {True, False}
        waiting = [life for life in self.requests for row in rows if row.request == life.request and row.yields]
        waiting.sort(key=lambda life: [row.request for row in rows].index(life.request))
        self.flying.append((self.engine.launch(Step(tuple(rows), tuple(out), tuple(back))), waiting))

    def row(self, life: Life, most: int) -> Row:
        """The next part of a request, at most so many positions and no more than a share of the budget."""
        count = min(life.known - life.computed, most, 12)
        start, life.computed = life.computed, life.computed + count
        while len(life.pages) * PAGE < life.computed:
            life.pages.append(self.free.pop())
        yields = life.computed == life.known
        life.known += yields
        return Row(life.request, start, count, list(life.pages), yields)

    def leave(self, going: list[Life]) -> list[tuple[int, int]]:
        """Perhaps somebody starts over, perhaps somebody's pages go to the host."""
        life = self.draw.choice(going)
        if not life.pages or self.draw.random() < 0.6:
            return []
        pages, life.pages = life.pages, []
        self.free[:0] = pages
        if self.draw.random() < 0.5 or len(pages) > len(self.host):
            life.computed = 0
            self.seen["dropped"] += 1
            return []
        life.away = [self.host.pop() for _ in pages]
        self.seen["swapped"] += 1
        return list(zip(pages, life.away, strict=True))

    def come_back(self, going: list[Life], surely: bool = False) -> list[tuple[int, int]]:
        """Perhaps somebody's pages come back, to others than they were; not in the step in which they left."""
        away = [life for life in going if life.away and len(life.away) <= len(self.free)]
        if not away or (not surely and self.draw.random() < 0.5):
            return []
        life = away[0]
        life.pages = [self.free.pop() for _ in life.away]
        pairs = list(zip(life.away, life.pages, strict=True))
        self.host[:0] = life.away
        life.away = []
        return pairs

    def collect(self) -> None:
        """The oldest step has ended."""
        handle, waiting = self.flying.popleft()
        for life, token in zip(waiting, self.engine.collect(handle).tokens, strict=True):
            life.tokens.append(token)


@pytest.mark.parametrize("seed", range(12))
def test_every_request_gets_the_tokens_it_gets_alone(engine: Executor, alone: list[list[int]], seed: int) -> None:
    assert Schedule(engine, seed).run() == alone


def test_the_schedules_drop_swap_and_mix(engine: Executor) -> None:
    schedules = [Schedule(engine, seed) for seed in range(4)]
    for schedule in schedules:
        schedule.run()
    for what in ("dropped", "swapped", "mixed"):
        assert sum(schedule.seen[what] for schedule in schedules) >= 10
