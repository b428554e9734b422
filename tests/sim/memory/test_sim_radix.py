"""The radix cache: what is found, shared, freed twice and evicted; and the same as a tree without any index."""

from dataclasses import replace

import pytest
from hypothesis import event, given
from naive_radix import NaiveRadix
from radix_stories import sequence, serve, stories
from sim_stories import run, values

from policies.fcfs import FirstComeFirstServed
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.pool import PagePool
from sim.memory.prefix import PrefixPool
from sim.memory.radix import RadixPool
from sim.policy.base import Policy
from sim.request import Request
from sim.sequence import Sequence


def test_what_one_request_leaves_the_next_one_finds():
    pool = RadixPool(100, 1)
    assert serve(pool, sequence(0, [1, 2, 3, 4])) == 0
    assert (pool.avail, pool.evictable, pool.protected) == (96, 4, 0)
    assert serve(pool, sequence(1, [1, 2, 9])) == 2
    assert (pool.avail, pool.evictable) == (95, 5)
    assert serve(pool, sequence(2, [1, 2, 3, 4])) == 3, "one token is left to compute"
    pool.check()


def test_a_prompt_is_found_once_the_step_that_computes_it_has_been_planned():
    # Of the same 9 tokens b, which comes with a, finds none, and c, one step later, all but the one to compute.
    tokens = tuple(range(9))
    requests = [Request(name, arrival, 9, 5, tokens=tokens) for name, arrival in (("a", 0), ("b", 0), ("c", 1))]
    policy = Policy(FirstComeFirstServed())
    scheduler = Scheduler(policy, RadixPool(100, 1), EngineConfig(slots=3, token_budget=100))
    assert values(run(requests, scheduler), "admitted") == [("a", 0), ("b", 0), ("c", 8)]


def test_a_prompt_is_not_found_while_the_step_that_computes_it_is_in_flight():
    # Two steps in flight, and 9 tokens each: b enters with step 1, planned before step 0 has ended, c with step 2.
    tokens = tuple(range(9))
    requests = [Request(name, arrival, 9, 5, tokens=tokens) for name, arrival in (("a", 0), ("b", 0), ("c", 1))]
    policy = Policy(FirstComeFirstServed())
    scheduler = Scheduler(policy, RadixPool(100, 1), EngineConfig(slots=3, token_budget=9, depth=2))
    assert values(run(requests, scheduler), "admitted") == [("a", 0), ("b", 0), ("c", 8)]


def test_the_part_of_a_prompt_is_found_that_earlier_steps_have_computed():
    # 4 tokens of a a step. While the second 4 are planned b finds the first 4.
    tokens = tuple(range(12))
    requests = [Request(name, arrival, 12, 2, tokens=tokens) for name, arrival in (("a", 0), ("b", 1))]
    policy = Policy(FirstComeFirstServed())
    settings = EngineConfig(slots=2, token_budget=4, chunk_limit=2)
    scheduler = Scheduler(policy, RadixPool(100, 1), settings)
    assert values(run(requests, scheduler), "admitted") == [("a", 0), ("b", 4)]


def test_only_whole_pages_are_shared():
    pool = RadixPool(25, 4)
    serve(pool, sequence(0, range(10)))
    assert (pool.avail, pool.evictable) == (92, 8), "the last two tokens fill no page"
    assert serve(pool, sequence(1, [*range(7), 99, 100])) == 4
    assert serve(pool, sequence(2, range(10))) == 8
    pool.check()


def test_a_preempted_request_of_unknown_content_finds_its_own_pages():
    pool = RadixPool(100, 1)
    seq = Sequence(Request("0", 0, 8, 4), 0)
    serve(pool, seq)
    seq.known += 2
    assert pool.match(seq, 9) == 8
    assert pool.match(Sequence(Request("1", 0, 8, 4), 1), 7) == 0


@pytest.mark.parametrize("page", [1, 3, 16])
def test_blocks_need_not_line_up_with_pages(page):
    pool = RadixPool(100, page, "all")
    first = Request("0", 0, 47, 1, blocks=("x", "y", "x"), block_size=20)
    second = Request("1", 0, 55, 1, blocks=("x", "y", "z"), block_size=20)
    serve(pool, Sequence(first, 0))
    assert serve(pool, Sequence(second, 1)) == 40 // page * page


def test_an_answer_that_a_later_turn_repeats_is_found():
    pool = RadixPool(100, 1)
    seq = sequence(0, [1, 2, 3], answer=[10, 11, 12])
    seq.known += 2
    serve(pool, seq)
    assert serve(pool, sequence(1, [1, 2, 3, 10, 11, 12, 4])) == 5, "the last answer token was never computed"


