"""Group requests into sessions, with the content that the prompts of one session share.

A turn's prompt begins with all earlier prompts and answers of the session. Where the content of prompts is given, the
content of an answer is read from the prompt of the next turn; where only lengths are given, each session gets block
ids of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from sim.request import Nanoseconds, Request
from traces.errors import BadInput


def conversations(
    requests: Sequence[Request],
    block_size: int,
    think: Nanoseconds | None = None,
    prepend: bool = False,
) -> list[list[Request]]:
    """The turns of each session, sessions in order of their first arrivals; a request without session is one turn.

    Turns keep their order of arrival. `think` (ns) replaces the think time of every turn. With `prepend`, prompt
    lengths count only the new tokens of a turn, and the history's are added. Sessions without content get blocks of
    `block_size` tokens. Raises BadInput for a turn without think time, and for `prepend` where prompts have content.
    """
    sessions: dict[str, list[Request]] = {}
    for request in requests:
        sessions.setdefault(f"session {request.session}" if request.session else f"request {request.id}", []).append(
            request
        )
    return [
        whole(turns, name, block_size, think, prepend) if len(turns) > 1 else turns
        for name, turns in sessions.items()
    ]


def whole(
    turns: list[Request], name: str, block_size: int, think: Nanoseconds | None, prepend: bool
) -> list[Request]:
    """One session, with think times and content for all its turns."""
    known = [turn.tokens is not None or bool(turn.blocks) for turn in turns]
    if think is not None:
        turns = [turns[0], *(replace(turn, think=think) for turn in turns[1:])]
    for turn in turns[1:]:
        if turn.think is None:
            raise BadInput(
                f"sessions: turn {turn.id} of {name} has no think time; expected one in the workload, or a think here"
            )
    if prepend:
        if any(known):
            raise BadInput(f"sessions: the prompts of {name} have content; expected history: included")
        turns = with_history(turns)
    if not any(known):
        return [with_blocks(turn, name, block_size) for turn in turns]
    return with_answers(turns)


def with_history(turns: list[Request]) -> list[Request]:
    """The same turns, each prompt preceded by all earlier prompts and answers."""
    history = accumulate((turn.prompt + turn.output for turn in turns), initial=0)
    return [replace(turn, prompt=before + turn.prompt) for turn, before in zip(turns, history, strict=False)]


def with_blocks(turn: Request, name: str, size: int) -> Request:
    """A turn without content, with block ids that all turns of its session begin with."""
    blocks = tuple(f"{name}/{place}" for place in range(-(-(turn.prompt + turn.output) // size)))
    return replace(turn, blocks=blocks, block_size=size, spoken=turn.output)


def with_answers(turns: list[Request]) -> list[Request]:
    """The same turns, each with the content of its answer as far as the next prompt repeats it."""
    found = [turns[-1]]
    for turn in reversed(turns[:-1]):
        found.append(answered(turn, found[-1]))
    return found[::-1]


def answered(turn: Request, following: Request) -> Request:
    """A turn with the answer's content that the next prompt repeats; unchanged if that has another beginning."""
    spoken = min(turn.output, following.prompt - turn.prompt)
    if spoken <= 0:
        return turn
    covered = turn.prompt + spoken
    if turn.tokens is not None and following.tokens is not None:
        if following.tokens[: turn.prompt] != turn.tokens:
            return turn
        return replace(turn, tokens=following.tokens[:covered], spoken=spoken)
    size = turn.block_size
    full = turn.prompt // size if size else 0
    if not turn.blocks or following.block_size != size or following.blocks[:full] != turn.blocks[:full]:
        return turn
    return replace(turn, blocks=following.blocks[: -(-covered // size)], spoken=spoken)
