"""The log told again, step by step and sequence by sequence, from nothing but its events and chunks.

Every running sequence without a chunk in a step decodes one token there, unless it has all its tokens. From
this follow its positions, its pages, the rows of the ledger and the times of its tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sim.log.events import Kind


@dataclass(eq=False)
class Stay:
    """A sequence in a slot."""

    most: int
    prompt: int
    computed: int = 0
    best: int = 0
    over: bool = False


@dataclass
class Told:
    """What the replay found; `rows`, `live`, `held` etc. have one entry per step, times are nanoseconds."""

    rows: list[dict[str, int]] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    live: list[int] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    filled: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    redone: int = 0
    page_time: dict[int, int] = field(default_factory=dict)
    token_times: dict[int, list[int]] = field(default_factory=dict)
    preemptions: int = 0


def replay(log, starts, durations, overrun=0, closed=False):
    """Tell a run again. `overrun`: positions beyond the last token; `closed`: empty slots of a batch are held."""
    told = Told()
    size = log.page_size
    events = log.event_table().tolist()
    chunks = {}
    for step, index, start, tokens in log.chunk_table().tolist():
        assert (step, index) not in chunks
        chunks[step, index] = (start, tokens)
    waiting, running, seen = set(), {}, {}
    place = 0
    for step, (begin, lasts) in enumerate(zip(starts, durations, strict=True)):
        while place < len(events) and events[place][0] <= begin:
            time, kind, index, value = events[place]
            assert place == 0 or time >= events[place - 1][0]
            place += 1
            request = log.requests[index]
            if kind == Kind.QUEUED:
                assert time == request.arrival
                waiting.add(index)
            elif kind == Kind.ADMITTED:
                waiting.remove(index)
                most = request.prompt + request.max_output - 1 + overrun
                running[index] = Stay(most, request.prompt, best=seen.get(index, 0))
            elif kind == Kind.PREEMPTED:
                stay = running.pop(index)
                assert value == stay.computed
                assert not stay.over
                seen[index] = stay.best
                waiting.add(index)
                told.preemptions += 1
            elif kind in (Kind.LOST, Kind.FINISHED):
                running[index].over = True
            elif kind == Kind.RELEASED:
                del running[index]
        assert len(running) <= log.slots
        rows = dict.fromkeys(("decode", "prefill", "recomputed", "held", "no_budget"), 0)
        total = 0
        for index, stay in running.items():
            if stay.over:
                start, tokens = chunks.pop((step, index), (stay.computed, 0))
                row = "held"
            else:
                start, tokens = chunks.pop((step, index), (stay.computed, 1))
                row = row_of(stay, tokens)
            assert start == stay.computed
            told.redone += max(0, min(stay.best - stay.computed, tokens))
            stay.computed += tokens
            stay.best = max(stay.best, stay.computed)
            assert stay.computed <= stay.most
            rows[row] += 1
            total += tokens
            request = log.requests[index]
            known = request.prompt + len(told.token_times.setdefault(index, []))
            if not stay.over and tokens and stay.computed == known:
                told.token_times[index].append(begin + lasts)
            held = -(-(stay.computed if log.on_demand else stay.most) // size)
            told.page_time[index] = told.page_time.get(index, 0) + held * lasts
        if closed:
            rows["held"] += log.slots - len(running)
        told.rows.append(rows)
        told.waiting.append(len(waiting))
        told.live.append(sum(stay.computed for stay in running.values()))
        told.filled.append(sum(-(-stay.computed // size) for stay in running.values()))
        if log.on_demand:
            told.pages.append(told.filled[-1])
        else:
            told.pages.append(sum(-(-stay.most // size) for stay in running.values()))
        told.tokens.append(total)
    assert not chunks
    return told


def row_of(stay, tokens):
    """The row of the ledger for an unfinished sequence that computes so many tokens."""
    if not tokens:
        return "no_budget"
    if stay.best > stay.computed:
        return "recomputed"
    return "prefill" if stay.computed < stay.prompt else "decode"
