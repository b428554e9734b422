"""A scenario served by a real engine: the same requests, scheduler and policy, on the wall clock.

The scenario's step cost is used by the synthetic engine only. Does not depend on any model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrate.decoder.engine.opening import open_engine
from calibrate.decoder.engine.options import EngineOptions
from calibrate.decoder.engine.protocol import CannotRun, Engine
from calibrate.decoder.engine.synthetic import SyntheticEngine
from calibrate.hardware.environment import engine_on
from calibrate.replay.clock import FakeClock
from calibrate.replay.live import Pacing, Replayed, replay
from calibrate.replay.prompts import prompts
from sim.memory.prefix import PrefixPool
from sim.request import Request
from sim.service.sessions import counts
from slotstep.runs import build, costs, size_limits
from slotstep.runs.clients import clients, limited
from slotstep.runs.result import Result
from slotstep.runs.workload import LoadedWorkload
from slotstep.runs.workload import load as load_workload
from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario

SYNTHETIC = "synthetic"
"""The name of the synthetic engine: its steps take the scenario's cost with noise `NOISE`, on its own clock."""
NOISE = 0.02
SYNTHETIC_VOCABULARY = 1000
ABOUT_SYNTHETIC: dict[str, Any] = {
    "device": SYNTHETIC,
    "device_type": "cpu",
    "model": {"name": SYNTHETIC},
    "dtype": "none",
    "memory": None,
    "driver": None,
    "software": {},
    "attention": SYNTHETIC,
    "graphs": [],
}


@dataclass(frozen=True)
class Device:
    """An open engine, its vocabulary size, and the description of device and model for a profile.

    clock  the clock that a synthetic engine advances; None for real engines
    pages  pages that the scenario schedules; the engine's further pages are for measuring
    """

    engine: Engine[Any]
    vocabulary: int
    about: dict[str, Any]
    clock: FakeClock | None
    pages: int

    @property
    def has_cpu_time(self) -> bool:
        """Whether steps are timed by the CPU time of their thread."""
        return bool(self.about["device_type"] == "cpu")


@contextmanager
def opened(
    scenario: Scenario, model: str, requests: Sequence[Request], spare_pages: int = 0, least: int = 0, **options: Any
) -> Iterator[Device]:
    """An open engine that can serve the scenario; closed at the end of the block.

    spare_pages  pages beyond those of the scenario
    least        lower bound of the longest sequence, in tokens
    options      further `calibrate.decoder.engine.options.EngineOptions`

    Raises BadInput for a scenario that no real engine can serve, and for a model, device or memory size without
    engine.
    """
    with as_bad_input():
        fits(scenario)
        size_limits.check_replay(scenario)
        size, pages = scenario.engine.page_size, scenario.engine.pages
        max_model_len = max(least, max((reach(scenario, request) for request in requests), default=1) + 2)
        host = 4 * pages if scenario.engine.preemption == "swap" else 0
        if model == SYNTHETIC:
            clock = FakeClock()
            made = SyntheticEngine(
                costs.cost(scenario),
                clock,
                pages + spare_pages,
                size,
                max_model_len=max_model_len,
                host_pages=host,
                noise=NOISE,
                seed=scenario.seed,
            )
            yield Device(made, SYNTHETIC_VOCABULARY, dict(ABOUT_SYNTHETIC), clock, pages)
            return
        chosen = EngineOptions(
            page_size=size,
            pages=pages + spare_pages,
            host_pages=host,
            slots=scenario.engine.slots,
            token_budget=scenario.engine.token_budget,
            max_model_len=max_model_len,
            seed=scenario.seed,
            **options,
        )
        with open_engine(model, chosen) as executor:
            executor.fill_cache(scenario.seed)
            yield Device(executor, executor.shape.vocabulary, engine_on(executor), None, pages)


def fits(scenario: Scenario) -> None:
    """Raise CannotRun for a scenario that one real engine cannot serve."""
    given = scenario.engine
    retry = scenario.clients.retry if scenario.clients else None
    for wrong, found, expected in (
        (scenario.cluster.total > 1, f"cluster has {scenario.cluster.total} replicas", "1: there is one device"),
        (
            not scenario.cluster.uniform,
            "cluster is more than equal replicas that never fail",
            "one device that does not",
        ),
        (retry is not None, "clients.retry is given", "clients that send a request once"),
        (given.batching == "static", "engine.batching is static", "continuous"),
        (given.memory == "contiguous", "engine.memory is contiguous", "paged"),
        (given.warm is not None, "engine.warm is given", "a cold cache: the device has nothing in these pages"),
    ):
        if wrong:
            raise CannotRun(f"{scenario.name}: {found}; a replay expects {expected}")


def reach(scenario: Scenario, request: Request) -> int:
    """The maximum number of tokens of a request, prompt and output."""
    most = request.prompt + request.max_output
    limit = scenario.engine.max_model_len
    return most if limit is None else min(most, limit)


def run(
    scenario: Scenario,
    device: Device,
    workload: LoadedWorkload | None = None,
    pacing: Pacing = "wall",
    between: Iterator[None] | None = None,
    every: int = 1,
    progress: Callable[[int], None] | None = None,
) -> tuple[Result, Replayed]:
    """Serve the scenario's requests on an open engine; parameters as in `calibrate.replay.live`. Raises BadInput."""
    made = load_workload(scenario) if workload is None else workload
    sent = limited(made.requests, scenario.limits)
    if scenario.engine.prefix_cache and scenario.engine.radix is None:
        build.check_blocks(scenario, sent)
    scheduler = build.stepwise(scenario, numbered=True)
    with scenario.blamed("clients."):
        senders = clients(sent, scenario.clients, scenario.engine.page_size)
    with as_bad_input():
        replayed = replay(
            senders,
            scheduler,
            device.engine,
            prompts(device.vocabulary, scenario.seed),
            pacing,
            device.clock,
            between,
            every,
            progress,
        )
    caches = [scheduler.pool.contents()] if isinstance(scheduler.pool, PrefixPool) else []
    return Result(scenario, [replayed.log], caches, made.remarks, sessions=counts(senders)), replayed


@contextmanager
def as_bad_input() -> Iterator[None]:
    """Raise a CannotRun of the block as a BadInput."""
    try:
        yield
    except CannotRun as error:
        raise BadInput(str(error)) from None
