"""What the columns of an unknown table are: guessed from their names and from what is in them.

Of CSV, JSON-lines (with dots for nested objects) and parquet files. The roles are those of `traces.formats.mapped`.
They are for a person to confirm: each comes with its reason, and one that two columns fit equally well is left out.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traces.errors import BadInput
from traces.reading import source

SIZE = 256 * 1024
ROWS = 500
"""Rows that are looked at."""
INPUT = ("prompt", "input", "in", "context", "prefill", "request", "req")
OUTPUT = ("output", "out", "completion", "generated", "generation", "response", "resp", "decode", "answer")
WORDS = {
    "arrival": (
        *("arrival", "arrived", "timestamp", "received", "created", "request", "start", "started", "begin"),
        *("time", "ts", "date", "at"),
    ),
    "status": ("status", "code", "outcome", "result"),
    "tenant": ("tenant", "customer", "org", "organization", "team", "account", "project", "user", "client", "key"),
    "model": ("model", "deployment"),
    "session": ("session", "conversation", "thread", "chat"),
}
"""Words of a column's name by role, the surest first."""
TOKENS = ("tokens", "token", "tok", "toks", "length", "len", "count")
END = (
    "end",
    "ended",
    "finish",
    "finished",
    "completed",
    "done",
    "last",
    "first",
    "latency",
    "duration",
    "ms",
    "ttft",
)
"""Words of times that are no arrival."""
ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d+)?")
EPOCHS = ((1e17, "ns"), (1e14, "us"), (1e11, "ms"), (1e8, "s"))
"""From which number on a time since 1970 has this unit; smaller ones count from the log's own zero."""


@dataclass(frozen=True)
class Role:
    """A role and the column that has it, with its unit for a time; `why` in words."""

    role: str
    column: str
    why: str
    unit: str = ""

    @property
    def mapped(self) -> str:
        """As `--map` takes it."""
        return f"{self.role}={self.column}" + (f":{self.unit}" if self.unit else "")


def infer(path: Path) -> list[Role]:
    """The role of each column that has one; arrival, prompt and output first.

    Raises BadInput, one line, for a file that is no table, and if no column can be the arrival or a length.
    """
    table = sample(path)
    found = [each for role in ("arrival", "prompt", "output") if (each := _surest(role, table))]
    lacking = [role for role in ("arrival", "prompt", "output") if role not in {each.role for each in found}]
    if lacking:
        raise BadInput(
            f"{path}: no column is clearly the {' or the '.join(lacking)}; found {', '.join(table)}; "
            f"name it, as in --map {lacking[0]}=COLUMN{':s' if lacking[0] == 'arrival' else ''}"
        )
    taken = {each.column for each in found}
    for role in ("status", "cache_hit", "tenant", "model", "session"):
        rest = {name: texts for name, texts in table.items() if name not in taken}
        if each := _surest(role, rest):
            found.append(each)
            taken.add(each.column)
    return found


def sample(path: Path) -> dict[str, list[str]]:
    """The first rows of a table, as text by column. Raises BadInput for a file that is none."""
    start = source.head(path, SIZE)
    if start.startswith(source.PARQUET):
        rows: Sequence[Mapping[str, Any]] = _parquet(path)
    else:
        text = start.decode("utf-8", "replace")
        lines = text.splitlines()
        whole = lines[:ROWS] if len(lines) > ROWS or len(start) < SIZE else lines[:-1]
        rows = (
            _objects(path, whole) if text.lstrip()[:1] == "{" else list(csv.DictReader(io.StringIO("\n".join(whole))))
        )
    if not rows:
        raise BadInput(f"{path}: no row; expected a row per request")
    names = list(dict.fromkeys(name for row in rows for name in row if isinstance(name, str)))
    return {name: ["" if row.get(name) is None else str(row.get(name)) for row in rows] for name in names}


def _parquet(path: Path) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            batch = next(file.iter_batches(ROWS), None)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{path}: not a parquet file that can be read: {' '.join(str(error).split())}") from None
    return [] if batch is None else batch.to_pylist()


