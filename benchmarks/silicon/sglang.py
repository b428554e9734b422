"""`python -m benchmarks.silicon.sglang`: open rows of SGLang, with its preset and with vLLM's decisions.

The same profiles and constants for both. What the server's `scheduler_recv_interval` holds back belongs to SGLang, so
it is shown with the preset alone and with both. Rows of InferenceX are those of DeepSeek, for the tables of the other
models of SGLang's rows are missing or their memory is not counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.silicon.__main__ import profile_of
from benchmarks.silicon.constants import constants
from benchmarks.silicon.loop import simulated
from benchmarks.silicon.rows import BLOCKS, Row, aggregated, some
from benchmarks.silicon.servers import decisions_of_vllm, engine, steps_held

WAYS = {
    "vllm": "vLLM's decisions",
    "vllm_held": "vLLM's decisions, held back as by SGLang",
    "sglang": "SGLang's preset",
    "sglang_held": "SGLang's preset, as started",
}


def predictions(row: Row, folder: Path) -> dict[str, tuple[float, float]]:
    """(TTFT, TPOT) in seconds of each of WAYS. Raises ValueError for missing tables and models that do not fit."""
    known = constants(row)
    _, path = profile_of(row, folder, known)
    cost = {"profile": str(path), "host": f"{known.host}ms"}
    found = {}
    for name, section in (("vllm", decisions_of_vllm()), ("sglang", engine(row))):
        ttft, tpot = simulated(row, cost, section)
        ttft += known.delay / 1e3
        found[name] = ttft, tpot
        found[f"{name}_held"] = ttft + steps_held(row) * tpot, tpot
    return found


def errors(rows: Sequence[Row], folder: Path) -> pd.DataFrame:
    """Relative errors of the rows that can be simulated, a column for each way and metric."""
    records = []
    for place, row in enumerate(rows):
        print(f"\r{place + 1} of {len(rows)}", end="", file=sys.stderr, flush=True)
        try:
            found = predictions(row, folder)
        except ValueError:
            continue
        record: dict[str, Any] = {"system": row.system}
        for name, (ttft, tpot) in found.items():
            record |= {f"{name}_ttft": ttft / row.ttft_s - 1, f"{name}_tpot": tpot / row.tpot_s - 1}
        records.append(record)
    print(file=sys.stderr)
    return pd.DataFrame(records)


def table(found: pd.DataFrame) -> str:
    """Markdown: medians of the sizes of errors by system, and of all rows."""
    lines = [
        f"| system | rows | {' | '.join(f'{title}, TTFT' for title in WAYS.values())} | TPOT, vLLM's | SGLang's |"
    ]
    lines.append("|---|" + "---:|" * (len(WAYS) + 3))
    for name, rows in [*found.groupby("system"), ("all", found)]:
        columns = [*(f"{way}_ttft" for way in WAYS), "vllm_tpot", "sglang_tpot"]
        cells = [f"{rows[column].abs().median():.1%}" for column in columns]
        lines.append(f"| {name} | {len(rows)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the rows that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.silicon.sglang", description="Open rows of SGLang.")
    parser.add_argument("--rows", type=int, help="at most so many, drawn by a seed")
    parser.add_argument("--clients", type=int, default=64, help="leave out rows with more clients")
    parser.add_argument("--out", type=Path, help="write a line for each row here, as CSV")
    options = parser.parse_args(arguments)
    known = [row for row in aggregated() if row.backend == "sglang" and row.model.startswith(BLOCKS)]
    with tempfile.TemporaryDirectory() as folder:
        rows = some([row for row in known if row.clients <= options.clients], options.rows)
        found = errors(rows, Path(folder))
    if options.out:
        found.to_csv(options.out, index=False)
    print(table(found))


if __name__ == "__main__":
    main()
