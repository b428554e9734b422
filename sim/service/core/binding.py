"""The interface of the compiled core (`c/types.h`) to Python, by ctypes: its structures and its functions.

ctypes needs no header of Python and nothing at run time, and one library serves every version of Python.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_double, c_int64, c_void_p
from functools import cache
from pathlib import Path

from sim import kernel

ENDED, MORE_ARRIVALS, PAUSED, GIVEN_UP = range(4)
UNIT, AFFINE, ROOFLINE, TABLE = range(4)
NOWHERE, STRAIGHT, BENT = range(3)
BY_ARRIVAL, BY_RANK, BY_URGENCY = range(3)
OPEN_LOOP, WINDOW, CLOSED_LOOP = range(3)
LATEST = 2**62
"""Nothing later is simulated, in ns."""

MODULE = "sim.service.core.native"
"""The name under which the core is compiled (`kernel_build.py`); it is loaded, not imported."""


class Table(ctypes.Structure):
    """A growing array of 64-bit integers."""

    _fields_ = (("cells", c_void_p), ("count", c_int64), ("room", c_int64))

    def read(self) -> memoryview:
        """Its bytes: a view that is valid until the core runs on."""
        size = 8 * self.count
        return memoryview((ctypes.c_char * size).from_address(self.cells) if size else b"")


class Log(ctypes.Structure):
    """What was logged since the log was emptied, and how much in all."""

    TABLES = ("events", "stays", "stints", "chunks", "runs", "durations", "growth", "rests")
    COUNTS = ("steps", "batches", "ended", "queried", "requeried", "evictions")
    _fields_ = (*((name, Table) for name in TABLES), *((name, c_int64) for name in COUNTS))


class Knots(ctypes.Structure):
    """`sim.cost.knots.Knots`, laid out."""

    _fields_ = (("values", c_void_p), ("last", c_int64), ("growth", c_double))


class Lines(ctypes.Structure):
    """`sim.cost.table.Lines` or `sim.cost.surface.Surface`."""

    _fields_ = (("kind", c_int64), ("count", c_int64), ("along", c_void_p), ("knots", POINTER(Knots)))


class Cost(ctypes.Structure):
    """A step cost."""

    WHOLE = (
        *("form", "scaled", "unit", "least", "least_with_prompt", "needs_longest", "graph_count"),
        *("has_decode_dense", "has_sequences"),
    )
    CURVE = (
        *("per_context_token", "per_chunk_work", "per_sequence", "per_page", "host", "raggedness"),
        *("per_mixed_context_token", "per_tail_token", "unsplit"),
    )
    FORM = ("base", "per_prefill_token", "weight_pass", "per_token", "per_chunk", "crossing", "launch")
    KNOTS = ("dense", "decode_dense", "sequences")
    LINES = ("decode", "chunk", "beside")
    _fields_ = (
        *((name, c_int64) for name in WHOLE),
        *((name, c_double) for name in ("decode_factor", "prompts_factor", *CURVE, *FORM)),
        ("graph_sizes", c_void_p),
        *((name, Knots) for name in KNOTS),
        *((name, Lines) for name in LINES),
    )


class Config(ctypes.Structure):
    """An engine with its pool and its policy."""

    ENGINE = (
        *("slots", "token_budget", "chunked", "depth", "most_active", "admit_every", "chunk_limit"),
        *("chunk_limit_adapts", "queue_limit"),
    )
    POLICY = (
        *("pages", "page_size", "remembers", "reserves", "whole", "spare", "order", "appends"),
        *("least_urgent", "clients", "at_once", "think", "delay"),
    )
    _fields_ = (*((name, c_int64) for name in (*ENGINE, *POLICY)), ("per_generated", c_double))


class Arrivals(ctypes.Structure):
    """Requests in order of arrival, an array for each column."""

    WHOLE = ("arrival", "prompt", "goal", "most", "cut_short", "complaint", "priority", "wanted", "id_place")
    _fields_ = (
        ("count", c_int64),
        ("last", c_int64),
        *((name, c_void_p) for name in (*WHOLE, "rank")),
    )


def library() -> ctypes.CDLL | None:
    """The compiled core; None where it was not compiled, and where the Python kernel was chosen."""
    if kernel.path() == "python" or MODULE not in kernel.compiled().modules:
        return None
    return load(kernel.FOLDER / f"{MODULE}{kernel.SUFFIX}")


@cache
def load(path: Path) -> ctypes.CDLL:
    """A compiled core from its file."""
    found = ctypes.CDLL(str(path))
    for name, result, arguments in (
        ("core_new", c_void_p, (POINTER(Config), POINTER(Cost))),
        ("core_free", None, (c_void_p,)),
        ("core_feed", None, (c_void_p, POINTER(Arrivals))),
        ("core_run", c_int64, (c_void_p, c_int64)),
        ("core_log", POINTER(Log), (c_void_p,)),
        ("core_empty_log", None, (c_void_p,)),
        ("core_reasons", c_int64, (c_void_p, POINTER(c_int64))),
    ):
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found
