"""Slot-steps that were spent on requests that did not get their answer, by the row in which they were booked.

A run books what a slot does when it does it; that the work was in vain is known at the end. What each of these
requests did in which step is read from the log again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

import numpy as np

from sim.accounting.requests import Bools, RequestRecords
from sim.accounting.work.plan_times import planned_by_step
from sim.log.events import Integers, Kind
from sim.request import Request

Work = tuple[int, int, int | None]
"""(first step, end, positions computed before): a chunk, a verification, or a stint (before: None)."""

Lost = tuple[int, int]
"""(first step planned afterwards, positions thrown away): they were computed before, and may be computed again."""


def wasted_stretches(records: RequestRecords, chosen: Bools) -> Iterator[tuple[str, int, int]]:
    """(row, first step, end) of everything booked for the chosen requests, whose work was wasted."""
    log = records.log
    over, redone = records.values(Kind.RELEASED, 0), records.values(Kind.QUEUED, 0)
    indices = np.flatnonzero(chosen)
    if not len(indices):
        return
    tables = (log.stay_table(), 0), (log.stint_table(), 0), (log.chunk_table(), 1), (log.ran.verification_table(), 1)
    stays, stints, chunks, verified = (rows_of(table, column, indices) for table, column in tables)
    thrown_away = thrown_away_before(records, stays)
    still = log.still()
    drops = log.depth > 1 and bool(still)  # an engine with passes of one kind, which drops a token in flight
    here = np.where(records.count(Kind.FETCHING) > 0, records.values(Kind.FETCHED, log.steps), 0)
    for index in indices.tolist():
        worked: list[Work] = [
            (start, stop, None)
            for _, first, end in stints.get(index, [])
            for start, stop in decoding(first, end, still)
        ]
        worked += [
            (step, step + 1, start) for step, _, start, *_ in (*chunks.get(index, []), *verified.get(index, []))
        ]
        given_up = thrown_away.get(index, [])
        if drops:
            worked += dropped(stays.get(index, []), worked, [step for step, _ in given_up], still)
        worked.sort(key=itemgetter(0))
        lost = [(0, int(redone[index])), *given_up]
        facts = bool(over[index]), lost, int(here[index])
        yield from stretches(log.requests[index], stays.get(index, []), worked, *facts)


def thrown_away_before(records: RequestRecords, stays: Mapping[int, list[list[int]]]) -> dict[int, list[Lost]]:
    """By request: the positions that a preemption threw away, with the first step that was planned after it.

    At depth 2 two steps may be planned at one instant, and the preemption with the second: then a stay ends there.
    """
    chosen = records.kind == Kind.PREEMPTED
    after = np.searchsorted(planned_by_step(records), records.time[chosen])
    lefts = {index: {left for _, _, left in rows} for index, rows in stays.items()}
    found: dict[int, list[Lost]] = {}
    for index, step, positions in zip(
        records.request[chosen].tolist(), after.tolist(), records.value[chosen].tolist(), strict=True
    ):
        ends = lefts.get(index, ())
        second = records.log.depth > 1 and step not in ends and step + 1 in ends
        found.setdefault(index, []).append((step + second, positions))
    return found


def decoding(first: int, end: int, still: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The parts of a stint between steps in which decoders stand still, which are in order: (first step, end)."""
    for step in still[bisect_left(still, first) : bisect_left(still, end)]:
        if first < step:
            yield first, step
        first = step + 1
    if first < end:
        yield first, end


def dropped(stays: list[list[int]], worked: list[Work], given_up: list[int], still: Sequence[int]) -> list[Work]:
    """The decodes whose token was in flight when the sequence gave up its memory, and was dropped.

    given_up  the first step planned after each time that it did
    """
    return [
        (left - 1, left, None)
        for _, entered, left in stays
        if left in given_up
        and entered < left
        and left - 1 not in still
        and not any(first < left <= end for first, end, _ in worked)
    ]


def rows_of(table: Integers, column: int, chosen: Integers) -> dict[int, list[list[int]]]:
    """The rows of the chosen requests, by request."""
    rows: dict[int, list[list[int]]] = {}
    for row in table[np.isin(table[:, column], chosen)].tolist():
        rows.setdefault(row[column], []).append(row)
    return rows


def stretches(
    request: Request, stays: list[list[int]], worked: list[Work], over: bool, lost: Sequence[Lost] = (), here: int = 0
) -> Iterator[tuple[str, int, int]]:
    """The rows in which one request was booked, in order: by what it computed, `held` or `no_budget` in between.

    here  the first step in which KV that came from another engine was here
    """
    cancel_tokens = request.patience.cancel_tokens
    for _, entered, left in stays:
        at = entered
        for first, end, start in worked:
            if not entered <= first < left:
                continue
            yield from unserved(at, first, here)
            if start is None:
                row = "decode"
            elif cancel_tokens and start >= request.prompt + cancel_tokens - 1:
                row = "held"
            elif any(step <= first and start < positions for step, positions in lost):
                row = "recomputed"
            else:
                row = "prefill" if start < request.prompt else "decode"
            yield row, first, end
            at = end
        yield from unserved(at, left, left if over and left == stays[-1][2] else here)


def unserved(first: int, end: int, here: int) -> Iterator[tuple[str, int, int]]:
    """The rows of steps in which a sequence with a slot computed nothing: `held` before its KV was here."""
    if first < min(end, here):
        yield "held", first, min(end, here)
    if max(first, here) < end:
        yield "no_budget", max(first, here), end
