"""Vidur's request trace: arrived_at (s, with nine decimal digits), num_prefill_tokens, num_decode_tokens."""

from __future__ import annotations

from pathlib import Path

from traces.reading.table import Trace
from traces.writers.shared import left_out, workload
from traces.writing import write_bytes

HEADER = "arrived_at,num_prefill_tokens,num_decode_tokens"


def write(trace: Trace, path: Path) -> list[str]:
    """Write the workload; returns what is lost."""
    frame = workload(trace, "vidur")
    columns = (frame[name].tolist() for name in ("arrival_ns", "prompt", "output"))
    rows = (
        f"{time // 10**9}.{time % 10**9:09d},{prompt},{output}" for time, prompt, output in zip(*columns, strict=True)
    )
    write_bytes(path, "\n".join([HEADER, *rows, ""]).encode())
    return left_out(trace, frame, ("arrival_ns", "prompt", "output"))