def test_two_that_compute_the_same_keep_it_once():
    pool = RadixPool(100, 1)
    both = [sequence(index, [1, 2, 3, 4]) for index in range(2)]
    for seq in both:
        assert pool.match(seq, 3) == 0
        pool.pin(seq)
        pool.take(4)
    assert pool.avail == 92
    for seq in both:
        pool.publish(seq, 4)
    assert (pool.avail, pool.protected, pool.shared) == (96, 4, 4)
    for seq in both:
        pool.give_back(seq, 4)
    pool.check()


def test_a_retracted_request_keeps_what_it_published():
    pool = RadixPool(100, 1)
    seq = sequence(0, [1, 2, 3, 4, 5, 6])
    pool.match(seq, 5)
    pool.pin(seq)
    pool.take(6)
    pool.publish(seq, 2)
    pool.give_back(seq, 6)
    assert (pool.avail, pool.evictable) == (98, 2)
    pool.check()


def left_of(pool, heads):
    """Which of these two-token prefixes are still found, without using them."""
    found = []
    for head in heads:
        seq = sequence(99, [head, head, 0])
        found.append(len(pool.find(seq)) == 2)
    return "".join(str(head) for head, there in zip(heads, found, strict=True) if there)


@pytest.mark.parametrize(
    ("eviction", "left"),
    [("lru", "13"), ("mru", "23"), ("fifo", "23"), ("filo", "12"), ("lfu", "13"), ("slru", "13"), ("priority", "13")],
)
def test_which_leaf_goes_first(eviction, left):
    """Created in the order 1, 2, 3; then 1 is published again. 2 is the least urgent."""
    pool = RadixPool(7, 1, eviction=eviction)
    for index, head, priority in ((0, 1, 0), (1, 2, 5), (2, 3, 0), (3, 1, 0)):
        serve(pool, sequence(index, [head, head, 0], priority=priority), computed=2)
    assert (pool.avail, pool.evictable) == (1, 6)
    assert pool.make_room(2) == 2
    assert left_of(pool, [1, 2, 3]) == left


def test_leaves_go_whole_and_before_their_parents():
    pool = RadixPool(10, 1)
    serve(pool, sequence(0, [1, 2, 3, 4]))
    serve(pool, sequence(1, [1, 2, 7]))
    assert pool.make_room(6) == 2, "1 2 is left: it is the parent of both; 3 4 is older than 7"
    assert pool.make_room(8) == 1
    assert pool.make_room(9) == 2
    pool.check()


def test_a_look_up_counts_as_a_use():
    pool = RadixPool(4, 1)
    for head in (1, 2):
        serve(pool, sequence(head, [head, head]))
    pool.touch(sequence(3, [1, 1, 1]))
    pool.make_room(1)
    assert left_of(pool, [1, 2]) == "1"


def test_what_is_held_is_not_evicted():
    pool = RadixPool(6, 1)
    serve(pool, sequence(0, [1, 2, 3]))
    serve(pool, sequence(1, [7, 8, 9]))
    held = sequence(2, [1, 2, 5])
    assert pool.match(held, 2) == 2
    pool.pin(held)
    assert pool.make_room(100) == 4
    assert (pool.avail, pool.evictable, pool.protected) == (4, 0, 2)
    pool.unpin(held)
    pool.check()


def test_a_prompt_is_kept_longer_than_its_answer_where_priority_counts():
    pool = RadixPool(20, 1, eviction="priority")
    seq = sequence(0, [1, 2], answer=[10, 11, 12])
    seq.known += 2
    serve(pool, seq)
    serve(pool, sequence(1, [7, 7]))
    assert (pool.avail, pool.make_room(15), pool.make_room(17)) == (14, 2, 2)
    assert left_of(pool, [7]) == "", "gone after the answer, although used later than the prompt"
    assert len(pool.find(sequence(2, [1, 2, 3]))) == 2


def test_only_a_whole_request_of_a_tenant_is_found_by_its_domain():
    tokens = list(range(9))
    for share, other, found in (("tenant", "b", 0), ("tenant", "a", 8), ("all", "b", 8), ("none", "a", 0)):
        pool = RadixPool(100, 1, share)
        serve(pool, sequence(0, tokens))
        assert serve(pool, sequence(1, tokens, tenant=other)) == found
        assert serve(pool, Sequence(replace(sequence(2, tokens).request, adapter="x"), 2)) == 0


@pytest.mark.parametrize(("share", "eviction"), [("some", "lru"), ("all", "rlu")])
def test_an_unknown_setting_is_refused(share, eviction):
    with pytest.raises(ValueError, match="expected"):
        RadixPool(1, 1, share, eviction)


