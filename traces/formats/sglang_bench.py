"""SGLang's `bench_serving` results: one JSON object per run, appended line by line.

Without `--output-details` a line has only aggregates and no requests. Follows SGLang up to 2026.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from traces.formats.vllm_bench import bench_pieces
from traces.reading.head import Head
from traces.reading.pieces import Piece


def matches(head: Head) -> bool:
    """Whether it has the fields that only this client writes."""
    return head.opening == "{" and head.has_keys("backend", "dataset_name", "request_rate", "completed")


def chunks(path: Path) -> Iterator[Piece]:
    """The measurements, by run if there are several; `runs` has the aggregates."""
    return bench_pieces(path)
