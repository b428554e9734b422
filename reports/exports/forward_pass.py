"""Forward-pass metrics, version 1, of a simulated run: a record a step, as engines publish them.

The schema is NVIDIA Dynamo's (`dynamo.common.forward_pass_metrics`); `sum_prefill_kv_tokens` is what was cached
before the step. A replica is a worker; records of several are in the order in which their steps ended. Engines also
send records without work while they are idle; a simulation writes none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.accounting.requests import RequestRecords
from sim.accounting.work.plan_times import planned_by_step
from sim.log.events import EventLog, Integers, Kind

LINES_AT_ONCE = 10_000


@dataclass(frozen=True)
class Sums:
    """Number, sum and sum of squares of some values of each step: int64 of shape (steps,)."""

    n: Integers
    total: Integers
    squares: Integers

    def variance(self, step: int) -> float:
        """The population variance of a step's values, 0 without any."""
        n, total, squares = int(self.n[step]), int(self.total[step]), int(self.squares[step])
        return (n * squares - total * total) / (n * n) if n else 0.0


def lines(logs: Sequence[EventLog]) -> Iterator[str]:
    """The records of a run as JSON lines, thousands in each piece."""
    ends = [RequestRecords(log).step_ends for log in logs]
    order = np.argsort(np.concatenate(ends), kind="stable")
    workers = np.repeat(np.arange(len(logs)), [len(each) for each in ends])[order]
    sources = [records(log, str(worker)) for worker, log in enumerate(logs)]
    for first in range(0, len(workers), LINES_AT_ONCE):
        piece = workers[first : first + LINES_AT_ONCE].tolist()
        yield "".join(json.dumps(next(sources[worker]), separators=(",", ":")) + "\n" for worker in piece)


def records(log: EventLog, worker: str) -> Iterator[dict[str, Any]]:
    """The records of one replica, in the order of its steps."""
    prompts, computed, cached = prefills(log)
    contexts = decode_contexts(log)
    runs = log.run_table()
    decodes = np.repeat(runs["tokens"], runs["steps"]) - computed
    fresh, preempted = queued(log)
    for step, duration in enumerate(log.step_durations().tolist()):
        yield {
            "version": 1,
            "worker_id": worker,
            "dp_rank": 0,
            "counter_id": step,
            "wall_time": duration / 1e9,
            "scheduled_requests": {
                "num_prefill_requests": int(prompts.n[step]),
                "sum_prefill_tokens": int(computed[step]),
                "var_prefill_length": prompts.variance(step),
                "sum_prefill_kv_tokens": int(cached[step]),
                "num_decode_requests": int(decodes[step]),
                "sum_decode_kv_tokens": int(contexts.total[step]),
                "var_decode_kv_tokens": contexts.variance(step),
            },
            "queued_requests": {
                "num_prefill_requests": int(fresh.n[step]),
                "sum_prefill_tokens": int(fresh.total[step]),
                "var_prefill_length": fresh.variance(step),
                "num_decode_requests": int(preempted.n[step]),
                "sum_decode_kv_tokens": int(preempted.total[step]),
                "var_decode_kv_tokens": preempted.variance(step),
            },
        }


def singles(log: EventLog) -> NDArray[np.bool_]:
    """Which chunks are decodes: one position past the prompt."""
    _, request, start, tokens = log.chunk_table().T
    prompts = np.array([asked.prompt for asked in log.requests], np.int64)
    found: NDArray[np.bool_] = (tokens == 1) & (start >= prompts[request])
    return found


def by_step(log: EventLog, step: Integers, value: Integers) -> Integers:
    """The sum of the values in each step."""
    total = np.zeros(log.steps, np.int64)
    np.add.at(total, step, value)
    return total


def prefills(log: EventLog) -> tuple[Sums, Integers, Integers]:
    """Of each step: its prompts by their whole lengths, the positions that it computes, those cached before."""
    step, request, start, tokens = log.chunk_table()[~singles(log)].T
    length = np.array([asked.prompt for asked in log.requests], np.int64)[request]
    prompts = Sums(*(by_step(log, step, each) for each in (np.ones_like(step), length, length * length)))
    return prompts, by_step(log, step, tokens), by_step(log, step, start)


def decode_contexts(log: EventLog) -> Sums:
    """Cached positions that the decodes of each step read.

    A stint of decoding follows the chunk that completed the request's known tokens; its context at step s is what
    that chunk left, and one more for each step since. Sums over stints: of (a + s) and (a + s)^2, by differences.
    """
    step, request, start, tokens = log.chunk_table().T
    key = request * (log.steps + 1) + step
    order = np.argsort(key, kind="stable")
    decoder, first, end = log.stint_table().T
    before = order[np.searchsorted(key[order], decoder * (log.steps + 1) + first - 1)]
    offset = start[before] + tokens[before] - first

    def over_stints(value: Integers) -> Integers:
        change = np.zeros(log.steps + 1, np.int64)
        np.add.at(change, first, value)
        np.add.at(change, end, -value)
        return np.cumsum(change)[:-1]

    n, a, squares = (over_stints(each) for each in (np.ones_like(offset), offset, offset * offset))
    at = np.arange(log.steps)
    alone = singles(log)
    step, start = step[alone], start[alone]
    return Sums(
        n + by_step(log, step, np.ones_like(step)),
        a + n * at + by_step(log, step, start),
        squares + 2 * a * at + n * at * at + by_step(log, step, start * start),
    )


def queued(log: EventLog) -> tuple[Sums, Sums]:
    """Who waits once each step is planned: by prompt, and of preempted ones by the positions that they had."""
    own = RequestRecords(log)
    changes = np.zeros((len(own.time) + 1, 2, 3), np.int64)
    waiting: dict[int, tuple[int, int]] = {}
    for number, (_, kind, index, value) in enumerate(log.event_table().tolist(), start=1):
        if kind in (Kind.QUEUED, Kind.PREEMPTED):
            again = kind == Kind.PREEMPTED
            waiting[index] = (int(again), value if again else log.requests[index].prompt)
            sign = 1
        elif kind in (Kind.ADMITTED, Kind.DEQUEUED):
            sign = -1
        else:
            continue
        column, size = waiting[index] if sign > 0 else waiting.pop(index)
        changes[number, column] += (sign, sign * size, sign * size * size)
    present = np.cumsum(changes, axis=0)[np.searchsorted(own.time, planned_by_step(own), side="right")]
    fresh, preempted = present[:, 0].T, present[:, 1].T
    return Sums(*fresh), Sums(*preempted)