@given(stories())
def test_the_same_as_without_an_index(story):
    """Every count, every look-up and every eviction is that of the naive tree."""
    page, pages, eviction, happens = story
    pool, naive = RadixPool(pages, page, "all", eviction), NaiveRadix(pages * page, page, eviction)
    computed, evicted = {}, 0
    for action, seq, amount in happens:
        tokens = (*seq.request.tokens, *((seq.index, place) for place in range(10)))
        running = seq.index in computed
        if action == "touch" and not running:
            pool.touch(seq)
            naive.look_up(tokens[: seq.known])
        elif action == "start" and not running:
            found = pool.match(seq, seq.known - 1)
            assert found == naive.look_up(tokens[: seq.known - 1])
            pool.pin(seq)
            naive.pin(seq.index, tokens[:found])
            computed[seq.index] = found
        elif action == "compute" and running:
            seq.known += computed[seq.index] == seq.known
            to = min(computed[seq.index] + amount, seq.known, seq.request.prompt + 9)
            needed = pool.pages_for(to) - pool.pages_for(computed[seq.index])
            gone = pool.make_room(needed * page)
            assert gone == naive.evict_until(needed * page)
            evicted += gone
            if pool.avail >= needed * page:
                pool.take(needed)
                naive.avail -= needed * page
                computed[seq.index] = to
                pool.publish(seq, to)
                naive.publish(seq.index, tokens[:to], seq.request.prompt, -seq.request.priority)
        elif action in ("finish", "drop") and running:
            done = computed.pop(seq.index)
            if action == "finish":
                pool.publish(seq, done)
                naive.publish(seq.index, tokens[:done], seq.request.prompt, -seq.request.priority)
            pool.give_back(seq, pool.pages_for(done))
            naive.leave(seq.index, pool.pages_for(done) * page)
        elif action == "evict":
            gone = pool.make_room(pool.avail + amount)
            assert gone == naive.evict_until(naive.avail + amount)
            evicted += gone
        assert (pool.avail, pool.evictable, pool.protected) == (naive.avail, naive.evictable, naive.protected)
        assert pool.free * page == pool.avail + pool.evictable
    event(f"{eviction}, evictions: {evicted > 0}")
    for seq in {seq.index: seq for _, seq, _ in happens}.values():
        if seq.index in computed:
            pool.give_back(seq, pool.pages_for(computed[seq.index]))
    pool.check()


@given(stories())
def test_how_long_a_found_prefix_lasts(story):
    """`takes_until_lost` pages can be taken one by one before a part of it is gone, and not one more."""
    page, pages, eviction, _ = story
    pool = RadixPool(pages, page, "all", eviction)
    seen = {seq.index: seq for _, seq, _ in story[3]}.values()
    for seq in seen:
        if pool.pages_for(seq.known) <= pages:
            serve(pool, seq)
    for seq in seen:
        found = pool.find(seq)
        if not len(found):
            continue
        lasts = pool.takes_until_lost(found)
        event(f"lasts: {lasts > 0}")
        taken = 0
        while len(pool.find(seq)) == len(found) and pool.can_take(1):
            pool.take(1)
            taken += 1
        assert taken == lasts + 1
        return


@pytest.mark.parametrize("kind", [PagePool, PrefixPool, RadixPool])
@given(stories())
def test_every_token_of_the_memory_is_in_one_place(kind, story):
    """Free, cached and idle, cached and held, or a sequence's own: the same interface for every pool."""
    page, pages, _, happens = story
    pool, computed, inside = kind(pages, page), {}, {}
    for action, seq, amount in happens:
        running = seq.index in computed
        if action == "start" and not running:
            computed[seq.index] = inside[seq.index] = pool.match(seq, seq.known - 1)
            pool.pin(seq)
        elif action == "compute" and running:
            seq.known += computed[seq.index] == seq.known
            to = min(computed[seq.index] + amount, seq.known)
            needed = pool.pages_for(to) - pool.pages_for(computed[seq.index])
            pool.make_room(needed * page)
            if pool.avail >= needed * page:
                pool.take(needed)
                pool.publish(seq, to)
                computed[seq.index] = to
                inside[seq.index] = 0 if kind is PagePool else to // page * page
        elif action in ("finish", "drop") and running:
            pool.give_back(seq, pool.pages_for(computed.pop(seq.index)))
        elif action == "evict":
            before = pool.avail
            assert pool.make_room(pool.avail + amount) == pool.avail - before
        held = sum(pool.pages_for(done) * page - inside[index] for index, done in computed.items())
        assert pool.avail + pool.evictable + pool.protected + held == pages * page
        assert min(pool.avail, pool.evictable, pool.protected) >= 0
    event(f"found: {any(inside.values())}")
    for seq in {seq.index: seq for _, seq, _ in happens}.values():
        if seq.index in computed:
            pool.give_back(seq, pool.pages_for(computed[seq.index]))
    pool.check()
