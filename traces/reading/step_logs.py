"""Logs of an engine's steps: the batch and the duration of each step, for `calibrate.fit.step_log`.

Three forms are detected by content:

CSV with the columns of `calibrate.fit.step_log` (`decodes, context, chunks, chunk_tokens, chunk_work,
duration_ns`), or parquet with the same. `chunk_work` may be absent where no step has a chunk.

JSON lines of an instrumented engine, as `slotstep parity` reads them, with the times of each step: `type` "step",
`scheduled` {id: tokens} and `computed_before` {id: tokens}, `t_sched0` and `t_upd` (s, one clock: from the plan to
the results), and perhaps `cpu0` and `cpu1`, whose first entries are the CPU time of the worker before and after, ns.
One token after at least one computed is a decode. CPU time is used where it is logged, as wall-clock time is longer
on a busy host; it does not include the scheduler's own time.

JSON lines of forward-pass metrics: `traces.reading.forward_pass`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from traces.errors import BadInput, shown
from traces.reading import forward_pass
from traces.reading.columns import times
from traces.reading.columns.csv_rows import read_csv
from traces.reading.columns.json_rows import JsonRows, read_jsonl
from traces.reading.head import head

Clock = Literal["cpu", "wall"]

COUNTS = ("decodes", "context", "chunks", "chunk_tokens")
WORK, DURATION = "chunk_work", "duration_ns"
MOST = 2**53


def read(path: Path, clock: Clock | None = None) -> pd.DataFrame:
    """The steps of a log, in its order; `clock` selects the durations of JSON lines (by default CPU time if logged).

    JSON lines give two more columns: `start_s`, the start of the step on the wall clock (s), and `ids`, the requests
    in it. Raises BadInput for a file of neither form, an impossible step, and a clock that is not logged.
    """
    beginning = head(Path(path))
    metrics = forward_pass.is_record(beginning)
    if beginning.opening == "{" and not metrics:
        return of_engine(Path(path), clock)
    if clock is not None:
        only = (
            "forward-pass metrics have one clock, wall_time" if metrics else f"a table of steps has one, {DURATION}"
        )
        raise BadInput(f"{path}: {only}; expected no choice of one")
    if metrics:
        return forward_pass.read(Path(path)).frame
    return of_parquet(Path(path)) if beginning.parquet else of_csv(Path(path))


def is_log(path: Path) -> bool:
    """Whether a file begins like a log of steps; False for one that cannot be opened."""
    try:
        beginning = head(path)
        if beginning.parquet:
            return {*COUNTS, DURATION} <= set(pq.read_schema(path).names)
    except (BadInput, pa.ArrowException, OSError):
        return False
    if forward_pass.is_record(beginning) or beginning.has_columns(*COUNTS, DURATION):
        return True
    return beginning.has_keys("scheduled", "computed_before", "t_sched0")


def of_csv(path: Path) -> pd.DataFrame:
    """The steps of a CSV file."""
    parts = []
    for rows in read_csv(path, (*COUNTS, DURATION)):
        found = {name: rows.whole(name, most=MOST, what="them") for name in COUNTS}
        found[DURATION] = rows.whole(DURATION, least=1, most=MOST, what="ns")
        work = rows.number(WORK) if WORK in rows.names else np.zeros(len(rows))
        if WORK not in rows.names:
            rows.record_fault(found["chunks"] > 0, "chunks", f"0, as there is no column {WORK}")
        rows.check()
        parts.append(pd.DataFrame({**found, WORK: work}))
    return pd.concat(parts, ignore_index=True)


def of_parquet(path: Path) -> pd.DataFrame:
    """The steps of a parquet file."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadInput(f"{path}: not a parquet file: {' '.join(str(error).split())}") from None
    for name in (*COUNTS, WORK, DURATION):
        if name not in table.schema.names:
            raise BadInput(f"{path}: column {name} is missing; found {shown(','.join(table.schema.names))}")
    try:
        frame = pd.DataFrame({name: table[name].to_numpy().astype(np.float64) for name in (*COUNTS, WORK, DURATION)})
    except (ValueError, TypeError, pa.ArrowInvalid) as error:
        raise BadInput(f"{path}: {' '.join(str(error).split())}; expected columns of numbers") from None
    for name in (*COUNTS, WORK, DURATION):
        least = 1 if name == DURATION else 0
        bad = np.flatnonzero(~(frame[name].to_numpy() >= least))
        if len(bad):
            found = frame[name].iloc[bad[0]]
            raise BadInput(f"{path}, row {bad[0] + 1}: {name} is {found:g}; expected at least {least}")
    return frame.astype(dict.fromkeys((*COUNTS, DURATION), np.int64))


