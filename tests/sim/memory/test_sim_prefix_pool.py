"""The prefix cache and the numbered pools by themselves: what is found, held, evicted and lost, page by page."""

from array import array

import pytest
from sim_stories import run

from policies.fcfs import FirstComeFirstServed
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.numbered import NumberedPool, NumberedPrefixPool, Numbers
from sim.memory.pool import PagePool
from sim.memory.prefix import PrefixPool
from sim.policy.base import Policy, Reserve
from sim.request import Request
from sim.sequence import Page, Sequence


def of(index, tokens=None, prompt=8, tenant="a", **more):
    """A sequence with these tokens, or only a length."""
    prompt = prompt if tokens is None else len(tokens)
    return Sequence(Request(str(index), 0, prompt, 4, tenant, tokens=tokens, **more), index)


def compute(pool, seq, positions=None):
    """Have a sequence hold what is found, take the rest of its pages, and enter the full ones; returns the found."""
    found = len(pool.find(seq))
    positions = seq.known if positions is None else positions
    pool.claim(seq, pool.find(seq))
    pool.take(pool.pages_for(positions) - found)
    pool.keep(seq, positions // pool.page_size)
    return found


def leave(pool, seq, positions=None):
    """Have it leave."""
    pool.give_back(seq, pool.pages_for(seq.known if positions is None else positions))


ABC = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
"""Of ten tokens, pages of four hold two whole ones and half a third."""


@pytest.mark.parametrize("kind", [PrefixPool, NumberedPrefixPool])
def test_whole_pages_are_found_and_one_token_is_left_to_compute(kind):
    pool = kind(pages=9, page_size=4)
    first, again, shorter, same = of(0, ABC), of(1, ABC), of(2, ABC[:8]), of(3, (*ABC[:4], 0, 0, 0, 0, 0))
    assert compute(pool, first) == 0
    assert (pool.free, pool.cached, pool.shared, pool.changes) == (6, 0, 0, 1)
    # The eighth token is to be computed, so only one page of `shorter` counts as found.
    assert [len(pool.find(seq)) for seq in (again, shorter, same)] == [2, 1, 1]
    assert pool.look_up(shorter, 8) == (None, 8)
    assert pool.look_up(shorter, 7) == (None, 4)
    assert compute(pool, again) == 2
    # Two pages of four positions are counted by both; the third page of each is its own.
    assert (pool.free, pool.cached, pool.shared, pool.protected) == (5, 0, 8, 8)
    leave(pool, first)
    assert (pool.free, pool.cached, pool.shared) == (6, 0, 0)
    leave(pool, again)
    assert (pool.free, pool.cached, pool.shared, pool.evictable, pool.avail) == (9, 2, 0, 8, 28)
    pool.check()


def test_content_is_shared_as_far_as_the_domain_goes():
    keys = {}
    for share in ("none", "tenant", "all"):
        pool = PrefixPool(9, 4, share)
        compute(pool, of(0, ABC))
        mine, other = of(1, ABC), of(2, ABC, tenant="b")
        adapted = of(3, ABC, adapter="x")
        keys[share] = [len(pool.find(seq)) for seq in (mine, other, adapted)]
    assert keys == {"none": [0, 0, 0], "tenant": [2, 0, 0], "all": [2, 2, 0]}
    pool = PrefixPool(9, 4, "tenant")
    assert pool.domain(of(1, ABC)) == pool.domain(of(2, ABC)) != pool.domain(of(3, ABC, tenant="b"))
    assert PagePool(9, 4).domain(of(7)) == 7


def test_what_makes_pages_compatible_is_part_of_the_key():
    one, other, unnamed = (PrefixPool(9, 4, "all", identity) for identity in ("model x", "model y", ""))
    seqs = [of(0, ABC) for _ in range(3)]
    keys = [pool.keys(seq, 2) for pool, seq in zip((one, other, unnamed), seqs, strict=True)]
    assert len({tuple(each) for each in keys}) == 3
    assert NumberedPrefixPool(9, 4, "all", "model x").keys(of(0, ABC), 2) == keys[0]
    assert NumberedPrefixPool(9, 4, "all").keys(of(0, ABC), 2) == keys[2]


def test_an_early_token_changes_all_keys_after_it():
    pool = PrefixPool(9, 4)
    keys, other = (pool.keys(of(0, tokens), 2) for tokens in (ABC, (0, *ABC[1:])))
    assert keys[0] != other[0]
    assert keys[1] != other[1]
    late = pool.keys(of(0, (*ABC[:7], 0)), 2)
    assert (late[0], late[1] != keys[1]) == (keys[0], True)
    assert pool.keys(of(5, prompt=8), 3, first=1) == [(5, 1), (5, 2)]
    assert pool.keys(of(0, ABC), 3, first=1) == [keys[1], (0, 2)]


def test_the_least_recently_used_is_evicted_and_never_what_is_held():
    pool = PrefixPool(pages=4, page_size=4)
    a, b = of(0, (1,) * 5), of(1, (2,) * 5)
    for seq in (a, b):
        compute(pool, seq, 4)
        leave(pool, seq, 4)
    assert (pool.free, pool.cached, pool.avail) == (4, 2, 8)
    changes = pool.changes
    pool.take(2)  # those never cached first
    assert (pool.cached, pool.use.evictions) == (2, 0)
    pool.take(1)
    assert (pool.cached, pool.use.evictions, pool.changes) == (1, 1, changes + 1)
    assert [len(pool.find(of(8, (token,) * 5))) for token in (1, 2)] == [0, 1]
    assert pool.takes_until_lost(pool.find(of(8, (2,) * 5))) == 0
    assert pool.takes_until_lost([]) == 1


def test_how_many_can_be_taken_before_a_page_is_lost():
    pool = PrefixPool(pages=6, page_size=1)
    for token in (1, 2, 3):
        seq = of(token, (token, 9))
        compute(pool, seq, 1)
        leave(pool, seq, 1)
    # Three were never cached; then 1, 2 and 3 go in this order.
    assert [pool.takes_until_lost(pool.find(of(8, (token, 9)))) for token in (1, 2, 3)] == [3, 4, 5]
    holder = of(9, (1, 9))
    pool.claim(holder, pool.find(holder))
    assert pool.takes_until_lost(holder.pages.table) == pool.free == 5
    assert pool.in_use(holder.pages.table) == 1
    assert pool.in_use(holder.pages.table, without=holder) == 0
    assert PagePool(3, 1).takes_until_lost(()) == 3


def test_room_is_made_in_tokens_and_no_further_than_asked():
    pool = PrefixPool(pages=3, page_size=4)
    seq = of(0, tuple(range(13)))
    compute(pool, seq, 12)
    leave(pool, seq, 12)
    assert (pool.avail, pool.cached) == (0, 3)
    assert pool.make_room(4) == 4
    assert (pool.avail, pool.cached) == (4, 2)
    assert pool.make_room(4) == 0
    assert pool.make_room(99) == 8
    assert pool.cached == 0
    assert PagePool(3, 4).make_room(99) == 0


def test_a_page_that_another_holds_is_not_free_when_one_leaves():
    pool = PrefixPool(pages=9, page_size=4)
    one, other = of(0, ABC), of(1, ABC)
    compute(pool, one)
    assert pool.released(one, 3) == 3
    compute(pool, other)
    assert pool.released(one, 3) == 1
    assert PagePool(9, 4).released(one, 3) == 3


def test_pages_of_a_step_that_never_ran_are_found_no_longer():
    pool = PrefixPool(pages=9, page_size=4)
    seq, other = of(0, ABC), of(1, ABC)
    compute(pool, seq)
    changes = pool.changes
    pool.withdraw(seq, 1)
    assert (len(seq.pages.table), len(pool.find(other)), pool.changes) == (1, 1, changes + 1)
    compute(pool, other, 4)
    with pytest.raises(AssertionError, match="withdrew a page that another sequence found"):
        pool.withdraw(seq, 1)


def test_keeping_what_is_kept_changes_nothing():
    pool = PrefixPool(pages=9, page_size=4)
    seq = of(0, ABC)
    compute(pool, seq)
    table, changes = list(seq.pages.table), pool.changes
    pool.keep(seq, 2)
    pool.keep(seq, 1)
    assert (seq.pages.table, pool.changes) == (table, changes)


def test_two_pages_of_the_same_content_are_entered_and_the_first_is_found():
    pool = PrefixPool(pages=9, page_size=4)
    one, other = of(0, ABC), of(1, ABC)
    pool.take(6)  # both computed before either was in the cache
    pool.keep(one, 2)
    pool.keep(other, 2)
    assert pool.find(of(2, ABC)) == one.pages.table
    leave(pool, one)
    pool.make_room(99)
    assert pool.find(of(2, ABC)) == other.pages.table


def test_a_failure_empties_the_cache():
    pool = PrefixPool(pages=9, page_size=4)
    one, other = of(0, ABC), of(1, ABC)
    compute(pool, one)
    compute(pool, other)
    changes = pool.changes
    pool.lose_all()
    assert (pool.free, pool.shared, pool.cached, pool.known, pool.changes) == (9, 0, 0, {}, changes + 1)
    plain = PagePool(3, 1)
    plain.take(2)
    plain.shared = 5
    plain.lose_all()
    assert (plain.free, plain.shared) == (3, 0)


def test_matched_tokens_are_pinned_and_let_go():
    pool = PrefixPool(pages=9, page_size=4)
    first, again = of(0, ABC), of(1, ABC)
    compute(pool, first)
    leave(pool, first)
    assert pool.match(again, 9) == again.pages.in_tree == 8
    pool.pin(again)
    assert (len(again.pages.table), pool.cached, pool.protected, pool.free) == (2, 0, 8, 7)
    pool.unpin(again)
    assert (again.pages.table, pool.cached, pool.free) == ([], 2, 9)
    pool.publish(of(2, prompt=9), 0)
    assert pool.cached == 2


@pytest.mark.parametrize("kind", [PrefixPool, NumberedPrefixPool])
def test_a_cache_is_warmed_with_the_most_recently_used_of_another(kind):
    one = PrefixPool(pages=9, page_size=4)
    for token in (1, 2, 3):
        seq = of(token, (token,) * 5)
        compute(one, seq, 5)
        leave(one, seq, 5)
    unknown = of(9, prompt=5)
    compute(one, unknown, 5)
    leave(one, unknown, 5)
    assert len(one.contents()) == 3  # those of unknown content match nothing elsewhere
    small = kind(pages=2, page_size=4)
    small.warm(iter(one.contents()))
    assert (small.cached, small.use.warm_pages, small.free) == (2, 2, 2)
    assert [len(small.find(of(7, (token,) * 5))) for token in (1, 2, 3)] == [0, 1, 1]
    assert small.contents() == one.contents()[1:]
    small.check()
    claimed = of(7, (2,) * 5)
    small.claim(claimed, small.find(claimed))
    assert (small.free, small.shared) == (1, 0)
    small.give_back(claimed, 1)
    for used in (small, one):
        with pytest.raises(ValueError, match="only an empty pool can be warmed"):
            used.warm([b"x"])
    taken = kind(pages=2, page_size=4)
    taken.take(1)
    with pytest.raises(ValueError, match="only an empty pool can be warmed"):
        taken.warm([b"x"])


def test_a_page_that_is_idle_and_not_to_be_found_is_noticed():
    pool = PrefixPool(pages=2, page_size=4)
    pool.warm([b"x"])
    pool.idle[Page(b"y", holders=0)] = None
    with pytest.raises(AssertionError, match="the cached pages are not the idle ones"):
        pool.check()
    plain = PagePool(2, 1)
    plain.shared = 1
    with pytest.raises(AssertionError, match="1 shared positions are counted that are not there"):
        plain.check()


def test_an_unknown_setting_is_refused():
    with pytest.raises(ValueError, match="share is 'some'; expected none, tenant or all"):
        PrefixPool(1, 1, "some")
    with pytest.raises(ValueError, match="pages is 0; expected at least 1"):
        PagePool(0, 1)
    with pytest.raises(ValueError, match="page_size is 0; expected at least 1"):
        PagePool(1, 0)
    assert (PrefixPool(1, 1).share, NumberedPrefixPool(1, 1).share) == ("tenant", "tenant")


def test_blocks_line_up_with_pages_or_are_refused():
    pool = PrefixPool(pages=9, page_size=4)
    # A block of 8 is two pages, of which each has its own half; two blocks of 2 are one page.
    large = Sequence(Request("a", 0, 8, 1, blocks=("x",), block_size=8), 0)
    twice = Sequence(Request("b", 0, 8, 1, blocks=("x", "x", "x", "x"), block_size=2), 1)
    keys = pool.keys(large, 2)
    assert keys[0] != keys[1]
    assert pool.keys(twice, 2) == pool.keys(Sequence(twice.request, 2), 2)
    other = Sequence(Request("c", 0, 8, 1, blocks=("x", "x", "x", "y"), block_size=2), 3)
    assert [one == two for one, two in zip(pool.keys(twice, 2), pool.keys(other, 2), strict=True)] == [True, False]
    with pytest.raises(ValueError, match="blocks of 3 tokens do not line up with pages of 4"):
        pool.keys(Sequence(Request("d", 0, 6, 1, blocks=(1, 2), block_size=3), 4), 1)


def test_every_change_and_every_eviction_is_counted():
    pool = PrefixPool(pages=4, page_size=4)
    for token in (1, 2):
        seq = of(token, (token,) * 9)
        compute(pool, seq)
        leave(pool, seq)
        # Two pages enter at once: one change. The second sequence takes three pages: one of the first goes.
        assert pool.changes == (1, 3)[token - 1]
    assert pool.use.evictions == 1
    pool.take(3)
    assert (pool.changes, pool.use.evictions) == (5, 3)


def test_the_answer_that_a_session_repeats_is_content_too():
    # A prompt of 6 and 3 tokens of the answer, in pages of 4: two full pages are found by the next turn.
    pool = PrefixPool(pages=9, page_size=4)
    first = Sequence(Request("0", 0, 6, 4, "a", tokens=ABC[:9], spoken=3), 0)
    pool.take(3)
    pool.keep(first, 2)
    assert pool.find(of(1, ABC)) == first.pages.table


def test_a_key_from_content_has_sixteen_bytes_however_long_the_prefix():
    pool = PrefixPool(pages=9, page_size=1)
    assert [len(key) for key in pool.keys(of(0, ABC), 9)] == [16] * 9


def test_which_of_the_last_pages_of_a_sequence_others_hold_and_find():
    # Two pages of `one` are in the cache, of which `other` has found the first.
    pool = PrefixPool(pages=9, page_size=4)
    one, other = of(0, ABC), of(1, (*ABC[:4], 0, 0, 0, 0, 0))
    compute(pool, one)
    assert [pool.others_hold(one, pages) for pages in (0, 1, 2)] == [False, False, False]
    assert compute(pool, other) == 1
    assert (pool.kept(one), pool.kept(of(2, ABC))) == (2, 0)
    assert [pool.others_hold(one, pages) for pages in (0, 1, 2)] == [False, False, True]
    found = pool.find(of(2, ABC))
    assert [pool.ahead_of(found, one, pages) for pages in (0, 1, 2)] == [found, found[:1], []]


def test_a_pool_without_a_cache_finds_nothing():
    pool, seq = PagePool(9, 4), of(0, ABC)
    assert (pool.kept(seq), pool.others_hold(seq, 1), pool.ahead_of((), seq, 1)) == (0, False, ())
    assert (pool.look_up(seq, 8), pool.in_use(pool.find(seq))) == ((None, 0), 0)


# ---------------------------------------------------------------- numbers


def test_numbers_are_taken_from_the_smallest_and_bound_in_the_order_of_positions():
    pool = NumberedPool(pages=5, page_size=4)
    a, b = of(0), of(1)
    pool.take(2)
    assert pool.table(a, 8) == array("i", [1, 0])
    pool.take(1)
    assert pool.table(b, 4).tolist() == [2]
    assert pool.table(b, 1).typecode == "i"
    assert pool.table(a, 5) is pool.table(a, 8)
    pool.check_numbers()
    pool.give_back(a, 2)
    assert [(seq, table.tolist()) for seq, table in pool.numbers.released] == [(a, [1, 0])]
    pool.take(1)
    assert pool.table(b, 5).tolist() == [2, 0]
    pool.give_back(b, 2)
    pool.check()


def test_unbound_pages_return_with_the_sequence_they_were_taken_for():
    pool = NumberedPool(pages=5, page_size=4)
    a = of(0)
    pool.take(3)
    assert pool.table(a, 4).tolist() == [2]
    pool.give_back(a, 3)
    assert (len(pool.numbers.free), pool.numbers.taken) == (5, [])
    pool.check()
    numbers = Numbers(3)
    numbers.take(2)
    numbers.table(a, 2)
    with pytest.raises(AssertionError, match="gave back fewer pages than are bound"):
        numbers.give_back(a, 1)


def test_a_sequence_without_a_table_gives_unbound_pages_back():
    numbers = Numbers(3)
    numbers.take(2)
    numbers.give_back(of(0), 2)
    assert (sorted(numbers.free), numbers.taken, len(numbers.released)) == ([0, 1, 2], [], 1)


def test_a_lost_number_is_noticed():
    pool = NumberedPool(pages=3, page_size=4)
    pool.numbers.free.pop()
    with pytest.raises(AssertionError, match="a page is lost, or owned twice"):
        pool.check_numbers()
    other = NumberedPool(pages=3, page_size=4)
    other.free = 2
    with pytest.raises(AssertionError, match="numbers and counts disagree"):
        other.check_numbers()
    cached = NumberedPrefixPool(pages=3, page_size=4)
    cached.warm([b"x"])
    cached.free = 2
    with pytest.raises(AssertionError, match="numbers and counts disagree"):
        cached.check_numbers()


def test_a_page_found_has_one_number_in_both_tables():
    pool = NumberedPrefixPool(pages=9, page_size=4)
    one, other = of(0, ABC), of(1, ABC)
    pool.take(3)
    table = pool.table(one, 10).tolist()
    pool.keep(one, 2)
    pool.claim(other, pool.find(other))
    assert pool.numbers.tables[other].typecode == "i"
    assert pool.numbers.tables[other].tolist() == table[:2]
    pool.take(1)
    mine = pool.table(other, 10).tolist()
    assert mine[:2] == table[:2]
    assert mine[2] not in table
    pool.check_numbers()
    pool.withdraw(one, 0)
    pool.give_back(one, 3)
    pool.check_numbers()
    assert sorted([*pool.numbers.free, *mine]) == list(range(9))
    pool.give_back(other, 3)
    pool.check()
    assert pool.cached == 2
    pool.take(8)  # one of the cached pages is evicted, and its number taken
    assert (pool.cached, len(pool.number)) == (1, 1)
    assert len(pool.numbers.taken) == 8
    pool.check_numbers()


def test_a_withdrawn_page_keeps_its_number_in_the_table():
    pool = NumberedPrefixPool(pages=9, page_size=4)
    seq = of(0, ABC)
    pool.take(3)
    table = pool.table(seq, 10).tolist()
    pool.keep(seq, 2)
    pool.withdraw(seq, 1)
    assert len(pool.number) == 1
    assert pool.table(seq, 10).tolist() == table
    pool.check_numbers()
    pool.give_back(seq, 3)
    pool.check()


def test_pages_that_were_reserved_are_given_back_by_their_numbers():
    pool = NumberedPool(pages=5, page_size=1)
    scheduler = Scheduler(Policy(FirstComeFirstServed(), Reserve()), pool, EngineConfig(slots=1, token_budget=9))
    run([Request("a", 0, 2, 2)], scheduler)
    assert [(seq.request.id, len(table)) for seq, table in pool.numbers.released] == [("a", 0)]
    pool.check()
