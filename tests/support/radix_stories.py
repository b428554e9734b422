"""Sequences of known content, and how one of them passes through a radix cache."""

from hypothesis import strategies as st

from sim.memory.eviction import RANKS
from sim.request import Request
from sim.sequence import HeldPages, Sequence


def sequence(index, tokens, answer=(), tenant="a", pool=None, **more):
    """A request with these tokens; `answer`: those that it will generate, as far as they are known."""
    outputs = max(1, len(answer))
    more = {"declared": 100} | more
    request = Request(
        str(index), 0, len(tokens), outputs, tenant, tokens=(*tokens, *answer), spoken=len(answer), **more
    )
    return Sequence(request, index, pages=None if pool is None else HeldPages(pool))


def serve(pool, seq, computed=None):
    """Compute a sequence's first tokens, all known ones by default, and leave; returns how many it had found."""
    found = pool.match(seq, seq.known - 1)
    pool.pin(seq)
    computed = seq.known if computed is None else computed
    pages = pool.pages_for(computed)
    pool.make_room(pages * pool.page_size - found)
    pool.take(pages - found // pool.page_size)
    pool.publish(seq, computed)
    pool.give_back(seq, pages)
    return found


@st.composite
def stories(draw):
    """A pool, sequences that often begin alike, and what happens to them."""
    page = draw(st.sampled_from([1, 1, 2, 4]))
    sequences = []
    for index in range(draw(st.integers(1, 6))):
        same = draw(st.integers(0, 12))
        more = draw(st.lists(st.integers(1, 3), max_size=6))
        answer = [50 + index, 51 + index, 52 + index, 1][: draw(st.integers(0, 4))]
        tokens = [*range(1, same + 1), *more] or [1]
        sequences.append(sequence(index, tokens, answer, priority=draw(st.integers(0, 2))))
    actions = st.sampled_from(
        ["start", "start", "compute", "compute", "compute", "finish", "finish", "drop", "touch", "evict"]
    )
    happens = draw(st.lists(st.tuples(actions, st.sampled_from(sequences), st.integers(1, 9)), max_size=60))
    return page, draw(st.integers(4, 16)), draw(st.sampled_from(list(RANKS))), happens
