"""Whether a whole engine on this device computes the right tokens, before anything of it is timed.

Requests that are chunked, preempted, swapped and found in the cache get the tokens that they get alone. Kernels by
themselves are checked by `calibrate.gpu.kernel_checks`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrate.decoder.engine.opening import open_engine
from calibrate.decoder.engine.options import EngineOptions
from calibrate.decoder.engine.protocol import Outcome, Step
from calibrate.models.decoder_shape import ModelShape
from calibrate.replay.arrival_order import ByArrival
from calibrate.replay.batch_adapter import BatchAdapter
from calibrate.replay.clock import FakeClock
from calibrate.replay.driver import Driver
from calibrate.replay.prompts import prompts
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.numbered import NumberedPool, NumberedPrefixPool
from sim.policy.base import Policy
from sim.request import Request
from sim.service.clients import OpenLoop

SMALL = ModelShape("small", 2, 128, 256, 8, 2, 16, 500, dtype="float32", max_model_len=512)
SAME = 0.9
"""Least share of a request's tokens before the first that differs: another batch may round a near tie differently,
but a wrong page changes every later token.
"""

CheckResult = dict[str, Any]


class Listener:
    """An engine that records the tokens of its requests."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.tokens: dict[int, list[int]] = {}
        self.yielding: list[list[int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def launch(self, step: Step) -> Any:
        """Record which requests yield."""
        self.yielding.append([row.request for row in step.rows if row.yields])
        return self.engine.launch(step)

    def collect(self, handle: Any) -> Outcome:
        """Record the tokens."""
        outcome: Outcome = self.engine.collect(handle)
        for request, token in zip(self.yielding.pop(0), outcome.tokens, strict=True):
            self.tokens.setdefault(request, []).append(token)
        return outcome


def check_engine(device: str, backend: str = "auto") -> list[CheckResult]:
    """The tokens of six requests under memory pressure, on a small model in float32.

    Compared with those that each request gets alone from the backend `torch`, without padding or captured graphs.
    """
    story = [
        Request(str(n), 0, 40 + n, 24 - n, blocks=(0, 1, n) if n % 2 else (9 + n, 19 + n, 29 + n), block_size=16)
        for n in range(6)
    ]
    options = EngineOptions(
        device=device,  # type: ignore[arg-type]
        dtype="float32",
        attention=backend,  # type: ignore[arg-type]
        pages=100,
        host_pages=200,
        slots=8,
        token_budget=64,
        max_model_len=128,
    )
    checks = []
    with open_engine(SMALL, replace(options, attention="torch", capture_sizes=())) as reference:
        alone = [served(reference, [request], 100, False, False)[0] for request in story]
    with open_engine(SMALL, options) as engine:
        engine.fill_cache(0)
        for name, pages, swap, share in (
            ("preempted", 13, False, False),
            ("swapped", 13, True, False),
            ("found in the cache", 100, False, True),
        ):
            found = served(engine, story, pages, swap, share)
            same_share = float(np.mean([agreeing(*pair) for pair in zip(found, alone, strict=True)]))
            checks.append(
                {
                    "check": f"tokens of requests {name}, attention {engine.attention}",
                    "passed": same_share >= SAME,
                    "agreeing": same_share,
                    "allowed": SAME,
                }
            )
    return checks


def served(engine: Any, requests: Sequence[Request], pages: int, swap: bool, share: bool) -> list[list[int]]:
    """The tokens of each request."""
    pool = NumberedPrefixPool(pages, 16, "all") if share else NumberedPool(pages, 16)
    scheduler = Scheduler(Policy(ByArrival()), pool, EngineConfig(slots=4, token_budget=64, depth=2, swap=swap))
    listener = Listener(engine)
    executor: BatchAdapter[Any] = BatchAdapter(scheduler, listener, tokens_of)
    Driver(OpenLoop(requests), scheduler, executor, FakeClock()).run()
    executor.close()
    return [listener.tokens[index] for index in range(len(requests))]


tokens_of: Callable[[Request], array[int]] = prompts(SMALL.vocabulary, 0)


def agreeing(ours: Sequence[int], theirs: Sequence[int]) -> float:
    """The share of tokens up to the first that differs."""
    same = [one == other for one, other in zip(ours, theirs, strict=True)]
    return (same.index(False) if False in same else len(same)) / len(same)
