"""Forward-pass metrics: what an engine publishes of each step, version 1, as a log of steps.

One record a step: `wall_time` (s), `worker_id`, `dp_rank`, `counter_id`, and under `scheduled_requests` the sums over
the step's requests: `num_prefill_requests`, `sum_prefill_tokens` (computed in the step), `sum_prefill_kv_tokens`,
`var_prefill_length` (population variance of the whole prompts' lengths), `num_decode_requests`,
`sum_decode_kv_tokens`. Sources: the schema in NVIDIA Dynamo's `dynamo.common.forward_pass_metrics`, its trace
reference (`dynamo.fpm.trace.v1`), SGLang's `--forward-pass-metrics-port`, and TensorRT-LLM's PyExecutor.

A line is a record, or Dynamo's trace envelope with the record under `event.fpm`. Publishers differ in whether
`sum_prefill_kv_tokens` counts the tokens that the step itself computes: Dynamo's vLLM and TensorRT-LLM count what was
cached `before` the step, SGLang has counted what is cached `after` it. `own_tokens` tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from traces.errors import BadInput, shown
from traces.reading.columns import times
from traces.reading.columns.json_rows import read_jsonl
from traces.reading.head import Head

PrefillKV = Literal["before", "after"]
VERSION = 1
SUMS = (
    "num_prefill_requests",
    "sum_prefill_tokens",
    "sum_prefill_kv_tokens",
    "num_decode_requests",
    "sum_decode_kv_tokens",
)
VARIANCE = "var_prefill_length"
MOST = 2**53


@dataclass(frozen=True)
class Steps:
    """Steps from forward-pass metrics.

    frame    columns of `calibrate.fit.step_log`
    remarks  records that are no steps, and what had to be estimated, a line each
    """

    frame: pd.DataFrame
    remarks: tuple[str, ...]


def is_record(beginning: Head) -> bool:
    """Whether a file begins like forward-pass metrics."""
    return beginning.has_keys("scheduled_requests", "wall_time")


def read(path: Path, prefill_kv: PrefillKV | None = None) -> Steps:
    """The steps of a file of records, plain, gzip or zstd.

    prefill_kv  what `sum_prefill_kv_tokens` counts; None: found from the records

    Raises BadInput for a line that is no record of version 1, and where the records do not show what is counted.
    """
    return steps(of_file(path), str(path), prefill_kv)


def of_file(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(place, record) of each line."""
    for rows in read_jsonl(path):
        for number, line in enumerate(rows.objects):
            yield rows.place(number), unwrapped(rows.place(number), line)


