"""The scheduler's batches as steps of an engine with pages: the same log, and nothing a real engine could not run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from replay_scenarios import scenarios

from calibrate.decoder.engine.protocol import CannotRun, Row, Step
from calibrate.decoder.engine.synthetic import SyntheticEngine
from calibrate.replay.batch_adapter import BatchAdapter
from calibrate.replay.clock import FakeClock
from calibrate.replay.driver import Driver
from calibrate.replay.prompts import prompts
from sim.accounting.metrics import summary
from sim.cost.forms import Affine, Roofline, Unit
from sim.request import Request
from sim.service.cluster import simulate

ROOFLINE = Roofline(weight_pass=10, per_token=0.9, per_context_token=0.05, per_chunk_work=0.02, per_sequence=0.3)


class Pages(SyntheticEngine):
    """Keeps in every page what its positions hold, moves it with the pages, and reads it back for every row."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.memory, self.host, self.prompts = {}, {}, {}

    def begin(self, request, prompt):
        super().begin(request, prompt)
        self.prompts[request] = tuple(prompt)

    def said(self, request, position):
        prompt = self.prompts[request]
        return prompt[: position + 1] if position < len(prompt) else (prompt, request, position)

    def launch(self, step):
        for device, host in step.swap_out:
            self.host[host] = dict(self.memory.get(device, {}))
        for host, device in step.swap_in:
            self.memory[device] = dict(self.host[host])
        for row in step.rows:
            for position in range(row.start, row.start + row.count):
                page, place = row.pages[position // self.page_size], position % self.page_size
                self.memory.setdefault(page, {})[place] = self.said(row.request, position)
        for row in step.rows:
            for position in range(row.start + row.count):
                page, place = row.pages[position // self.page_size], position % self.page_size
                assert self.memory[page][place] == self.said(row.request, position)
        return super().launch(step)


def replayed(scenario, make=SyntheticEngine, **settings):
    clock = FakeClock()
    scheduler = scenario.scheduler(numbered=True)
    pool = scheduler.pool
    engine = make(scenario.cost, clock, pool.pages, pool.page_size, host_pages=10**4, **settings)
    executor = BatchAdapter(scheduler, engine, prompts(3, seed=1))
    log = Driver(scenario.clients(), scheduler, executor, clock).run()
    executor.close()
    assert not engine.known
    assert len(executor.host_free) == 10**4
    return log


@given(scenarios(admissions=("optimistic", "optimistic", "ratio", "reserve"), spares=(0, 0.1, 0.5, 3)))
def test_every_row_reads_what_was_written_for_it_and_the_log_is_the_simulators(scenario):
    """Swapped pages and shared ones included: the engine here really moves and reads what is in its pages."""
    scenario = replace(scenario, cost=ROOFLINE)
    log = replayed(scenario, Pages)
    found = summary(log)
    event(f"preempts: {found['preemptions'] > 0}, swaps: {scenario.modes['swap']}")
    event(f"hits: {found['tokens']['cached'] > 0}")
    assert log.sha256() == simulate(scenario.clients(), scenario.scheduler(), ROOFLINE, macro=False).sha256()


def test_prompts_that_share_blocks_share_tokens():
    tokens = prompts(1000, seed=5)
    one = tokens(Request("1", 0, 20, 1, blocks=(7, "x"), block_size=16))
    two = tokens(Request("2", 0, 32, 1, blocks=(7, 8), block_size=16))
    assert one[:16] == two[:16]
    assert len(one) == 20
    assert one[16:] != two[16:20]
    assert tokens(Request("3", 0, 50, 1)) != tokens(Request("4", 0, 50, 1))
    assert tokens(Request("3", 0, 50, 1)) == prompts(1000, seed=5)(Request("3", 0, 50, 1))
    assert tokens(Request("3", 0, 50, 1)) != prompts(1000, seed=6)(Request("3", 0, 50, 1))
    assert tokens(Request("5", 0, 2, 1, tokens=(3, 1007))).tolist() == [3, 7]
    assert all(0 <= token < 1000 for token in one)


@pytest.fixture
def engine():
    made = SyntheticEngine(Unit(5), FakeClock(), pages=4, page_size=4, max_model_len=12)
    made.begin(0, [1] * 6)
    return made


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (Row(1, 0, 1, [0], False), "nothing is known"),
        (Row(0, 0, 7, [0, 1], False), "nothing is known"),
        (Row(0, 0, 6, [0, 1], False), "yields exactly"),
        (Row(0, 0, 6, [0], True), "too few pages"),
        (Row(0, 0, 6, [1, 1], True), "one twice"),
        (Row(0, 0, 6, [0, 4], True), "not there"),
    ],
)
def test_the_synthetic_engine_refuses_what_no_engine_could_compute(engine, row, complaint):
    with pytest.raises(ValueError, match=complaint):
        engine.launch(Step((row,)))


def test_two_rows_may_not_write_into_one_page(engine):
    engine.begin(1, [1] * 6)
    with pytest.raises(ValueError, match="another row's"):
        engine.launch(Step((Row(0, 0, 6, [0, 1], True), Row(1, 0, 6, [1, 2], True))))


def test_it_takes_the_cost_of_the_shape(engine):
    engine.cost = Affine(base=100, per_sequence=10, per_context_token=1, per_prefill_token=2)
    assert engine.collect(engine.launch(Step((Row(0, 0, 6, [0, 1], True),)))).device_ns == 112
    assert engine.collect(engine.launch(Step((Row(0, 6, 1, [0, 1], True),)))).device_ns == 116
    assert engine.clock.now() == 228


def test_noise_is_of_mean_one_and_the_same_for_the_same_seed():
    def lasts(seed):
        made = SyntheticEngine(Unit(10**6), FakeClock(), 1, 4096, noise=0.1, seed=seed)
        made.begin(0, [1])
        return [made.collect(made.launch(Step((Row(0, k, 1, [0], True),)))).device_ns for k in range(2000)]

    first = lasts(1)
    assert first == lasts(1) != lasts(2)
    # The mean of 2000 factors of standard deviation 0.1 is within five times 0.1 / sqrt(2000) of one.
    assert sum(first) / len(first) == pytest.approx(10**6, rel=5 * 0.1 / 2000**0.5)


def test_an_executor_refuses_an_engine_with_fewer_or_other_pages():
    @settings(derandomize=True, deadline=None, max_examples=1)
    @given(scenarios(admissions=("optimistic",)))
    def refused(scenario):
        scheduler = scenario.scheduler(numbered=True)
        pages, size = scheduler.pool.pages, scheduler.pool.page_size
        for engine, complaint in (
            (SyntheticEngine(Unit(1), FakeClock(), pages - 1, size), "the engine has"),
            (SyntheticEngine(Unit(1), FakeClock(), pages, size + 1), "positions"),
        ):
            with pytest.raises(CannotRun, match=complaint):
                BatchAdapter(scheduler, engine, prompts(3, 0))
        with pytest.raises(CannotRun, match="no numbers"):
            BatchAdapter(scenario.scheduler(), SyntheticEngine(Unit(1), FakeClock(), pages, size), prompts(3, 0))

    refused()
