"""What the stories of the kernel are told with: a small engine, its requests, and who did what when."""

from __future__ import annotations

from typing import NamedTuple

from policies.fcfs import FirstComeFirstServed
from sim.cost.forms import Unit
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.engine.static import StaticScheduler
from sim.log.events import Kind
from sim.memory.pool import PagePool
from sim.policy.base import LastAdmitted, Optimistic, Policy, Reserve
from sim.request import Request
from sim.service.cluster import simulate

PLENTY = 10**6


class Happening(NamedTuple):
    """One event of the log, by names."""

    time: int
    what: str
    who: str


def engine(
    slots,
    budget=PLENTY,
    pages=PLENTY,
    page_size=16,
    order=None,
    admission=None,
    victim=None,
    **modes,
):
    """A continuous engine, fcfs and optimistic unless told otherwise."""
    order = FirstComeFirstServed() if order is None else order
    policy = Policy(order, admission or Optimistic(), victim or LastAdmitted())
    return Scheduler(policy, PagePool(pages, page_size), EngineConfig(slots=slots, token_budget=budget, **modes))


def static_engine(slots, pages=PLENTY, page_size=16, order=None):
    """The same engine with closed batches."""
    order = FirstComeFirstServed() if order is None else order
    return StaticScheduler(
        Policy(order, Reserve()), PagePool(pages, page_size), EngineConfig(slots=slots, token_budget=1)
    )


def job(name, output, prompt=1, arrival=0, tenant="default", max_output=0):
    """A request that is mostly its output."""
    return Request(name, arrival, prompt, output, tenant, max_output)


def jobs(**outputs):
    """Requests of one prompt token each, all there from the start."""
    return [job(name, output) for name, output in outputs.items()]


def run(requests, scheduler, cost=Unit(1), macro=True):  # noqa: B008
    """Simulate; one step lasts 1 ns unless told otherwise, so that times are step numbers."""
    return simulate(requests, scheduler, cost, macro)


def happenings(log, *kinds):
    """The events of the given kinds (all of them without), in order."""
    return [
        Happening(time, Kind(kind).name.lower(), log.requests[index].id)
        for time, kind, index, _ in log.event_table().tolist()
        if not kinds or Kind(kind).name.lower() in kinds
    ]


def times(log, kind):
    """When something last happened to each request."""
    return {event.who: event.time for event in happenings(log, kind)}


def values(log, kind):
    """(who, value) of the events of one kind, in order."""
    wanted = Kind[kind.upper()]
    return [
        (log.requests[index].id, value) for _, found, index, value in log.event_table().tolist() if found == wanted
    ]


def chunks(log):
    """(step, who, start, tokens) for all but plain decoding; the first step is 0."""
    return [
        (step, log.requests[index].id, start, tokens) for step, index, start, tokens in log.chunk_table().tolist()
    ]


def booked(summary):
    """The rows of the ledger that are not zero, without what they add up to."""
    return {row: count for row, count in summary["slot_steps"].items() if count and row != "bought"}


class Recorder:
    """A cost of 1 ns a step that remembers the shape of every step, as a dict."""

    NAMES = ("decodes", "context", "chunks", "chunk_tokens", "double_work", "pages", "copied", "swapped")

    def __init__(self):
        self.shapes = []

    def step(self, shape):
        self.shapes.append({name: getattr(shape, name) for name in self.NAMES})
        return 1

    def seen(self, *names):
        """The named parts of every shape seen."""
        return [tuple(shape[name] for name in names) for shape in self.shapes]


class Script:
    """A cost that lasts what it is told: the durations of the steps, in order."""

    def __init__(self, *durations):
        self.durations = list(durations)

    def step(self, shape):
        return self.durations.pop(0)
