"""Sequences of known content, and how one of them passes through a radix cache."""

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
