"""Damaged files of every format: the outcome is a Trace or a BadInput of one line that names the file, never else.

SLOTSTEP_FUZZ_SECONDS sets how long to go on (default 20); the seeds count from 0, so a failure names its own.
"""

import io
import os
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trace_miniatures import MINIATURES
from trace_mutations import mutate

import traces
from traces import BadInput
from traces.reading.table import Trace

pytestmark = pytest.mark.no_cover  # many runs of what other tests cover: watching each line would treble the time

SECONDS = float(os.environ.get("SLOTSTEP_FUZZ_SECONDS", "20"))


def parquet():
    table = pa.table({"arrival_ns": [0, 5], "prompt": [3, 4], "output": [1, 2], "tokens": [[1, 2, 3], None]})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


FILES = [(name, content) for name, files in MINIATURES.items() for content in files] + [("columns", parquet())]


def outcome(path, kind):
    """The Trace, or the complaint, that became of the file."""
    try:
        trace = traces.load(path, kind)
        pieces = list(traces.chunks(path, kind))
    except BadInput as error:
        said = str(error)
        assert "\n" not in said, said
        assert str(path) in said, said
        assert len(said) < 1000, said
        return error
    assert isinstance(trace, Trace)
    assert sum(piece.report.rows for piece in pieces) == trace.report.rows
    for frame in (trace.workload, trace.measurements):
        assert frame is None or len(frame) <= trace.report.rows
    if trace.workload is not None and len(trace.workload):
        assert (trace.workload["prompt"] >= 1).all()
        for run in trace.runs or [None]:
            if trace.kind == "workload" and len((trace.run(run) if run else trace).workload):
                assert trace.requests(run)[0].arrival == 0
    return trace


@pytest.mark.slow
def test_every_damaged_file_is_a_trace_or_a_complaint(tmp_path):
    path, seed, read = tmp_path / "trace", 0, 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or seed < 3 * len(FILES):
        name, content = FILES[seed % len(FILES)]
        damaged = mutate(content, np.random.default_rng(seed))
        path.write_bytes(damaged)
        try:
            read += isinstance(outcome(path, name if seed % 2 else None), Trace)
        except Exception as error:
            pytest.fail(f"seed {seed} ({name}): {type(error).__name__}: {error}")
        seed += 1
    assert seed > read > seed // 20