def unwrapped(where: str, line: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record in a line: the line itself, or what Dynamo's trace envelope holds."""
    event = line.get("event")
    if event is None:
        return line
    record = event.get("fpm") if isinstance(event, dict) else None
    if not isinstance(record, dict):
        raise BadInput(f"{where}: event is {shown(event)}; expected a record under event.fpm")
    return record


def steps(
    records: Iterable[tuple[str, Mapping[str, Any]]], source: str, prefill_kv: PrefillKV | None = None
) -> Steps:
    """The steps of records, each with its place; `source` begins messages. Raises BadInput as `read`."""
    found, places, counters, idle = [], [], dict[tuple[str, int], set[int]](), 0
    for where, record in records:
        counted(where, record, counters)
        row = scheduled(where, record)
        if row["num_decode_requests"] or row["sum_prefill_tokens"]:
            found.append(row)
            places.append(where)
        else:
            idle += 1
    if not found:
        raise BadInput(f"{source}: {idle} records of forward passes, none with work; expected one a step")
    frame = pd.DataFrame(found)
    timed = frame["duration_ns"].to_numpy() > 0
    where_timed = [place for place, good in zip(places, timed, strict=True) if good]
    remarks = [f"{idle:,} records without work (heartbeats) left out"] if idle else []
    if not timed.all():
        remarks.append(f"{(~timed).sum():,} records with work and no wall_time left out")
    missing = sum(max(ids) - min(ids) + 1 - len(ids) for ids in counters.values())
    if missing:
        remarks.append(f"{missing:,} counters between the first and the last record are missing")
    frame = frame[timed].reset_index(drop=True)
    if not len(frame):
        raise BadInput(f"{source}: no record has a wall_time above 0; expected the seconds of each step")
    kind = prefill_kv or own_tokens(source, frame)
    return Steps(*as_steps(frame, where_timed, kind, remarks))


def counted(where: str, record: Mapping[str, Any], counters: dict[tuple[str, int], set[int]]) -> None:
    """Check the version of a record and add its counter to those of its publisher."""
    if record.get("version") != VERSION:
        raise BadInput(f"{where}: version is {shown(record.get('version'))}; expected {VERSION}")
    key = (str(record.get("worker_id", "")), whole(where, record, "dp_rank", 0))
    counters.setdefault(key, set()).add(whole(where, record, "counter_id", 0))


def scheduled(where: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """The sums of a record, its variance, and its duration in ns (0: not known)."""
    of = record.get("scheduled_requests")
    if not isinstance(of, Mapping):
        raise BadInput(f"{where}: scheduled_requests is {shown(of)}; expected a mapping of sums")
    row: dict[str, Any] = {name: whole(where, of, name) for name in SUMS}
    duration = times.exact(record.get("wall_time"), "s")
    if duration is None:
        raise BadInput(f"{where}: wall_time is {shown(record.get('wall_time'))}; expected seconds of at least 0")
    variance = of.get(VARIANCE, 0.0 if row["num_prefill_requests"] < 2 else None)
    if isinstance(variance, bool) or not isinstance(variance, int | float) or not 0 <= variance < MOST:
        raise BadInput(f"{where}: {VARIANCE} is {shown(variance)}; expected a number of at least 0")
    return {**row, VARIANCE: float(variance), "duration_ns": duration}


def whole(where: str, found: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """A whole number of a record."""
    value = found.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        raise BadInput(f"{where}: {name} is {shown(value)}; expected a whole number of at least 0")
    return value


def own_tokens(source: str, frame: pd.DataFrame) -> PrefillKV:
    """Whether `sum_prefill_kv_tokens` is what was cached before the steps, or after them, with their own tokens.

    A step that counts less than it computes shows the former. Where there is none, and at least half of the steps
    with prompts (two or more, of different sizes) count exactly what they compute, prompts start at zero and their
    own tokens are counted. Raises BadInput for records that show neither.
    """
    prompts = frame[frame["sum_prefill_tokens"] > 0]
    tokens, cached = prompts["sum_prefill_tokens"], prompts["sum_prefill_kv_tokens"]
    if not len(prompts) or (cached < tokens).any():
        return "before"
    equal = tokens[cached == tokens]
    if equal.nunique() > 1 and 2 * len(equal) >= len(prompts):
        return "after"
    raise BadInput(
        f"{source}: its {len(prompts):,} steps with prompts do not show whether sum_prefill_kv_tokens counts the "
        "tokens of the step itself; expected --prefill-kv before or after"
    )


def as_steps(
    frame: pd.DataFrame, places: Sequence[str], kind: PrefillKV, remarks: Sequence[str]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Records as columns of a step log, with remarks.

    Attention pairs, sum of n x (start + n / 2) over the prompts, follow from sums alone where there is one prompt.
    For several they are estimated: as if every prompt had the same number cached, and, where nothing is cached, from
    the variance of the lengths, as if all were computed whole.
    """
    prompts, tokens = (frame[name].to_numpy(np.float64) for name in SUMS[:2])
    start = frame["sum_prefill_kv_tokens"].to_numpy(np.float64) - (tokens if kind == "after" else 0)
    wrong = np.flatnonzero(start < 0)
    if len(wrong):
        row = frame.iloc[wrong[0]]
        raise BadInput(
            f"{places[wrong[0]]}: sum_prefill_kv_tokens is {row['sum_prefill_kv_tokens']:.0f} and sum_prefill_tokens "
            f"{row['sum_prefill_tokens']:.0f}; expected at least as many, or --prefill-kv before"
        )
    chunks = np.where(tokens > 0, np.maximum(prompts, 1), 0)
    several = np.maximum(chunks, 1)
    squares = tokens**2 / several
    whole_prompts = (start == 0) & (chunks > 1)
    squares = np.where(whole_prompts, np.minimum(squares + several * frame[VARIANCE].to_numpy(), tokens**2), squares)
    estimated = int(((chunks > 1) & (start > 0)).sum())
    if estimated:
        remarks = [*remarks, f"attention of {estimated:,} steps with several prompts and cached positions estimated"]
    made = pd.DataFrame(
        {
            "decodes": frame["num_decode_requests"],
            "context": frame["sum_decode_kv_tokens"],
            "chunks": chunks.astype(np.int64),
            "chunk_tokens": frame["sum_prefill_tokens"],
            "chunk_work": tokens * start / several + squares / 2,
            "duration_ns": frame["duration_ns"],
        }
    )
    return made, tuple(remarks)
