"""The trace formats by name, with the modules that read them.

A new format is one module in `traces.formats` and one line here. Formats are detected in this order, specific ones
before general ones. Modules are imported when first used.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sim.registry import Registry
from traces.errors import BadInput, nearest

if TYPE_CHECKING:
    from sim.request import Request
    from traces.reading.head import Head
    from traces.reading.pieces import Piece
    from traces.reading.table import Trace


class Format(Protocol):
    """A module of `traces.formats`, or an object with the same functions.

    With `load` in place of `chunks` it reads a whole Trace.
    """

    def matches(self, head: Head) -> bool:
        """Whether a file that begins like this has this format."""

    def chunks(self, path: Path) -> Iterator[Piece]:
        """The file in pieces, in its own order. Raises BadInput for an invalid row."""


def entry(name: str, found: Any) -> Format:
    """The format that an object is: a module, an object, or a class without arguments. Raises ValueError if none."""
    made: Any = found() if inspect.isclass(found) else found
    missing = [function for function in ("matches", "chunks") if not callable(getattr(made, function, None))]
    if missing and not (missing == ["chunks"] and hasattr(made, "load")):
        raise ValueError(f"{name!r} is {found!r}; expected a trace format: it lacks {', '.join(missing)}")
    format_: Format = made
    return format_


FORMATS: Registry[Format] = Registry(
    "trace format",
    "slotstep.formats",
    {
        "slotstep": "traces.formats.slotstep_trace",
        "azure": "traces.formats.azure",
        "burstgpt": "traces.formats.burstgpt",
        "mooncake": "traces.formats.mooncake",
        "bailian": "traces.formats.bailian",
        "vidur": "traces.formats.vidur",
        "lengths": "traces.formats.lengths",
        "llmservingsim": "traces.formats.llmservingsim",
        "llmservingsim-log": "traces.formats.llmservingsim_log",
        "servegen-rates": "traces.formats.servegen_rates",
        "servegen-lengths": "traces.formats.servegen_lengths",
        "tracev2": "traces.formats.tracev2",
        "tracev2-chunks": "traces.formats.stream_chunks",
        "vllm-bench": "traces.formats.vllm_bench",
        "sglang-bench": "traces.formats.sglang_bench",
        "guidellm": "traces.formats.guidellm",
        "aiperf": "traces.formats.aiperf",
        "inference-perf": "traces.formats.inference_perf",
        "llmperf": "traces.formats.llmperf",
        "lmbench": "traces.formats.lmbench",
        "slora": "traces.formats.slora",
        "litellm": "traces.formats.litellm",
        "weka": "traces.formats.weka",
        "engine-log": "traces.formats.engine_log",
        "columns": "traces.formats.mapped",
    },
    entry,
)


def detect(path: Path) -> str:
    """The name of the file's format, by its content; those of installed packages are tried last.

    Raises BadInput if no format matches.
    """
    from traces.reading.head import head

    path = Path(path)
    beginning = head(path)
    for name in FORMATS:
        if FORMATS[name].matches(beginning):
            return name
    for name in FORMATS.names():
        if name not in FORMATS and _format(name).matches(beginning):
            return name
    if not beginning.opening:
        raise BadInput(f"{path}: the file is empty; expected a trace")
    raise BadInput(f"{path}: no known trace format; name one with --format, or its columns")


def load(path: Path, kind: str | None = None, columns: Mapping[str, str] | None = None) -> Trace:
    """The whole file as one Trace, sorted by arrival; the format is detected unless `kind` names it.

    `columns` maps roles to the file's own columns and selects the format "columns" (see `traces.formats.mapped`).
    Raises BadInput for an unknown format and for errors in the file. Implausible data give warnings in the report.
    """
    from traces.reading.assembly import assemble
    from traces.reading.plausibility import warn

    trace = _whole(path, kind) if columns is None else None
    if trace is None:
        name, pieces = _pieces(path, kind, columns)
        trace = assemble(pieces)
        trace.report.format = name
    warn(trace)
    return trace


def chunks(path: Path, kind: str | None = None, columns: Mapping[str, str] | None = None) -> Iterator[Trace]:
    """The file in pieces, in its own order and in bounded memory (a JSON document is one piece).

    Times count from the first row (of each run), so a row out of order may have a negative time. Repeated ids are not
    detected. Raises BadInput as `load` does.
    """
    from traces.reading.assembly import stream

    if columns is None and (whole := _whole(path, kind)) is not None:
        yield whole
        return
    name, pieces = _pieces(path, kind, columns)
    for trace in stream(pieces):
        trace.report.format = name
        yield trace


def read(kind: str, path: Path, tenant: str = "default") -> list[Request]:
    """The requests of a trace file of format `kind`, sorted by arrival; `tenant` where the file has no tenants.

    Raises BadInput for an unknown format (the nearest known one is suggested) and for errors in the file.
    """
    return load(path, kind).requests(tenant=tenant)


def _whole(path: Path, kind: str | None) -> Trace | None:
    """The trace in a file whose format needs no assembly; None for other formats."""
    whole = getattr(_format(kind or detect(path)), "load", None)
    found: Trace | None = None if whole is None else whole(Path(path))
    return found


def _pieces(path: Path, kind: str | None, columns: Mapping[str, str] | None) -> tuple[str, Iterator[Piece]]:
    path = Path(path)
    name = kind or detect(path) if columns is None else "columns"
    format_: Any = _format(name)
    return name, format_.chunks(path) if columns is None else format_.chunks(path, columns)


def _format(name: str) -> Format:
    if not FORMATS.knows(name):
        raise BadInput(f"{name}: unknown trace format; did you mean {nearest(name, FORMATS.names())}?")
    try:
        return FORMATS.find(name)
    except ValueError as error:
        raise BadInput(str(error)) from error
