"""What the rows of earlier grids in the directory of a sweep differ in from the present grid.

A grid that is swept after a policy, a trace, the scenario or slotstep was changed leaves rows with the same axes.
They are not further seeds of the present settings.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from slotstep.experiments.sweeps.store import Store

FILES = ("user_code", "input_files")


def remarks(store: Store) -> list[str]:
    """A line that says how many rows are left out and what they differ in; none if all are of the present grid.

    Raises BadInput as `Store.chosen`.
    """
    present, others = ([sources(path) for path in paths] for paths in store.paths())
    if not others:
        return []
    codes = {row["code"] for row in present}
    contents = {digest_of for row in present for digest_of in files(row)}
    reasons = Counter(reason(row, codes, contents) for row in others)
    listed = "; ".join(f"{count:,} {why}" for why, count in reasons.items())
    return [f"{store.folder}: {len(others):,} rows of earlier grids are left out (table `earlier`): {listed}"]


def sources(path: Path) -> dict[str, str | None]:
    """What the row in this file states of its code and its files; a version that did not state it has none."""
    file = pq.ParquetFile(path)
    stated = [name for name in ("code", *FILES) if name in file.schema_arrow.names]
    (row,) = file.read(stated).to_pylist() or [{}]
    return {name: row.get(name) for name in ("code", *FILES)}


def reason(row: Mapping[str, str | None], codes: set[str | None], contents: set[tuple[str, str]]) -> str:
    """What a row differs in from the present ones: the content of a file that they use too, slotstep, or settings."""
    used = {file for file, _ in contents}
    changed = [file for file, digest in files(row) if file in used and (file, digest) not in contents]
    if changed:
        return f"with another content of {', '.join(changed)}"
    if codes and row["code"] not in codes:
        return "of another version of slotstep"
    return "of settings that are not in the grid"


def files(row: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """The files of a row with their digests."""
    return [pair for column in FILES for pair in json.loads(row[column] or "{}").items()]
