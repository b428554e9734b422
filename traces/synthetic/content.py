"""Block ids of synthetic prompts: equal ids where the content is equal, different ids elsewhere.

Blocks wholly inside a system prompt belong to its group; other full blocks belong to the session (a request without
session is a session of its own); a partial last block belongs to this request alone. Ids only serve for comparison.
"""

from __future__ import annotations

GROUP = 1 << 62
PARTIAL = 1 << 31
SHIFT = 32


def blocks(prompt: int, shared: int, group: int, session: int, turn: int, size: int) -> tuple[int, ...]:
    """The ids of the ceil(prompt / size) blocks of a prompt whose first `shared` tokens are those of a group.

    `group` and `session` are numbers unique in the workload, `turn` is unique in the session.
    """
    full, rest = divmod(prompt, size)
    common = shared // size
    whose, mine = GROUP | group << SHIFT, session << SHIFT
    ids = [*range(whose, whose + common), *range(mine + common, mine + full)]
    if rest:
        ids.append(mine | PARTIAL | turn)
    return tuple(ids)
