"""LMBench's summary CSV: many runs of several stacks in one file.

`stack, scenario, qps` name the run; `prompt_tokens, generation_tokens` (written as floats, `76.0`), `ttft`,
`generation_time`, `launch_time`, `finish_time` (s; the last two epoch). `user_id` is the session, empty where
requests have none. Launch times are not in order. A lost request has no row: a note names each run with fewer rows
than most runs of its scenario.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow.compute as pc

from traces.reading.columns.csv_rows import read_csv
from traces.reading.head import Head
from traces.reading.pieces import Piece, columns, nullable, per_token, replayable, text
from traces.reading.report import Report

NEEDED = (
    "stack",
    "scenario",
    "qps",
    "prompt_tokens",
    "generation_tokens",
    "ttft",
    "generation_time",
    "launch_time",
    "finish_time",
)


def matches(head: Head) -> bool:
    """Whether the header has the columns."""
    return head.has_columns(*NEEDED)


def chunks(path: Path) -> Iterator[Piece]:
    """The workload and the measurements, by run."""
    counts: Counter[tuple[str, str]] = Counter()
    waiting: Piece | None = None
    for rows in read_csv(path, NEEDED):
        if waiting is not None:
            yield waiting
        report = Report(str(path), rows=len(rows))
        sent, _ = rows.time("launch_time", "s")
        end, _ = rows.time("finish_time", "s")
        prompt, output = rows.whole("prompt_tokens"), rows.whole("generation_tokens")
        waited, _ = rows.time("ttft", "s")
        rows.check()
        ttft = waited / 1e9
        run = pc.binary_join_element_wise(*(rows.texts(name) for name in NEEDED[:3]), "/")
        counts.update(zip(rows.texts("scenario").to_pylist(), run.to_pylist(), strict=True))
        users = rows.texts("user_id") if "user_id" in rows.names else None
        session = None if users is None else text(pc.replace_substring_regex(users, r"\.0+$", ""))
        e2e = (end - sent) / 1e9
        kept = replayable(rows, report, prompt, output, ("prompt_tokens", "generation_tokens"))
        workload = columns(rows, kept, run=text(run), arrival_ns=sent, prompt=prompt, output=output, session=session)
        measured = columns(
            rows,
            run=text(run),
            status=text(["ok"] * len(rows)),
            session=session,
            arrival_ns=pd.array(sent, "Int64"),
            sent_ns=pd.array(sent, "Int64"),
            first_ns=pd.array(sent + waited, "Int64"),
            last_ns=pd.array(end, "Int64"),
            ttft_s=ttft,
            tpot_s=per_token(ttft, e2e, output),
            e2e_s=e2e,
            prompt=nullable(prompt, prompt == 0),
            output=nullable(output, output == 0),
        )
        waiting = Piece(report, 1, workload, measured)
    if waiting is not None:
        for note in _lost(counts):
            waiting.report.note(note)
        yield waiting


def _lost(counts: Counter[tuple[str, str]]) -> Iterator[str]:
    """A note for each run with fewer rows than most runs of its scenario."""
    for scenario in dict.fromkeys(name for name, _ in counts):
        sizes = {run: count for (name, run), count in counts.items() if name == scenario}
        size, times = Counter(sizes.values()).most_common(1)[0]
        if 2 * times < len(sizes) or times < 3:
            continue
        for run, count in sizes.items():
            if count < size:
                yield f"run {run} has {count} rows where its scenario has {size}: the others were lost without a row"
