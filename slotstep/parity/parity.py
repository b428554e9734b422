"""Compares the log of an engine with a replay on our scheduler, line by line.

Files are JSON, optionally gzipped; docs/parity.md has the format.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from slotstep.parity import sglang_cases
from slotstep.parity.cases import Case, Line, replay
from slotstep.scenario.document import brief
from slotstep.scenario.validation_errors import complaint
from traces.errors import BadInput

AnyCase = TypeVar("AnyCase", Case, sglang_cases.Case)

FIELDS = (
    "arrived",
    "scheduled",
    "computed_before",
    "new",
    "resumed",
    "preempted",
    "hit_tokens",
    "running",
    "waiting",
    "blocks",
    "free_blocks",
    "updated_step",
    "sampled",
    "finished",
    "free_blocks_after",
)
"""The fields that are compared if a line of the log has them; dicts and lists including their order."""
OF_SGLANG = (
    *("arrived", "kind", "extend", "decode", "chunked", "waiting", "running", "full", "ratio"),
    *("avail", "evictable", "protected", "evicted", "retracted", "preempted", "aborted"),
    *("sampled", "finished", "avail_after", "evictable_after", "ratio_after", "msg"),
)
"""The fields of a log of SGLang, where all orders have a meaning."""
UNORDERED = ("computed_before", "resumed", "preempted", "hit_tokens", "blocks", "sampled", "finished")
"""Fields that are sets of requests, compared without their order."""

COMPARED = ("step", "drain", "error")
"""Types of lines that are compared."""

GZIP = b"\x1f\x8b"
MOST_SHOWN = 8


@dataclass(frozen=True)
class Difference:
    """One field in which a line of the log and ours differ."""

    field: str
    engine: Any
    ours: Any

    def words(self) -> tuple[str, str]:
        """Both values as text, from the first difference on."""
        engine, ours = self.engine, self.ours
        if isinstance(engine, dict) and isinstance(ours, dict):
            engine = [f"{key}: {value}" for key, value in engine.items()]
            ours = [f"{key}: {value}" for key, value in ours.items()]
        if not isinstance(engine, list) or not isinstance(ours, list):
            return brief(engine), brief(ours)
        same = next((at for at, pair in enumerate(zip(engine, ours, strict=False)) if pair[0] != pair[1]), None)
        start = min(len(engine), len(ours)) if same is None else same
        return shown(engine, start), shown(ours, start)


@dataclass(frozen=True)
class Mismatch:
    """A line of the log that differs from ours, or that only one of the two has."""

    line: str
    differences: tuple[Difference, ...]
    missing: str = ""


@dataclass(frozen=True)
class Report:
    """Lines compared, how many of them differ, and the first that does."""

    steps: int
    mismatches: int
    first: Mismatch | None


def check(case: Path, log: Path) -> Report:
    """Replay `case` and compare every line of `log`, of vLLM or of SGLang. Raises BadInput for invalid files."""
    lines = list(read_log(log))
    if "sglang_version" in lines[0]:
        return compare(lines, sglang_cases.replay(read_case(case, sglang_cases.Case), str(case)), OF_SGLANG, ())
    return compare(lines, replay(read_case(case), str(case)))


def compare(
    log: Iterable[Line],
    ours: Iterable[Line],
    fields: Sequence[str] = FIELDS,
    unordered: Sequence[str] = UNORDERED,
) -> Report:
    """The differences between the lines of an engine's log and ours.

    A log that ends with its summary is complete: then lines that only we have count too.
    """
    decided = {place(line): line for line in ours}
    steps = mismatches = 0
    first = None
    complete = False
    for line in log:
        complete = line["type"] == "summary"
        if line["type"] not in COMPARED:
            continue
        steps += line["type"] != "error"
        mine = decided.pop(place(line), None)
        found = Mismatch(place(line), (), "ours")
        if mine is not None:
            found = Mismatch(place(line), differences(line, mine, fields, unordered))
        if found.missing or found.differences:
            mismatches += 1
            first = first or found
    if complete and decided:
        mismatches += len(decided)
        first = first or Mismatch(next(iter(decided)), (), "the engine's log")
    return Report(steps, mismatches, first)


def place(line: Line) -> str:
    """Which step a line is about: `step 17`, `drain 120` for results after the last plan, or `error` at its end."""
    return "error" if line["type"] == "error" else f"{line['type']} {line['step']}"


def differences(
    line: Line, ours: Line, fields: Sequence[str] = FIELDS, unordered: Sequence[str] = UNORDERED
) -> tuple[Difference, ...]:
    """The fields of a line that differ from ours, including their order where it is meaningful."""
    pairs = (
        (field, sort(line[field], field in unordered), sort(ours.get(field), field in unordered))
        for field in fields
        if field in line
    )
    return tuple(Difference(field, engine, mine) for field, engine, mine in pairs if not same(engine, mine))


def sort(value: Any, meaningless: bool) -> Any:
    """The value of a field, sorted if its order is meaningless."""
    if meaningless and isinstance(value, dict):
        return {key: value[key] for key in sorted(value)}
    return sorted(value, key=str) if meaningless and isinstance(value, list) else value


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal, dicts including their order."""
    return bool(left == right) and (not isinstance(left, dict) or list(left) == list(right))


