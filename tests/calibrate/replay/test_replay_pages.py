"""Numbered pages: no page is lost, none is owned twice, a shared one is free with its last holder."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import event, given
from replay_scenarios import Scenario, scenarios

from calibrate.decoder.engine.synthetic import FakeExecutor
from calibrate.replay.clock import FakeClock
from calibrate.replay.driver import Driver
from sim.cost.forms import Unit
from sim.memory.numbered import NumberedPool, NumberedPrefixPool
from sim.request import Request
from sim.sequence import Sequence
from sim.service.clients import OpenLoop


class Device(FakeExecutor):
    """Writes every position's owner into the page that holds it, and checks what it would read."""

    def __init__(self, cost, clock, scheduler):
        super().__init__(cost, clock)
        self.scheduler = scheduler
        self.pool = scheduler.pool
        self.written = {}
        self.tables = []

    def launch(self, batch):
        self.pool.check_numbers()
        rows = [(seq, start, count, self.pool.table(seq, start + count)) for seq, start, count in
                self.scheduler.assignments(batch)]  # fmt: skip
        self.pool.check_numbers()
        if self.scheduler.state.on_demand:
            assert not self.pool.numbers.taken, "a page was taken for nobody"
        for seq, start, count, pages in rows:
            for position in range(start, start + count):
                place = pages[position // self.pool.page_size], position % self.pool.page_size
                self.written[place] = said(seq, position)
        for seq, start, count, pages in rows:
            if not self.scheduler.config.swap:
                for position in range(start + count):
                    place = pages[position // self.pool.page_size], position % self.pool.page_size
                    assert self.written[place] == said(seq, position), (seq.request.id, position)
        self.tables.append({seq.request.id: pages.tolist() for seq, _, _, pages in rows})
        return super().launch(batch)


def said(seq, position):
    """What must be in a position: its token if that is known, else whose it is."""
    request = seq.request
    if request.tokens is not None and position < request.prompt:
        return request.tokens[: position + 1]
    return request.id, position


def run(scenario):
    clock = FakeClock()
    scheduler = scenario.scheduler(numbered=True)
    device = Device(scenario.cost, clock, scheduler)
    Driver(scenario.clients(), scheduler, device, clock).run()
    return device


@given(scenarios(admissions=("optimistic", "optimistic", "ratio", "reserve")))
def test_every_position_read_is_the_one_written_and_every_page_is_in_one_place(scenario):
    device = run(scenario)
    event(f"share {scenario.share}, depth {scenario.modes.get('depth', 1)}")
    assert device.pool.free == device.pool.pages
    device.pool.check()


def sequence(index, tokens):
    return Sequence(Request(str(index), 0, len(tokens), 1, tokens=tuple(tokens)), index)


def test_a_shared_page_is_free_with_its_last_holder():
    # Two prompts of nine tokens begin with the same two pages of four; the second finds them.
    pool = NumberedPrefixPool(6, 4)
    first, second = sequence(0, range(9)), sequence(1, [*range(8), 99])
    pool.take(3)
    pool.keep(first, 2)
    mine = pool.table(first, 9).tolist()
    assert len(set(mine)) == 3
    pool.claim(second, pool.find(second))
    pool.take(1)
    theirs = pool.table(second, 9).tolist()
    assert theirs[:2] == mine[:2]
    assert theirs[2] != mine[2]
    assert pool.free == 2
    pool.give_back(first, 3)
    pool.check_numbers()
    assert pool.free == 3
    assert not set(theirs) & set(pool.numbers.free)
    pool.give_back(second, 3)
    assert pool.free == 6
    pool.check()


def test_a_page_that_a_withdrawn_step_would_have_filled_is_not_found():
    pool = NumberedPrefixPool(4, 4)
    first, second = sequence(0, range(9)), sequence(1, [*range(8), 99])
    pool.take(3)
    pool.keep(first, 2)
    pool.withdraw(first, 1)
    assert len(pool.find(second)) == 1
    pool.check_numbers()
    pool.give_back(first, 3)
    assert (pool.free, pool.cached) == (4, 1)
    pool.check()


def test_pages_that_are_taken_again_are_the_ones_given_back():
    pool = NumberedPool(2, 4)
    one, other = sequence(0, [1]), sequence(1, [2])
    pool.take(1)
    pool.take(1)
    assert sorted([*pool.table(one, 1), *pool.table(other, 1)]) == [0, 1]
    (freed,) = pool.table(one, 1)
    pool.give_back(one, 1)
    assert pool.numbers.released == [(one, array("i", [freed]))]
    third = sequence(2, [3])
    pool.take(1)
    assert pool.table(third, 1).tolist() == [freed]


def test_a_page_counted_but_not_bound_goes_back_too():
    """Whoever is preempted by the plan that gave it a page never had a row."""
    pool = NumberedPool(3, 4)
    seq = sequence(0, [1])
    pool.take(1)
    pool.table(seq, 4)
    pool.take(1)
    pool.give_back(seq, 2)
    pool.check()


def test_the_check_finds_a_page_owned_twice():
    pool = NumberedPool(3, 4)
    pool.take(1)
    (page,) = pool.table(sequence(0, [1]), 4)
    pool.numbers.free[0] = page
    with pytest.raises(AssertionError, match="owned twice"):
        pool.check_numbers()


def test_pages_of_a_prompt_seen_before_are_read_not_written():
    tokens = tuple(range(17))
    asked = [Request(str(n), 100 * n, 17, 1, tokens=tokens) for n in range(2)]
    story = Scenario(
        asked, "fcfs", "optimistic", "last_admitted", "tenant", 8, 16, {"slots": 1, "token_budget": 64}, Unit(1)
    )
    assert isinstance(story.clients(), OpenLoop)
    device = run(story)
    (first, second) = (table[name] for table, name in zip(device.tables, "01", strict=True))
    assert first[0] == second[0]
