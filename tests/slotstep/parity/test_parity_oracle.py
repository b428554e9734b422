"""The same decisions as the logged engine, in every step of every case; and what the cases would notice."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace

import pytest
from rules import Rules

from sim.engine.scheduler import Scheduler
from sim.engine.state import EngineState
from sim.memory.pool import PagePool
from sim.memory.prefix import PrefixPool
from sim.policy.base import Optimistic
from slotstep.parity.cases import Replay, replay
from slotstep.parity.parity import check, compare, read_case, read_log

CASES = (
    *("i_8req", "i_8req_async", "ii_40req_seqs2", "iii_mem", "iii_mem_cache", "iii_mem_mixed", "iii_mem_watermark"),
    *("iv_chunk64", "iv_chunk64_mem", "iv_chunk64_mem_noisl", "iv_chunk64_thr32", "iv_nochunk", "iv_thr16_mem_isl"),
    *("iv_thr16_mem_noisl", "iv_thr_adaptive", "iv_thr_single"),
    *("v_prefix", "v_prefix_evict", "v_prefix_off", "v_prefix_rand"),
    *("vi_prio_cache", "vi_prio_mem", "vi_prio_mem_budget", "vi_prio_seqs2"),
    *("vii_500", "vii_500_mem", "vii_500_mem_async", "vii_500_mem_cache", "viii_clock", "viii_clock_cache_mem"),
)


SETS = ("computed_before", "resumed", "preempted", "hit_tokens", "blocks", "sampled", "finished")


def files(data, name):
    """The case of that name and the log of it."""
    return data / "oracle" / f"{name}.case.json.gz", data / "oracle" / f"{name}.jsonl.gz"


def backwards(line):
    """A line of a log with its sets written in the opposite order."""
    sets = {key: line[key] for key in SETS if key in line}
    turned = {
        key: dict(reversed(value.items())) if isinstance(value, dict) else value[::-1] for key, value in sets.items()
    }
    return line | turned


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_decision_of_the_engine_is_ours_in_whatever_order_it_writes_a_set(data, name):
    case, log = files(data, name)
    lines, ours = list(read_log(log)), list(replay(read_case(case)))
    for written in (lines, map(backwards, lines)):
        report = compare(written, ours)
        assert report.steps
        assert (report.mismatches, report.first) == (0, None)


def test_every_decision_of_a_live_engine_is_ours(data):
    folder = data / "engine_vllm_cpu"
    report = check(folder / "parity.case.json.gz", folder / "parity.jsonl.gz")
    assert (report.steps, report.mismatches, report.first) == (1_957, 0, None)


def test_these_are_all_cases_and_all_steps(data):
    assert sorted(path.name for path in (data / "oracle").glob("*.case.json.gz")) == sorted(
        f"{name}.case.json.gz" for name in CASES
    )
    lines = [line["type"] for name in CASES for line in read_log(files(data, name)[1])]
    assert lines.count("step") == 22_908


@pytest.mark.parametrize("name", CASES)
def test_the_rules_alone_explain_the_log(data, name):
    case, log = files(data, name)
    with gzip.open(case) as file:
        report = compare(read_log(log), Rules(json.load(file)).lines())
    assert (report.mismatches, report.first) == (0, None)


# ---------------------------------------------------------------- what the cases would notice


def reconfigure(scheduler, **settings):
    scheduler.config = scheduler.state.config = replace(scheduler.config, **settings)


def each_has_the_budget_for_itself(patch, scheduler):
    def give(self, batch, seq, tokens):
        before = batch.budget
        original(self, batch, seq, tokens)
        batch.budget = before

    original = EngineState.give
    patch.setattr(EngineState, "give", give)


def running_ones_in_reverse(patch, scheduler):
    def continue_running(self, batch):
        state = self.state
        state.running = dict(reversed(state.running.items()))
        self.continue_in_order(batch)
        state.running = dict(sorted(state.running.items()))

    patch.setattr(Scheduler, "continue_running", continue_running)


def admissions_after_a_preemption(patch, scheduler):
    def continue_running(self, batch):
        original(self, batch)
        batch.preempted = False

    original = Scheduler.continue_running
    patch.setattr(Scheduler, "continue_running", continue_running)


def whole_prompts_only(patch, scheduler):
    reconfigure(scheduler, chunked=False)


def the_threshold_for_one_alone(patch, scheduler):
    patch.setattr(EngineState, "chunk_limit", lambda self: self.config.chunk_limit or self.config.token_budget)


def the_gate_for_the_chunk_only(patch, scheduler):
    given = scheduler.policy.admission
    scheduler.state.policy = replace(scheduler.policy, admission=Optimistic(whole=False, watermark=given.watermark))


def no_watermark(patch, scheduler):
    given = scheduler.policy.admission
    scheduler.state.policy = replace(scheduler.policy, admission=Optimistic(whole=given.whole))


def a_slot_for_the_next_token(patch, scheduler):
    patch.setattr(PagePool, "pages_for", lambda self, positions: positions // self.page_size + 1)


def the_first_in_running_is_the_victim(patch, scheduler):
    class First:
        def choose(self, running, *_):
            return next(iter(running.values()))

    scheduler.state.policy = replace(scheduler.policy, victim=First())


def the_preempted_to_the_end_of_the_line(patch, scheduler):
    order = scheduler.policy.order
    order.push_back = order.push


def priority_preempts_for_a_slot(patch, scheduler):
    reconfigure(scheduler, preempt_for_slot=True)
    scheduler.state.takes_slots = True


def nothing_left_to_compute(patch, scheduler):
    patch.setattr(PrefixPool, "find", lambda self, seq: found_up_to(self, seq, seq.known // self.page_size))


def found_up_to(pool, seq, pages):
    found = [next(iter(pool.known.get(key, ())), None) for key in pool.keys(seq, pages)]
    return found[: found.index(None)] if None in found else found


def pages_freed_head_first(patch, scheduler):
    def give_back(self, seq, pages):
        seq.pages.table.reverse()
        original(self, seq, pages)

    original = PrefixPool.give_back
    patch.setattr(PrefixPool, "give_back", give_back)


def results_before_the_next_plan(patch, scheduler):
    reconfigure(scheduler, depth=1)


BREAKS = {
    1: each_has_the_budget_for_itself,
    2: running_ones_in_reverse,
    3: admissions_after_a_preemption,
    4: whole_prompts_only,
    5: the_threshold_for_one_alone,
    6: the_gate_for_the_chunk_only,
    7: no_watermark,
    8: a_slot_for_the_next_token,
    9: the_first_in_running_is_the_victim,
    10: the_preempted_to_the_end_of_the_line,
    11: priority_preempts_for_a_slot,
    12: nothing_left_to_compute,
    13: pages_freed_head_first,
    14: results_before_the_next_plan,
}
SMALL = [name for name in CASES if not name.startswith("vi")] + ["vi_prio_cache", "vi_prio_mem", "vi_prio_seqs2"]


@pytest.mark.slow
@pytest.mark.parametrize("rule", BREAKS)
def test_breaking_any_rule_makes_a_case_fail(data, rule, monkeypatch):
    noticed = []
    for name in SMALL:
        with monkeypatch.context() as patch:
            if differs(*files(data, name), rule, patch):
                noticed.append(name)
    assert noticed
    assert len(noticed) < len(SMALL) or rule == 8  # not simply everything


@dataclass
class UpTo(Replay):
    """A replay that a broken rule cannot keep going for ever."""

    last: int = 0

    def next_arrivals(self):
        return None if self.step > self.last else super().next_arrivals()


def differs(case, log, rule, patch):
    """Whether a case notices that a rule is broken: by a decision, or because the scheduler's own checks do."""
    asked, lines = read_case(case), list(read_log(log))
    scheduler = asked.scheduler("case")
    BREAKS[rule](patch, scheduler)
    try:
        ours = list(UpTo(asked, scheduler, last=lines[-2]["step"] + 50).lines())
    except AssertionError:
        return True
    return compare(lines, ours).mismatches > 0


def test_a_case_left_as_it_is_is_not_noticed(data):
    for name in SMALL:
        case, log = files(data, name)
        assert not compare(read_log(log), replay(read_case(case))).mismatches
