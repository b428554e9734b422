"""The same decisions as the logged engine, in every pass of every case of SGLang; and what the cases would notice."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from policies.base.sorted_queue import SortedQueue
from sim.engine.apart import admission, decode, progress, retraction, scheduler
from sim.engine.apart.admission import Prefill
from sim.engine.apart.budget import PrefillBudget, rounded
from sim.engine.apart.counters import Gate, Members
from sim.engine.apart.ratio import NewTokenRatio
from sim.engine.apart.scheduler import ApartScheduler
from sim.memory.radix_tree import RadixTree
from slotstep.parity.parity import OF_SGLANG, check, compare, read_case, read_log
from slotstep.parity.sglang_cases import Case
from slotstep.parity.sglang_replay import Replay

CASES = (
    *("h_abort_last", "h_abort_last2", "h_clip4096", "h_cut_max_new", "h_one", "h_oom0", "h_unchunked"),
    *("s00_lof_p1_mix_prio_preempt_priority", "s01_fcfs_p16_ov_mix_retract", "s02_fcfs_p1_ov_prio_preempt_lfu"),
    *("s03_hrrn_p64_ov_mix_fifo", "s04_hrrn_p64_nocache_ov", "s05_lpm_p16_mix_filo"),
    *("s06_shortestprefillfirst_p16_mru", "s07_fcfs_p64_ov_mix_slru", "s08_dfsweight_p1_ov_retract_filo"),
    *("s09_fcfs_p1_nocache_ov_mix_prio_crowd_retract", "s10_lof_p64_ov_prio_priority", "s11_random_p1_ov"),
    *("s12_shortestprefillfirst_p1_mix_lfu", "s13_fcfs_p16_prio_preempt", "s14_dfsweight_p64_mix_retract"),
    *("s15_lpm_p16_nocache", "s16_fcfs_p1_ov_mix_retract_mru", "s17_random_p16_nocache_mix_retract"),
    *("s18_fcfs_p64_ov_prio_preempt_filo", "s19_lpm_p1_ov_crowd_slru", "s20_lof_p16_prio_preempt_mru"),
    *("s21_hrrn_p1_ov_retract", "s22_dfsweight_p16_nocache_ov", "s23_shortestprefillfirst_p16_mix_retract_lfu"),
    *("s24_lpm_p64_prio_crowd", "s25_lof_p1_nocache_ov_prio_retract", "s26_fcfs_p1_ov_prio_fifo"),
    *("s27_shortestprefillfirst_p64_ov_filo", "s28_random_p64_ov_crowd_slru", "s29_hrrn_p16_mix_lfu"),
    *("s30_fcfs_p1_ov", "s31_lpm_p16_nocache_ov_retract", "s32_shortestprefillfirst_p16_retract_fifo"),
    *("s33_dfsweight_p16_ov_slru", "s34_lof_p64_ov_mix_prio_slru", "s35_shortestprefillfirst_p1"),
    *("s36_lof_p1_mix_retract", "s37_fcfs_p16_prio_priority", "s38_lpm_p16_crowd_lfu"),
    *("s39_lof_p64_ov_prio_fifo", "s40_lof_p64_ov_prio_preempt_lfu", "s41_hrrn_p16_mru"),
)
QUICK = CASES[::3]


def files(data, name):
    """The case of that name and the log of it."""
    return data / "oracle_sglang" / f"{name}.case.json.gz", data / "oracle_sglang" / f"{name}.jsonl.gz"


def agrees(data, name):
    report = check(*files(data, name))
    assert report.steps
    assert (report.mismatches, report.first) == (0, None)


@pytest.mark.parametrize("name", QUICK)
def test_every_decision_of_the_engine_is_ours(data, name):
    agrees(data, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in QUICK])
def test_every_decision_of_the_engine_is_ours_in_the_other_cases_too(data, name):
    agrees(data, name)


def test_these_are_all_cases_and_all_passes(data):
    found = sorted(path.name for path in (data / "oracle_sglang").glob("*.case.json.gz"))
    assert found == sorted(f"{name}.case.json.gz" for name in CASES)
    lines = [line["type"] for name in CASES for line in read_log(files(data, name)[1])]
    assert lines.count("step") == 23_318


# ---------------------------------------------------------------- what the cases would notice


def decodes_first(patch):
    original = scheduler.plan_prefill
    patch.setattr(scheduler, "plan_prefill", lambda state, batch: state.members.running or original(state, batch))


def outputs_as_asked(patch):
    patch.setattr(ApartScheduler, "longest_in_memory", lambda self, prompt: 10**9)
    patch.setattr(ApartScheduler, "longest", lambda self: 10**9)


def full_until_empty(patch):
    def settle(state, now):
        full = state.gate.full
        original(state, now)
        state.gate.full = full

    original = progress.settle
    patch.setattr(progress, "settle", settle)


def tried_although_full(patch):
    def plan_prefill(state, batch):
        state.gate.full = False
        original(state, batch)

    original = scheduler.plan_prefill
    patch.setattr(scheduler, "plan_prefill", plan_prefill)


def nothing_reserved_for_the_running(patch):
    patch.setattr(admission, "expected_of_all", lambda state: 0)


def the_cut_one_in_whole_pages(patch):
    def go_on(self, seq):
        size = self.state.pool.page_size
        self.budget.chunk = max(size, self.budget.chunk // size * size // 2)
        original(self, seq)

    original = Prefill.go_on
    patch.setattr(Prefill, "go_on", go_on)


def more_picked_than_slots(patch):
    patch.setattr(Prefill, "slots", lambda self: 10**9)


def needs_beside_nothing_reserved(patch):
    patch.setattr(PrefillBudget, "reserved", 0)


def no_page_charged_for_rounding(patch):
    def charge(self, tokens, outputs):
        original(self, tokens, outputs)
        self.keep(-self.pool.page_size)
        self.needed -= self.pool.page_size

    original = PrefillBudget.charge
    patch.setattr(PrefillBudget, "charge", charge)


def known_lengths_always_admitted(patch):
    patch.setattr(Prefill, "consider_by_ends", lambda self, seq: self.admit(seq, 0, seq.known, whole=True))


def no_more_evicted_than_needed(patch):
    def allocate(state, batch):
        pool = state.pool
        need = sum(rounded(pool, start + tokens) - rounded(pool, start) for _, start, tokens in batch.prefills)
        pool.make_room(need)
        pool.take(need // pool.page_size)

    patch.setattr(admission, "allocate", allocate)


def a_ratio_that_stays(patch):
    patch.setattr(NewTokenRatio, "decode", lambda self, passes: None)


def never_mixed(patch):
    patch.setattr(scheduler, "mix_in", lambda state, batch: None)


def the_queue_as_it_is(patch):
    patch.setattr(SortedQueue, "arrange", lambda self, now, step: None)


def waiting_prefixes_grow_old(patch):
    patch.setattr(admission, "keep_waiting_prefixes", lambda state: None)


def survivors_in_the_old_order(patch):
    def retract_until_fits(state, batch):
        place = {serial: seq.place for serial, seq in state.members.running.items()}
        original(state, batch)
        state.members.reorder(sorted(state.members.running.values(), key=lambda seq: place[seq.serial]))

    original = decode.retract_until_fits
    patch.setattr(decode, "retract_until_fits", retract_until_fits)


def the_retracted_first_in_line(patch):
    def retract_until_fits(state, batch):
        config = state.config
        state.config = replace(config, returns_to="front")
        state.order.push_back = lambda seq, now, step: (state.order.push(seq, now, step), to_front(state.order))
        original(state, batch)
        state.config = config

    def to_front(order):
        order.queue.insert(0, order.queue.pop())

    original = decode.retract_until_fits
    patch.setattr(decode, "retract_until_fits", retract_until_fits)


def prefills_in_every_pass(patch):
    patch.setattr(Gate, "held_back", lambda self: False)


def nobody_is_displaced(patch):
    patch.setattr(admission, "displace", lambda *_: False)


def the_ratio_is_never_reset(patch):
    patch.setattr(NewTokenRatio, "reset", lambda self: None)


def prompts_and_outputs_in_one_node(patch):
    patch.setattr(RadixTree, "split_at", lambda self, node, end, at: None)


def nodes_as_old_as_when_created(patch):
    patch.setattr(RadixTree, "use", lambda self, node: None)


def results_before_the_next_plan(patch):
    original = ApartScheduler.__init__
    patch.setattr(
        ApartScheduler,
        "__init__",
        lambda self, policy, pool, config: original(self, policy, pool, replace(config, depth=1)),
    )


def retracts_where_a_row_is_about_to_be_free(patch):
    original = Members.drop_ending
    patch.setattr(Members, "drop_ending", lambda self: original(self) and False)


def one_for_all_that_are_retracted(patch):
    calls = iter(range(10**9))
    original = retraction.fits
    patch.setattr(retraction, "fits", lambda state, kept: next(calls) >= 0 and (original(state, kept) or True))


BREAKS = {
    "1": decodes_first,
    "2": outputs_as_asked,
    "3": full_until_empty,
    "4": tried_although_full,
    "5": nothing_reserved_for_the_running,
    "6": the_cut_one_in_whole_pages,
    "7": more_picked_than_slots,
    "8": needs_beside_nothing_reserved,
    "9": no_page_charged_for_rounding,
    "10": known_lengths_always_admitted,
    "11": no_more_evicted_than_needed,
    "12": a_ratio_that_stays,
    "13": never_mixed,
    "14": the_queue_as_it_is,
    "15": waiting_prefixes_grow_old,
    "16 order": survivors_in_the_old_order,
    "16 queue": the_retracted_first_in_line,
    "16 many": one_for_all_that_are_retracted,
    "17": prefills_in_every_pass,
    "18": nobody_is_displaced,
    "19": the_ratio_is_never_reset,
    "20": prompts_and_outputs_in_one_node,
    "21": nodes_as_old_as_when_created,
    "22": results_before_the_next_plan,
    "22 skip": retracts_where_a_row_is_about_to_be_free,
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", BREAKS)
def test_breaking_any_rule_makes_a_case_fail(data, rule, monkeypatch):
    BREAKS[rule](monkeypatch)
    assert any(differs(*files(data, name)) for name in CASES)


def differs(case, log):
    """Whether a case notices a broken rule: by a decision, or because the engine's own checks do."""
    lines = list(read_log(log))
    asked = read_case(case, Case)
    try:
        ours = list(islice(Replay(asked.scheduler("case"), asked.due()).lines(), len(lines) + 50))
    except (AssertionError, ValueError, KeyError, IndexError):
        return True
    return compare(lines, ours, OF_SGLANG, ()).mismatches > 0
