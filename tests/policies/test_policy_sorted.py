"""The orders that sort one queue before every admission pass, and what they read in the prefix cache."""

from random import Random

import pytest
from radix_stories import sequence, serve

from policies.registry import build
from sim.memory.prefix import PrefixPool
from sim.memory.radix import RadixPool


def queue(name, waiting, options=None, processed=0):
    """The waiting sequences as the order sorts them, by their numbers."""
    order = build(name, options or {}, seed=3)
    for seq in waiting:
        order.push(seq, 0, 0)
    for listener in order.listeners:
        listener.processed(processed)
    order.arrange(0, 0)
    assert order.head(0, 0) is next(iter(order))
    return [seq.index for seq in order]


def cache_with(*prompts):
    """A radix cache in which these prompts have been computed."""
    pool = RadixPool(10_000, 1)
    for place, prompt in enumerate(prompts):
        serve(pool, sequence(1000 + place, prompt))
    return pool


def head(number, length):
    """The first tokens of a family of prompts, like those of no other one."""
    return [10_000 * number + place for place in range(length)]


def test_requeue_has_a_preempted_request_wait_for_all_others():
    order = build("requeue", {}, seed=0)
    first, second, third = (sequence(index, [1]) for index in range(3))
    for seq in (first, second):
        order.push(seq, 0, 0)
    order.pop(first)
    order.push(third, 0, 0)
    order.push_back(first, 0, 0)
    order.arrange(0, 0)
    assert [seq.index for seq in order] == [1, 2, 0]


def test_requeue_by_priority_keeps_the_order_of_joining_within_one():
    waiting = [sequence(index, [1], priority=priority) for index, priority in enumerate([2, 0, 1, 0, 2])]
    assert queue("requeue", waiting, {"by_priority": True}) == [1, 3, 2, 0, 4]
    assert queue("requeue", waiting) == [0, 1, 2, 3, 4]


def test_lof_takes_the_largest_declared_output():
    waiting = [sequence(index, [1], declared=limit) for index, limit in enumerate([10, 30, 10, 20])]
    assert queue("lof", waiting) == [1, 3, 0, 2]
    waiting = [sequence(index, [1], declared=limit, priority=limit == 30) for index, limit in enumerate([10, 30, 20])]
    assert queue("lof", waiting, {"by_priority": True}) == [2, 0, 1]


def test_a_shuffle_is_pythons_with_a_stream_of_its_own():
    waiting = [sequence(index, [1]) for index in range(9)]
    expected = list(range(9))
    Random("3/shuffle").shuffle(expected)
    assert queue("shuffle", waiting) == expected


def test_lpm_takes_the_most_cached_tokens():
    pool = cache_with(head(1, 90), head(2, 50))
    prompts = [head(3, 5), [*head(2, 50), 7], [*head(1, 90), 7], [*head(1, 60), 7]]
    assert queue("lpm", [sequence(index, each, pool=pool) for index, each in enumerate(prompts)]) == [2, 3, 1, 0]


