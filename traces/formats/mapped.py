"""Any CSV, JSON-lines or parquet file, by a mapping from roles to its columns.

Roles are the keys of `OWN`. `arrival`, `think` and `deadline` need a unit after their column, as in `ts:ms`: s,
ms, us, ns or iso; `blocks` needs the tokens of a block, as in `hash_ids:512`. Without a mapping, columns with the
names of `traces.reading.table` are used; blocks of unknown size are left out. Rows with `cache_hit` (true, hit, yes
or 1) were answered from a gateway's cache and took no engine time: they are no rows of the workload, and counted.

Of the status codes of gateways 429 is throttled, 499 cancelled, and any other but 200 failed. Requests that did not
end well (`status` other than ok, success, true, completed, 200 or empty) are measurements, and rows of the workload
only if they have both lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from traces.errors import BadInput, nearest, shown
from traces.reading import source
from traces.reading.columns.csv_rows import CsvRows, read_csv
from traces.reading.columns.json_rows import JsonRows, read_jsonl
from traces.reading.columns.rows import Rows
from traces.reading.columns.times import DIGITS
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, objects, per_token, replayable, text
from traces.reading.report import NO_ARRIVALS, Report
from traces.reading.table import CODES, STATUSES

WORDS = ("id", "run", "tenant", "model", "session", "parent", "prefix_group")
COUNTS = {"max_output": 1, "turn": 0, "images": 0, "prefix": 0}
TIMES = {"think": "think_ns", "deadline": "deadline_ns"}
LISTS = ("blocks", "tokens", "output_tokens")
MEASURED = ("status", "ttft_s", "e2e_s")
OWN = {
    "arrival": "arrival_ns:ns",
    **{role: f"{name}:ns" for role, name in TIMES.items()},
    "cache_hit": "cache_hit",
    **{name: name for name in ("prompt", "output", "priority", *WORDS, *COUNTS, *LISTS, *MEASURED)},
}
HIT = ("true", "1", "1.0", "hit", "yes")
NO_HIT = ("false", "0", "0.0", "miss", "no", "", "none", "null")
GOOD = ("ok", "success", "true", "200", "completed", "")
BATCH = 65_536


def matches(head: Head) -> bool:
    """Whether it is parquet, or has lengths under the names of a Trace."""
    return head.parquet or head.has_columns("prompt", "output") or head.has_keys("prompt", "output", "arrival_ns")


def chunks(path: Path, roles: Mapping[str, str] | None = None) -> Iterator[Piece]:
    """The workload and, with a status or latencies, the measurements. Raises BadInput for an unknown role."""
    for role in roles or {}:
        if role not in OWN:
            raise BadInput(f"columns.{role}: unknown role; did you mean {nearest(role, OWN)}?")
    found = dict(roles) if roles else None
    size = _block_size(found)
    for rows in _rows(path, found):
        plan = found or {role: name for role, name in OWN.items() if name.partition(":")[0] in rows.names}
        yield _piece(path, rows, plan, size)


def _block_size(roles: dict[str, str] | None) -> int:
    """The block size after the column of blocks, removed from `roles`; 0 without blocks."""
    if not roles or "blocks" not in roles:
        return 0
    name, _, size = roles["blocks"].rpartition(":")
    if not name or not size.isdecimal() or not 0 < int(size) < 2**20:
        raise BadInput(
            f"columns.blocks is {shown(roles['blocks'])}; expected a column and tokens, as in hash_ids:512"
        )
    roles["blocks"] = name
    return int(size)


def _rows(path: Path, roles: dict[str, str] | None) -> Iterator[Rows]:
    """The rows in pieces."""
    start = source.head(path, 64)
    needed = [name if role == "blocks" else name.partition(":")[0] for role, name in (roles or {}).items()]
    if start.startswith(source.PARQUET):
        yield from _parquet(path, needed)
    elif start.lstrip()[:1] == b"{":
        for rows in read_jsonl(path):
            rows.names = list({**dict.fromkeys(rows.names), **dict.fromkeys(needed)})
            yield rows
    else:
        yield from read_csv(path, needed)


class ParquetRows(CsvRows):
    """Rows of a parquet file; cells other than lists are converted to text."""

    def texts(self, name: str) -> Any:
        column = self.table[name]
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_floating(column.type):
            return pa.array(["" if value is None else repr(value) for value in column.to_pylist()], pa.string())
        try:
            return column.cast(pa.string()).fill_null("")
        except pa.ArrowException:
            raise BadInput(f"{self.path}: column {name} is {column.type}; expected numbers or text") from None

    def values(self, name: str) -> list[Any]:
        """A column as Python values."""
        found: list[Any] = self.table[name].to_pylist()
        return found


def _parquet(path: Path, needed: list[str]) -> Iterator[Rows]:
    first = 1
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            for missing in (name for name in needed if name not in names):
                raise BadInput(f"{path}: column {missing} is missing; found {shown(','.join(names))}")
            wanted = [name for name in names if name in needed] if needed else _known(names)
            for batch in file.iter_batches(BATCH, columns=wanted):
                if batch.num_rows:
                    yield ParquetRows(path, pa.Table.from_batches([batch]), first, 0)
                    first += batch.num_rows
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path}: not a parquet file that can be read: {' '.join(str(error).split())}") from None
    if first == 1:
        raise BadInput(f"{path}: no row; expected a row per request")


def _known(names: list[str]) -> list[str]:
    own = {name.partition(":")[0] for name in OWN.values()}
    return [name for name in names if name in own]


def _piece(path: Path, rows: Rows, plan: dict[str, str], size: int) -> Piece:
    for role in ("prompt", "output"):
        if role not in plan:
            raise BadInput(f"{path}: no column for {role}; name it, as in {role}=COLUMN")
    report = Report(str(path), rows=len(rows))
    prompt, output = rows.whole(plan["prompt"], empty=0), rows.whole(plan["output"], empty=0)
    values: dict[str, Any] = {}
    if "arrival" in plan:
        values["arrival_ns"], _ = _time(rows, plan["arrival"], "arrival")
    else:
        report.note(NO_ARRIVALS)
    for role, name in TIMES.items():
        if role in plan:
            found, absent = _time(rows, plan[role], role)
            values[name] = nullable(found, absent)
    for role in WORDS:
        if role in plan:
            values[role] = text(rows.texts(plan[role]))
    for role, least in COUNTS.items():
        if role in plan:
            values[role] = nullable(rows.whole(plan[role], least, empty=0, what=role), rows.empty(plan[role]))
    if "priority" in plan:
        urgency = rows.whole(plan["priority"], -(2**31), empty=0, what="ranks")
        values["priority"] = nullable(urgency, rows.empty(plan["priority"]))
    for role in LISTS:
        if role in plan:
            values[role] = _lists(rows, plan[role], role, output if role == "output_tokens" else prompt, size, report)
    failed = np.zeros(len(rows), bool)
    measured = None
    if set(MEASURED) & set(plan):
        measured, failed = _measured(rows, plan, prompt, output, values)
    cached = _cached(rows, plan)
    rows.check()
    report.drop("replies from the gateway's cache: no engine time", int(cached.sum()))
    report.drop("failed: no lengths", int((failed & ~cached & ((prompt == 0) | (output == 0))).sum()))
    kept = replayable(rows, report, prompt, output, (plan["prompt"], plan["output"]), ~failed & ~cached)
    kept |= failed & ~cached & (prompt > 0) & (output > 0)
    workload = columns(rows, kept, prompt=prompt, output=output, **values)
    has_blocks = values.get("blocks") is not None
    return Piece(report, rows.header, workload, measured, block_size=size if has_blocks else 0)


def _cached(rows: Rows, plan: dict[str, str]) -> NDArray[np.bool_]:
    """Which rows a gateway answered from its cache. An error for a value that is neither yes nor no."""
    if "cache_hit" not in plan:
        return np.zeros(len(rows), bool)
    words = [str(word).strip().lower() for word in rows.texts(plan["cache_hit"]).to_pylist()]
    unknown = np.array([word not in (*HIT, *NO_HIT) for word in words], bool)
    rows.record_fault(unknown, plan["cache_hit"], "such as true or false")
    return np.array([word in HIT for word in words], bool)


def _time(rows: Rows, named: str, role: str) -> tuple[Any, Any]:
    name, _, unit = named.partition(":")
    if unit not in (*DIGITS, "iso"):
        raise BadInput(f"columns.{role} is {shown(named)}; expected a column and its unit, as in {name}:ms")
    return rows.time(name, unit, empty=role != "arrival")


def _lists(rows: Rows, name: str, role: str, lengths: NDArray[np.int64], size: int, report: Report) -> Any:
    """Blocks or tokens from columns of lists; lists that do not fit the length are left out."""
    if not isinstance(rows, ParquetRows | JsonRows):
        return None
    found = rows.values(name)
    if role == "blocks" and not size:
        report.note("blocks without a block size: left out")
        return None
    per = size if role == "blocks" else 1
    wanted = (-(-lengths // per)).tolist()
    fits = [isinstance(ids, list) and len(ids) == count for ids, count in zip(found, wanted, strict=True)]
    report.change(f"{name} does not fit the length: left out", sum(map(bool, found)) - sum(fits))
    missing: Any = () if role == "blocks" else None
    return objects(tuple(ids) if fit else missing for ids, fit in zip(found, fits, strict=True))


def _measured(
    rows: Rows, plan: dict[str, str], prompt: Any, output: Any, values: dict[str, Any]
) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    states = rows.texts(plan["status"]).to_pylist() if "status" in plan else [""] * len(rows)
    status = [
        word if word in STATUSES else "ok" if word.lower() in GOOD else CODES.get(word, "failed") for word in states
    ]
    failed = np.array([state != "ok" for state in status], bool)
    nothing = np.full(len(rows), np.nan)
    ttft = rows.number(plan["ttft_s"], least=-1, empty=True) if "ttft_s" in plan else nothing
    e2e = rows.number(plan["e2e_s"], least=-1, empty=True) if "e2e_s" in plan else nothing
    ttft, e2e = (np.where(failed | (found < 0), np.nan, found) for found in (ttft, e2e))
    frame = columns(
        rows,
        **{name: values[name] for name in ("id", "run", "tenant", "model", "session") if name in values},
        status=text(status),
        error=text([word if state != "ok" else None for word, state in zip(states, status, strict=True)]),
        arrival_ns=pd.array(values["arrival_ns"], "Int64") if "arrival_ns" in values else None,
        ttft_s=ttft,
        tpot_s=per_token(ttft, e2e, output),
        e2e_s=e2e,
        prompt=nullable(prompt, prompt == 0),
        output=nullable(output, output == 0),
    )
    return frame, failed