def of_engine(path: Path, clock: Clock | None) -> pd.DataFrame:
    """The steps of an instrumented engine."""
    lines: list[dict[str, Any]] = []
    chosen = clock
    for rows in read_jsonl(path):
        for place, line in enumerate(rows.objects):
            if line.get("type") == "step" and line.get("scheduled"):
                chosen = chosen or ("cpu" if "cpu0" in line else "wall")
                lines.append(step(rows, place, line, chosen))
    if not lines:
        raise BadInput(f"{path}: no line of type step with scheduled tokens; expected one per step")
    return pd.DataFrame(lines)


def step(rows: JsonRows, place: int, line: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """One line as a row of the frame."""
    where = rows.place(place)
    before = line.get("computed_before", {})
    row: dict[str, Any] = dict.fromkeys((*COUNTS, WORK), 0)
    for name, tokens, start in scheduled(where, line["scheduled"], before):
        if tokens == 1 and start:
            row["decodes"] += 1
            row["context"] += start
        else:
            row["chunks"] += 1
            row["chunk_tokens"] += tokens
            row[WORK] += tokens * (start + tokens / 2)
        row.setdefault("ids", []).append(name)
    begun, ended = instant(where, line, "t_sched0"), instant(where, line, "t_upd")
    row["start_s"] = begun / 1e9
    row[DURATION] = ended - begun if clock == "wall" else cpu_time(where, line)
    if row[DURATION] < 1:
        raise BadInput(f"{where}: the step lasts {row[DURATION]} ns; expected at least 1")
    return row


def scheduled(where: str, found: object, before: object) -> Iterator[tuple[str, int, int]]:
    """(id, tokens, tokens computed before) of each request in a step."""
    if not isinstance(found, dict) or not isinstance(before, dict):
        raise BadInput(f"{where}: scheduled is {shown(found)}; expected tokens by id, as computed_before")
    for name, tokens in found.items():
        start = before.get(name)
        if not (isinstance(tokens, int) and isinstance(start, int)):
            raise BadInput(f"{where}: {name} has {shown(tokens)} tokens after {shown(start)}; expected whole numbers")
        if tokens < 1 or start < 0:
            raise BadInput(f"{where}: {name} has {tokens} tokens after {start}; expected at least 1 after at least 0")
        yield str(name), tokens, start


def instant(where: str, line: dict[str, Any], name: str) -> int:
    """A time of the log in ns."""
    found = times.exact(line.get(name), "s")
    if found is None:
        raise BadInput(f"{where}: {name} is {shown(line.get(name))}; expected seconds")
    return found


def cpu_time(where: str, line: dict[str, Any]) -> int:
    """The worker's CPU time in a step, ns."""
    both = [line.get(name) for name in ("cpu0", "cpu1")]
    for name, found in zip(("cpu0", "cpu1"), both, strict=True):
        if not isinstance(found, list) or not found or not isinstance(found[0], int):
            raise BadInput(f"{where}: {name} is {shown(found)}; expected a list that begins with CPU time in ns")
    return int(both[1][0] - both[0][0])  # type: ignore[index]
