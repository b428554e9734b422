"""Assemble pieces into one Trace: ids, order, times from zero, notes on the whole file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from traces.errors import BadInput, shown
from traces.reading.pieces import Piece, kind_of, text
from traces.reading.plausibility import drop_zeros
from traces.reading.report import Report
from traces.reading.table import Trace

ARRIVAL = ("arrival_ns",)
CLOCK = ("sent_ns", "queued_ns", "scheduled_ns", "first_ns", "last_ns")
FEW = 20


def stream(pieces: Iterable[Piece]) -> Iterator[Trace]:
    """Each piece as a Trace of its own, rows and ids in the file's order.

    Times count from the first row that has one (of each run), so a row out of order may have a negative time.
    Repeated ids are not detected.
    """
    zeros: dict[tuple[str, str], int] = {}
    for piece in pieces:
        _name(piece.workload)
        _name(piece.measurements)
        _count_from_zero(piece, zeros, first=True)
        yield _trace(piece)


def assemble(pieces: Iterable[Piece]) -> Trace:
    """All pieces as one sorted Trace, times from the earliest. Raises BadInput for an id of two requests."""
    whole = _join(list(pieces))
    report = whole.report
    for frame in (whole.workload, whole.measurements):
        _unique(frame, report.file, whole.header)
        _name(frame)
    if whole.measurements is not None:
        drop_zeros(whole.measurements, report)
    whole.workload = _by_arrival(whole.workload, report)
    whole.measurements = _by_time(whole.measurements)
    _count_from_zero(whole, {}, first=False)
    return replace(_trace(whole), tick_ns=_remark(whole.workload, report))


def _trace(piece: Piece) -> Trace:
    workload = None if piece.workload is None else piece.workload.drop(columns=["row"])
    measured = None if piece.measurements is None else piece.measurements.drop(columns=["row"])
    piece.report.kept = 0 if workload is None else len(workload)
    return Trace(kind_of(piece), piece.report, workload, measured, piece.tables, piece.block_size, piece.local_blocks)


def _join(pieces: Sequence[Piece]) -> Piece:
    """All pieces as one. Raises BadInput for blocks of two sizes."""
    first = pieces[0]
    sizes = sorted({piece.block_size for piece in pieces} - {0})
    if len(sizes) > 1:
        raise BadInput(f"{first.report.file}: blocks of {sizes[0]} and of {sizes[1]} tokens; expected one size")
    if len(pieces) == 1:
        return first
    for piece in pieces[1:]:
        first.report.add(piece.report)
    tables: dict[str, list[pd.DataFrame]] = {}
    for piece in pieces:
        for name, table in piece.tables.items():
            tables.setdefault(name, []).append(table)
    return Piece(
        first.report,
        first.header,
        _concatenate([piece.workload for piece in pieces]),
        _concatenate([piece.measurements for piece in pieces]),
        {name: pd.concat(found, ignore_index=True) for name, found in tables.items()},
        max(sizes, default=0),
        any(piece.local_blocks for piece in pieces),
    )


def _concatenate(frames: Sequence[pd.DataFrame | None]) -> pd.DataFrame | None:
    found = [frame for frame in frames if frame is not None]
    filled = [frame for frame in found if len(frame)] or found[:1]
    return pd.concat(filled, ignore_index=True) if filled else None


def _unique(frame: pd.DataFrame | None, file: str, header: int) -> None:
    """Raise BadInput for the first row with the id of an earlier one (of the same run)."""
    if frame is None or "id" not in frame:
        return
    again = frame.duplicated(["run", "id"] if "run" in frame else ["id"]).to_numpy()
    if again.any():
        place = int(np.argmax(again))
        row = int(frame["row"].iloc[place]) + header
        raise BadInput(f"{file}, row {row}: id is {shown(frame['id'].iloc[place])} again; expected a new one")


def _name(frame: pd.DataFrame | None) -> None:
    """Give every row its number in the file as id, where the file has none."""
    if frame is not None and "id" not in frame:
        frame.insert(0, "id", text(pc.cast(pa.array(frame["row"].to_numpy()), pa.string())))


def _runs(frame: pd.DataFrame) -> NDArray[np.int64]:
    """The number of each row's run, in the file's order."""
    if "run" not in frame:
        return np.zeros(len(frame), np.int64)
    return np.asarray(pd.factorize(frame["run"], use_na_sentinel=False)[0], np.int64)


def _by_arrival(frame: pd.DataFrame | None, report: Report) -> pd.DataFrame | None:
    """By run in the file's order and by arrival, ties in the file's order."""
    if frame is None or "arrival_ns" not in frame or frame.empty:
        return frame
    arrivals, runs = frame["arrival_ns"].to_numpy(), _runs(frame)
    early = int(((np.diff(arrivals) < 0) & (np.diff(runs) == 0)).sum())
    if not early and (np.diff(runs) >= 0).all():
        return frame
    report.change("arrives before the row above it: rows sorted by arrival, ties in the file's order", early)
    return frame.take(np.lexsort((arrivals, runs)).tolist()).reset_index(drop=True)


def _by_time(frame: pd.DataFrame | None) -> pd.DataFrame | None:
    """Measurements by arrival, else by send time, else by queue entry, else in the file's order."""
    if frame is None:
        return None
    for clock in ("arrival_ns", "sent_ns", "queued_ns"):
        if clock in frame and not frame[clock].isna().any():
            order = np.lexsort((frame[clock].to_numpy(np.int64), _runs(frame)))
            return frame.take(order.tolist()).reset_index(drop=True)
    return frame


def _count_from_zero(piece: Piece, zeros: dict[tuple[str, str], int], first: bool) -> None:
    """Subtract from every time the zero of its run and clock: the first row's time if `first`, else the earliest.

    The workload's arrivals set the zero of the measurements' arrivals too.
    """
    for frame, clock in (
        (piece.workload, ARRIVAL),
        (piece.measurements, ARRIVAL),
        (piece.measurements, CLOCK),
    ):
        names = [] if frame is None else [name for name in clock if name in frame]
        if frame is None or not names or frame.empty:
            continue
        codes = _runs(frame)
        keys = [""] if "run" not in frame else [str(name) for name in frame["run"].unique()]
        for code, key in enumerate(keys):
            here = frame[names] if len(keys) == 1 else frame.loc[codes == code, names]
            times = [int(time) for time in (here.iloc[0] if first else here.min()) if not pd.isna(time)]
            if times:
                zeros.setdefault((key, clock[0]), min(times))
        zero = np.array([zeros.get((key, clock[0]), 0) for key in keys], np.int64)
        shift = zero[codes] if len(keys) > 1 else int(zero[0])
        for name in names:
            frame[name] = frame[name] - shift


def _remark(frame: pd.DataFrame | None, report: Report) -> int:
    """Note equal arrivals and arrivals snapped to ticks; returns the ticks' distance (ns), or 0."""
    if frame is None or "arrival_ns" not in frame or len(frame) < 2:
        return 0
    gaps = np.diff(frame["arrival_ns"].to_numpy())[np.diff(_runs(frame)) == 0]
    ties = int((gaps == 0).sum())
    if ties:
        report.note(f"arrivals at the same instant as the one before: {ties:,}; they keep the file's order")
    instants = len(frame) - ties
    if len(frame) < FEW or not len(frame) >= 2 * instants > 2:
        return 0
    tick = int(np.median(gaps[gaps > 0]))
    report.note(
        f"arrivals are snapped to {instants:,} instants, about {tick / 1e9:g} s apart: shorter gaps "
        "are not resolved; jitter within the tick spreads them"
    )
    return tick
