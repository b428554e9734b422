"""What prompts share, as ids of blocks: equal ids where the content is equal, different ones elsewhere.

Of a prompt's blocks those wholly inside its system prompt belong to the group, the other full ones to its
session (a request without session is one of its own), and a partial last one to this request alone. Ids are
to be compared, nothing is to be read from them. Draws nothing.
"""

from __future__ import annotations

GROUP = 1 << 62
PARTIAL = 1 << 31
SHIFT = 32


def blocks(prompt: int, shared: int, group: int, session: int, turn: int, size: int) -> tuple[int, ...]:
    """The ids of the ceil(prompt / size) blocks of a prompt that begins with `shared` tokens of a group.

    `group` and `session` are numbers unique in the workload, `turn` is unique in the session.
    """
    full, rest = divmod(prompt, size)
    common = shared // size
    whose, mine = GROUP | group << SHIFT, session << SHIFT
    ids = [*range(whose, whose + common), *range(mine + common, mine + full)]
    if rest:
        ids.append(mine | PARTIAL | turn)
    return tuple(ids)
