"""Extents by themselves: pages of unknown content are counted; found, held, evicted and lost as if one by one."""

import pytest

from sim.memory.extents import ExtentPool
from sim.memory.prefix import PrefixPool
from sim.request import Request
from sim.sequence import Sequence

ABC = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
BOTH = pytest.mark.parametrize("kind", [ExtentPool, PrefixPool])


def of(index, tokens=None, prompt=13):
    """A sequence with these tokens, or only a length."""
    return Sequence(Request(str(index), 0, len(tokens or range(prompt)), 40, "a", tokens=tokens), index)


def compute(pool, seq, positions):
    """Have a sequence hold what is found, take the rest of its pages, and enter the full ones."""
    found = len(pool.find(seq))
    pool.claim(seq, pool.find(seq))
    pool.take(pool.pages_for(positions) - found)
    pool.keep(seq, positions // pool.page_size)
    return found


def leave(pool, seq, positions):
    """Have it leave."""
    pool.give_back(seq, pool.pages_for(positions))


@BOTH
def test_a_sequence_of_unknown_content_finds_its_own_pages_and_no_others(kind):
    pool = kind(pages=9, page_size=4)
    first, other = of(0), of(1)
    assert compute(pool, first, 13) == 0
    assert (pool.free, pool.cached, pool.protected, pool.changes) == (5, 0, 12, 1)
    leave(pool, first, 13)
    assert (pool.free, pool.cached, pool.protected) == (9, 3, 0)
    assert [len(pool.find(seq)) for seq in (first, other)] == [3, 0]
    assert pool.look_up(first, 8) == (None, 8)
    assert compute(pool, first, 14) == 3
    assert (pool.free, pool.cached, pool.shared) == (5, 0, 0)
    leave(pool, first, 14)
    pool.check()


def test_no_object_is_made_for_a_page_of_unknown_content():
    pool = ExtentPool(pages=99, page_size=4)
    seqs = [of(index, prompt=41) for index in range(3)]
    for seq in seqs:
        compute(pool, seq, 41)
        leave(pool, seq, 41)
    assert (pool.cached, len(pool.idle), len(pool.known)) == (30, 3, 0)


@BOTH
def test_pages_are_evicted_from_the_last_one_of_the_sequence_that_left_first(kind):
    pool = kind(pages=8, page_size=4)
    a, b = of(0), of(1)
    for seq in (a, b):
        compute(pool, seq, 12)
        leave(pool, seq, 12)
    assert [pool.takes_until_lost(pool.find(seq)) for seq in (a, b)] == [2, 5]
    pool.take(3)  # two were never cached; the third is the last page of a
    assert (len(pool.find(a)), len(pool.find(b)), pool.cached, pool.use.evictions) == (2, 3, 5, 1)
    assert pool.takes_until_lost(pool.find(b)) == 2
    assert pool.takes_until_lost([]) == 5
    assert pool.make_room(8) == 8
    assert (len(pool.find(a)), pool.find(a), pool.use.evictions) == (0, [], 3)


@BOTH
def test_pages_of_known_content_come_first_and_are_evicted_last(kind):
    pool = kind(pages=6, page_size=4)
    one, other = of(0, ABC), of(1, ABC)
    one.known = other.known = 18  # eight tokens have been generated
    compute(pool, one, 17)
    assert [len(pool.find(seq)) for seq in (one, other)][1] == 2
    assert pool.in_use(pool.find(other)) == 2
    assert pool.kept(one) == 4
    leave(pool, one, 17)
    assert len(pool.find(one)) == 4
    assert pool.takes_until_lost(pool.find(other)) == 4
    assert pool.takes_until_lost(pool.find(one)) == 2
    pool.take(4)  # two free ones, and those of the generated tokens
    assert [len(pool.find(seq)) for seq in (one, other)] == [2, 2]
    pool.take(1)
    assert [len(pool.find(seq)) for seq in (one, other)] == [1, 1]


@BOTH
def test_pages_of_a_step_that_never_ran_are_found_no_longer(kind):
    pool = kind(pages=9, page_size=4)
    seq, other = of(0, ABC), of(1, ABC)
    seq.known = 18
    compute(pool, seq, 17)
    assert not pool.others_hold(seq, 4)
    pool.claim(other, pool.find(other))
    changes = pool.changes
    assert [pool.others_hold(seq, last) for last in (1, 2, 3)] == [False, False, True]
    found = pool.find(of(2, ABC))
    assert [len(pool.ahead_of(found, seq, last)) for last in (1, 2, 3, 4)] == [2, 2, 1, 0]
    pool.withdraw(seq, 2)
    assert (pool.kept(seq), pool.changes) == (2, changes + 2)
    with pytest.raises(AssertionError, match="withdrew a page that another sequence found"):
        pool.withdraw(seq, 1)


@BOTH
def test_a_failure_empties_the_cache(kind):
    pool = kind(pages=9, page_size=4)
    idle, running = of(0), of(1)
    compute(pool, idle, 12)
    leave(pool, idle, 12)
    compute(pool, running, 12)
    pool.lose_all()
    running.pages.lose()
    assert (pool.free, pool.cached, pool.protected, len(pool.find(idle))) == (9, 0, 0, 0)
    assert pool.kept(running) == 0
    pool.check()


def test_pages_that_are_counted_and_not_there_are_noticed():
    pool = ExtentPool(pages=9, page_size=4)
    pool.held_own = 2
    with pytest.raises(AssertionError, match="2 pages of unknown content are held by no sequence"):
        pool.check()
    pool.held_own, pool.idle_own = 0, 1
    with pytest.raises(AssertionError, match="an extent is not counted"):
        pool.check()
    pool.idle_own = 0
    seq = of(0)
    compute(pool, seq, 12)
    leave(pool, seq, 12)
    del pool.idle[pool.extents[0]]
    with pytest.raises(AssertionError, match="the cached pages are not the idle ones"):
        pool.check()