def _objects(path: Path, lines: Sequence[str]) -> list[dict[str, Any]]:
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                value = json.loads(line)
            except ValueError:
                raise BadInput(f"{path}, row {number}: not JSON; expected an object a line") from None
            found.append(dict(_flat(value)) if isinstance(value, dict) else {})
    return found


def _flat(value: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """The values of nested objects, by their keys with dots between."""
    found: list[tuple[str, Any]] = []
    for key, inner in value.items():
        found += _flat(inner, f"{before}{key}.") if isinstance(inner, dict) else [(f"{before}{key}", inner)]
    return found


def words(name: str) -> list[str]:
    """The words of a column's name: `ContextTokens`, `usage.prompt_tokens`, `t-in`."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]


def _surest(role: str, table: Mapping[str, list[str]]) -> Role | None:
    """The column that fits a role best; None if none does, or two equally well."""
    scored = []
    for name, texts in table.items():
        known = [text for text in texts if text]
        if known and (found := _fit(role, name, known)):
            scored.append(found)
    scored.sort(key=lambda found: -found[0])
    if not scored or (len(scored) > 1 and scored[0][0] == scored[1][0]):
        return None
    return scored[0][1]


def _fit(role: str, name: str, texts: Sequence[str]) -> tuple[float, Role] | None:
    """How well a column fits a role, and the role; None if it does not."""
    parts = words(name)
    if role == "arrival":
        return _time(name, parts, texts)
    if role in ("prompt", "output"):
        mine, other = (INPUT, OUTPUT) if role == "prompt" else (OUTPUT, INPUT)
        sizes = all(NUMBER.fullmatch(text) and float(text) >= 0 and float(text) % 1 == 0 for text in texts)
        if not sizes or not set(parts) & set(mine) or {"max", "limit", "cost", "price", "cached", "ms"} & set(parts):
            return None
        place = min(mine.index(part) for part in parts if part in mine)
        clear = 10 if set(parts) & set(TOKENS) else 0
        why = f"its name, and whole numbers up to {max(float(text) for text in texts):,.0f}"
        return clear + (len(mine) - place) / 10 - 5 * bool(set(parts) & set(other)), Role(role, name, why)
    if role == "cache_hit":
        answers = {text.lower() for text in texts} <= {"true", "false", "hit", "miss", "yes", "no", "0", "1"}
        fits = answers and "cache" in parts and ({"hit", "status", "result"} & set(parts) or len(parts) == 1)
        return (1.0, Role(role, name, "its name, and hits or misses")) if fits else None
    known = WORDS[role]
    if not set(parts) & set(known) or (role != "status" and set(parts) & set(TOKENS)):
        return None
    score = len(known) - min(known.index(part) for part in parts if part in known)
    if role == "status":
        codes = all(re.fullmatch(r"[1-5]\d\d", text) for text in texts)
        return score + 10 * codes, Role(role, name, "its name" + (", and status codes" if codes else ""))
    return float(score), Role(role, name, f"its name; {len(set(texts)):,} different in the first rows")


def _time(name: str, parts: Sequence[str], texts: Sequence[str]) -> tuple[float, Role] | None:
    """A column of times of arrival, with its unit."""
    known = WORDS["arrival"]
    named = [known.index(part) for part in parts if part in known]
    late = 8 * len(set(parts) & set(END) - ({"ms"} if named else set()))
    score = (len(known) - min(named) if named else 0) - late
    if all(ISO.match(text) for text in texts):
        return 20.0 + score, Role("arrival", name, "ISO times", "iso")
    if not named or not all(NUMBER.fullmatch(text) for text in texts):
        return None
    least = min(float(text) for text in texts)
    unit = next((unit for start, unit in EPOCHS if least >= start), None)
    if unit is not None:
        return 20.0 + score, Role("arrival", name, f"its name, and times since 1970 in {unit}", unit)
    unit = next((each for each in ("ms", "us", "ns") if each in parts), "s")
    return float(score), Role("arrival", name, f"its name, and rising numbers taken as {unit}", unit)
