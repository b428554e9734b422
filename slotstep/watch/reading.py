"""Parses a metrics page by the names of `reports.exports.engine_metrics`; missing metrics are listed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain_text

from reports.exports import engine_metrics as names
from slotstep.watch.scrape import NoAnswerError

STARTED = "process_start_time_seconds"
CREATED = names.GENERATION.removesuffix("_total") + "_created"


@dataclass(frozen=True)
class Reading:
    """One page: counters by name and engine, gauges summed over engines, pages, and missing names.

    created  creation times of the counters, as far as the page has them
    """

    counters: Mapping[str, Mapping[str, int]]
    gauges: Mapping[str, float]
    waiting: Mapping[str, float]
    pages: int | None
    missing: tuple[str, ...]
    created: Mapping[str, float] = field(default_factory=dict)


def parse(text: str, model: str | None = None) -> Reading:
    """The reading of a page's text, of one model if several are served.

    Raises NoAnswerError for text that is not a complete metrics page; ValueError for several models without `model`,
    and for a model that is not served.
    """
    if not text.strip():
        raise NoAnswerError("the answer is empty")
    if not text.endswith("\n"):
        raise NoAnswerError("the answer breaks off within a line")
    read = open_metrics if text.rstrip().endswith("# EOF") else plain_text
    samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    try:
        for family in read(text):
            for sample in family.samples:
                samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    except (ValueError, KeyError, IndexError) as error:
        raise NoAnswerError(f"the answer is no metrics page: {error}") from None
    ours = {name: found for name, found in samples.items() if name in (*names.COUNTERS, *names.GAUGES)}
    broken = [name for name, found in ours.items() if not all(math.isfinite(value) for _, value in found)]
    if broken:
        raise NoAnswerError(f"{broken[0]} is not a finite number")
    chosen = _of_model(ours, model)
    counters = {
        name: {_engine(labels): int(value) for labels, value in chosen[name]}
        for name in names.COUNTERS
        if name in chosen
    }
    gauges = {name: sum(value for _, value in chosen[name]) for name in names.GAUGES if name in chosen}
    if names.CACHE_USAGE in gauges:
        gauges[names.CACHE_USAGE] /= len(chosen[names.CACHE_USAGE])
    waiting: dict[str, float] = {}
    for labels, value in chosen.get(names.WAITING_BY_REASON, ()):
        reason = labels.get("reason", "")
        waiting[reason] = waiting.get(reason, 0.0) + value
    blocks = [labels.get("num_gpu_blocks", "") for labels, _ in samples.get(names.CACHE_CONFIG, ())]
    known = blocks and all(block.isdecimal() for block in blocks)
    asked = (*names.COUNTERS, *names.GAUGES, names.CACHE_CONFIG)
    missing = [name for name in asked if name not in chosen and not (name == names.CACHE_CONFIG and known)]
    created = {_key(name, labels): value for name in (STARTED, CREATED) for labels, value in samples.get(name, ())}
    return Reading(counters, gauges, waiting, sum(map(int, blocks)) if known else None, tuple(missing), created)


Samples = Mapping[str, list[tuple[Mapping[str, str], float]]]


def _of_model(samples: Samples, model: str | None) -> Samples:
    """The samples of one model, and those that name none."""
    named = {labels.get("model_name") for found in samples.values() for labels, _ in found}
    served = sorted(name for name in named if name is not None)
    if model is None:
        if len(served) > 1:
            raise ValueError(f"the engine serves {', '.join(served)}; expected --model with one of them")
        return samples
    if model not in served:
        raise ValueError(f"the engine serves {', '.join(served)}, not {model}")
    chosen = {
        name: [(labels, value) for labels, value in found if labels.get("model_name", model) == model]
        for name, found in samples.items()
    }
    return {name: found for name, found in chosen.items() if found}


def _engine(labels: Mapping[str, str]) -> str:
    """The engine that a sample is of; the only one if no label says."""
    return labels.get("engine", "0")


def _key(name: str, labels: Mapping[str, str]) -> str:
    return f"{name}{sorted(labels.items())}"
