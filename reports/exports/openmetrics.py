"""The counters and gauges of a simulated run as OpenMetrics text, under the names of `engine_metrics`.

The histogram observes the tokens computed by each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import ALLOWUTF8, generate_latest
from prometheus_client.registry import Collector

from reports.exports import engine_metrics as names
from sim.accounting.ledger import waiting_by_step
from sim.accounting.prefix_stats import hit_tokens
from sim.accounting.requests import WAITING, Bools, RequestRecords
from sim.log.events import EventLog, Kind, Reason

BUCKETS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
LABELS = ("model_name", "engine")


def exposition(logs: Sequence[EventLog], model: str, step: int | None = None) -> str:
    """The OpenMetrics page of one engine per log, after `step` steps of each (None: at the end of the run).

    `model` is the value of the label `model_name`. The counters of the prefix cache are on the page of the end only.
    Raises ValueError if `step` is negative or beyond the steps of every log.
    """
    if step is not None and not 0 <= step <= max(log.steps for log in logs):
        raise ValueError(f"step {step} of a run of {max(log.steps for log in logs)} steps")
    registry = CollectorRegistry()
    registry.register(_EngineCollector([_state(log, step) for log in logs], model))
    text: bytes = generate_latest(registry, escaping=ALLOWUTF8)  # type: ignore[no-untyped-call]
    return text.decode()


@dataclass(frozen=True)
class _EngineState:
    """Values of the metrics of one engine at one instant."""

    counters: dict[str, int]
    tokens: list[int]
    gauges: dict[str, float]
    waiting: dict[str, int]
    config: dict[str, str]


def _state(log: EventLog, step: int | None) -> _EngineState:
    records = RequestRecords(log)
    steps = log.steps if step is None else min(step, log.steps)
    begin = int(records.time[0]) if len(records.time) else 0
    end = records.time[-1] if step is None and len(records.time) else None
    now = int(end if end is not None else records.step_ends[steps - 1] if steps else begin)
    past = records.time <= now
    prompts = np.array([request.prompt for request in log.requests], np.int64)
    first = records.request[past & (records.kind == Kind.FIRST_TOKEN)]
    counters = {
        names.GENERATION: int(records.delivered_by_step[:steps].sum()),
        names.PROMPT: int(prompts[first].sum()),
        names.PREEMPTIONS: _count(records, past, Kind.PREEMPTED),
        names.SUCCESS: _count(records, past, Kind.FINISHED),
    }
    if log.cache is None:
        counters |= {names.QUERIES: 0, names.HITS: 0}
    elif step is None:
        counters |= {names.QUERIES: log.cache.queried, names.HITS: hit_tokens(records)}
    runs = log.run_table()
    running = steps < log.steps
    waiting = int(waiting_by_step(records)[steps]) if running else int(np.count_nonzero(records.status == WAITING))
    reason = np.repeat(runs["reason"], runs["steps"])[steps] if running else Reason.NO_DEMAND
    deferred = waiting if reason == Reason.LIMITED else 0
    return _EngineState(
        counters,
        np.repeat(runs["tokens"], runs["steps"])[:steps].tolist(),
        {
            names.RUNNING: float(_in_slots(log, steps)),
            names.WAITING: float(waiting),
            names.CACHE_USAGE: float(log.held_by_step()[steps] / log.pages) if running else 0.0,
        },
        {"capacity": waiting - deferred, "deferred": deferred},
        {"num_gpu_blocks": str(log.pages), "block_size": str(log.page_size)},
    )


def _count(records: RequestRecords, past: Bools, kind: Kind) -> int:
    return int(np.count_nonzero(past & (records.kind == kind)))


def _in_slots(log: EventLog, step: int) -> int:
    """The number of sequences that have a slot in step `step`."""
    _, first, end = log.stay_table().T
    return int(np.count_nonzero((first <= step) & (step < end)))


class _EngineCollector(Collector):
    """Collects the metric families, with a sample per engine."""

    def __init__(self, states: Sequence[_EngineState], model: str) -> None:
        self.states = states
        self.model = model

    def collect(self) -> Iterator[Metric]:
        for name in dict.fromkeys(name for state in self.states for name in state.counters):
            labels = (*LABELS, "finished_reason") if name == names.SUCCESS else LABELS
            family = CounterMetricFamily(name.removesuffix("_total"), names.ABOUT[name], labels=labels)
            for engine, state in enumerate(self.states):
                ended = ["stop"] if name == names.SUCCESS else []
                family.add_metric([self.model, str(engine), *ended], state.counters[name])
            yield family
        steps = HistogramMetricFamily(names.ITERATION, names.ABOUT[names.ITERATION], labels=LABELS)
        for engine, state in enumerate(self.states):
            counts = np.cumsum(np.histogram(state.tokens, [-np.inf, *np.array(BUCKETS) + 0.5, np.inf])[0]).tolist()
            edges = [*(str(float(bucket)) for bucket in BUCKETS), "+Inf"]
            buckets = list(zip(edges, counts, strict=True))
            steps.add_metric([self.model, str(engine)], buckets, float(sum(state.tokens)))
        yield steps
        for name in names.GAUGES:
            by_reason = name == names.WAITING_BY_REASON
            gauge = GaugeMetricFamily(name, names.ABOUT[name], labels=(*LABELS, "reason") if by_reason else LABELS)
            for engine, state in enumerate(self.states):
                place = [self.model, str(engine)]
                for reason, count in state.waiting.items() if by_reason else ():
                    gauge.add_metric([*place, reason], count)
                if not by_reason:
                    gauge.add_metric(place, state.gauges[name])
            yield gauge
        about = names.ABOUT[names.CACHE_CONFIG]
        config = InfoMetricFamily(names.CACHE_CONFIG.removesuffix("_info"), about, labels=["engine"])
        for engine, state in enumerate(self.states):
            config.add_metric([str(engine)], state.config)
        yield config