def shown(items: list[Any], start: int) -> str:
    """A few items from a position on, with dots for omitted ones."""
    part = [str(item) for item in items[start : start + MOST_SHOWN]]
    words = ", ".join([*(["..."] if start and part else []), *part])
    return f"{words}, ..." if len(items) > start + MOST_SHOWN else words or ("nothing more" if start else "nothing")


def lines_of(report: Report) -> Iterator[str]:
    """A report as lines of text."""
    counted = "mismatch" if report.mismatches == 1 else "mismatches"
    yield f"{report.steps:,} steps compared, {report.mismatches:,} {counted}"
    if report.first is None:
        return
    if report.first.missing:
        yield f"first: {report.first.line}, which {report.first.missing} {has_not(report.first.missing)}"
    else:
        yield f"first: {report.first.line}"
    width = max((len(found.field) for found in report.first.differences), default=0)
    for found in report.first.differences:
        engine, ours = found.words()
        yield f"  {found.field:{width}}  engine  {engine}"
        yield f"  {'':{width}}  ours    {ours}"


def has_not(which: str) -> str:
    """The verb for the side that lacks a line."""
    return "have not" if which == "ours" else "has not"


def read_case(path: Path, kind: type[AnyCase] = Case) -> AnyCase:  # type: ignore[assignment]  # the usual kind
    """The case in a file. Raises BadInput for an invalid one."""
    try:
        return kind.model_validate_json(content(path))
    except ValidationError as error:
        raise BadInput(f"{path}: {complaint(error, kind, {})}") from None


def read_log(path: Path) -> Iterator[Line]:
    """The lines of a log. Raises BadInput, with the row, for an invalid one."""
    steps = 0
    for row, text in enumerate(content(path).splitlines(), start=1):
        try:
            line = json.loads(text)
        except json.JSONDecodeError as error:
            raise BadInput(f"{path}, row {row}: no JSON: {error}") from None
        if not isinstance(line, dict) or "type" not in line:
            raise BadInput(f"{path}, row {row}: found {brief(line)}; expected an object with a type")
        if line["type"] in ("step", "drain"):
            steps += 1
            if not isinstance(line.get("step"), int):
                raise BadInput(f"{path}, row {row}: step is {brief(line.get('step'))}; expected its number")
        yield line
    if not steps:
        raise BadInput(f"{path}: no line of type step; expected one for every step")


def content(path: Path) -> str:
    """The text of a file, unpacked if gzipped. Raises BadInput if it cannot be read."""
    try:
        packed = path.read_bytes()
        return (gzip.decompress(packed) if packed.startswith(GZIP) else packed).decode()
    except (EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