def test_lpm_does_the_same_with_a_cache_of_blocks():
    pool = PrefixPool(1000, 10)
    for index, length in ((0, 80), (1, 50)):
        seq = sequence(index, head(index, length))
        pool.take(length // 10)
        pool.keep(seq, length // 10)
    waiting = [
        sequence(2 + place, head(place, 45), pool=pool, tenant=tenant) for place, tenant in ((1, "a"), (0, "b"))
    ]
    longest = sequence(4, head(0, 79), pool=pool)
    assert queue("lpm", [*waiting, longest]) == [4, 3, 2], "4 has 70 tokens, 3 has 40; the other tenant has none"


@pytest.mark.parametrize(("name", "expected"), [("lpm", [0, 3, 1, 2]), ("shortest_prefill_first", [3, 0, 2, 1])])
def test_sharers_of_a_prefix_wait_for_the_first_of_them(name, expected):
    """0, 1 and 2 begin with the same 32 tokens, which are not cached; 31 would not be enough."""
    prompts = [head(1, 32) + head(place, 8 - place) for place in (2, 3, 4)] + [[*head(1, 31), 9]]
    waiting = [sequence(index, each, pool=cache_with()) for index, each in enumerate(prompts)]
    assert queue(name, waiting) == expected


def test_who_has_found_more_than_a_little_is_not_put_off():
    prompts = [head(1, 40) + head(place, 5) for place in (2, 3)] + [head(5, 3)]
    for cached, expected in ((33, [0, 1, 2]), (32, [0, 2, 1])):
        pool = cache_with(head(1, cached))
        assert queue("lpm", [sequence(index, each, pool=pool) for index, each in enumerate(prompts)]) == expected


@pytest.mark.parametrize(
    ("name", "looks"), [("lpm", False), ("prefill_hrrn", False), ("shortest_prefill_first", True)]
)
def test_a_long_queue_stays_as_it_is(name, looks):
    pool = cache_with(head(1, 90))
    few = [sequence(index, head(100 + index, 9), pool=pool) for index in range(128)]
    last = sequence(128, [*head(1, 90), 7], pool=pool)
    assert (queue(name, [*few, last])[0] == 128) is looks
    assert queue(name, [*few[:127], last], processed=9)[0] == 128


def test_prefill_hrrn_by_tokens_processed_for_each_to_compute():
    """0 and 1 join before 100 tokens are processed, 2 after them: 100 / 50, 100 / 20 and 0 / 5; then 160 / 50, ..."""
    order = build("prefill_hrrn", {}, seed=0)
    pool = cache_with(head(2, 60))
    for index, prompt in enumerate([head(1, 50), head(2, 60) + head(3, 20)]):
        order.push(sequence(index, prompt, pool=pool), 0, 0)
    order.processed(100)
    order.push(sequence(2, head(4, 5), pool=pool), 0, 0)
    order.arrange(0, 0)
    assert [seq.index for seq in order] == [1, 0, 2]
    order.processed(19)
    order.arrange(0, 0)
    assert [seq.index for seq in order] == [1, 2, 0], "119 / 20, 19 / 5, 119 / 50"


def test_shortest_prefill_first_by_what_is_not_cached():
    pool = cache_with(head(1, 90))
    prompts = [head(2, 30), head(1, 90) + head(3, 20), head(4, 20), head(5, 25)]
    assert queue("shortest_prefill_first", [sequence(i, each, pool=pool) for i, each in enumerate(prompts)]) == [
        1,
        2,
        3,
        0,
    ]


def test_its_chunk_leaves_room_for_shorter_prompts():
    """Of a budget of 100 with pages of 8: 10 and 20 tokens take 16 and 24; then 40 would leave no page."""
    order = build("shortest_prefill_first", {}, seed=0)
    pool = cache_with()
    for index, length in enumerate([20, 10, 60]):
        order.push(sequence(index, head(index, length), pool=pool), 0, 0)
    order.arrange(0, 0)
    cut = sequence(9, head(9, 500), pool=pool)
    assert order.chunk_limit(cut, 100, 8) == 56, "60 left, in whole pages"
    assert order.chunk_limit(cut, 15, 8) == 15
    assert order.chunk_limit(sequence(9, head(9, 15), pool=pool), 100, 8) == 80, "only 10 is shorter than 15"


def test_dfs_weight_takes_the_largest_family_and_its_branches_first():
    """One waits with a, two with b; of these one with c below b, which goes before the other."""
    a, b, c = head(1, 8), head(2, 8), head(3, 8)
    pool = cache_with(a, b + c)
    waiting = [sequence(0, [5, 6], pool=pool), sequence(1, [*a, 7], pool=pool)]
    waiting += [sequence(2, [*b, 7], pool=pool), sequence(3, [*b, *c, 7], pool=pool)]
    assert queue("dfs_weight", waiting) == [3, 2, 1, 0]


def test_dfs_weight_goes_by_creation_among_families_of_equal_weight():
    pool = cache_with(head(2, 8), head(1, 8))
    waiting = [sequence(index, [*head(number, 8), 7], pool=pool) for index, number in enumerate([1, 2, 1, 2])]
    assert queue("dfs_weight", waiting) == [1, 3, 0, 2]
