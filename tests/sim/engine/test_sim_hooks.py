"""What an engine asks its policy and tells its listeners: each call, with the time and the step of it."""

from sim_stories import PLENTY, engine, job

from policies.fcfs import FirstComeFirstServed
from policies.priority import PriorityOrder
from sim.log.events import Kind
from sim.policy.base import LastAdmitted, Optimistic
from sim.policy.listener import Listener
from sim.request import Request


class Watched(FirstComeFirstServed, Listener):
    """An order that notes what it is asked and told, in `calls`."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls
        self.listeners = (self,)

    def push(self, seq, now, step):
        self.calls.append(("push", seq.request.id, now, step))
        super().push(seq, now, step)

    def push_back(self, seq, now, step):
        self.calls.append(("push_back", seq.request.id, now, step))
        super().push_back(seq, now, step)

    def arrange(self, now, step):
        self.calls.append(("arrange", now, step))

    def head(self, now, step):
        self.calls.append(("head", now, step))
        return super().head(now, step)

    def refusal(self, seq, now):
        self.calls.append(("refusal", seq.request.id, now))
        return ""

    def next_change(self, now, step):
        self.calls.append(("order.next_change", now, step))
        return None, None

    def admitted(self, seq, step):
        self.calls.append(("admitted", seq.request.id, step))

    def token(self, seq, step):
        self.calls.append(("token", seq.request.id, step))

    def decoding(self, seq, step):
        self.calls.append(("decoding", seq.request.id, step))

    def paused(self, seq, step):
        self.calls.append(("paused", seq.request.id, step))

    def processed(self, tokens):
        self.calls.append(("processed", tokens))

    def left(self, seq, step):
        self.calls.append(("left", seq.request.id, step))


class WatchedRule(Optimistic):
    """An admission rule that notes what it is asked and told."""

    def __init__(self, calls):
        super().__init__()
        object.__setattr__(self, "calls", calls)

    def positions(self, seq, computed):
        self.calls.append(("positions", seq.request.id, computed))
        return super().positions(seq, computed)

    def spare(self, pool, to_come, step):
        self.calls.append(("spare", pool.pages, to_come, step))
        return 0

    def allows(self, seq, running, pool, step):
        self.calls.append(("allows", seq.request.id, [other.request.id for other in running], pool.pages, step))
        return True

    def next_change(self, step):
        self.calls.append(("rule.next_change", step))

    def idle(self, step):
        self.calls.append(("idle", step))

    def retracted(self, running, step):
        self.calls.append(("retracted", list(running), step))

    def left(self, seq):
        self.calls.append(("gone", seq.request.id))


class WatchedVictim(LastAdmitted):
    """A choice of victims that notes when it is asked."""

    def __init__(self, calls):
        object.__setattr__(self, "calls", calls)

    def choose(self, running, step):
        self.calls.append(("choose", [seq.request.id for seq in running.values()], step))
        return super().choose(running, step)


def test_who_is_asked_and_told_what_and_when():
    # 3 pages of 2, steps of 10 ns. a (2 + 4 - 1 = 5 positions) and b (2 + 3 - 1 = 4) compute their prompts at 0. At
    # 10 a takes the last page and b leaves with 2 positions and a token; it does not get in at 20 and 30. a ends with
    # step 3; b computes its 3 tokens at 40, its fourth position at 50, and has ended at 60.
    calls = []
    scheduler = engine(
        slots=2, pages=3, page_size=2, order=Watched(calls), admission=WatchedRule(calls), victim=WatchedVictim(calls)
    )

    def step(now):
        calls.clear()
        batch = scheduler.plan(now)
        if batch.tokens:
            scheduler.commit(batch, now + 10)
        return calls

    scheduler.submit(job("a", 4, prompt=2), 0)
    scheduler.submit(job("b", 3, prompt=2), 0)
    assert calls == [
        ("refusal", "a", 0),
        ("positions", "a", 2),
        ("push", "a", 0, 0),
        ("refusal", "b", 0),
        ("positions", "b", 2),
        ("push", "b", 0, 0),
    ]
    assert step(0) == [
        ("idle", 0),
        ("arrange", 0, 0),
        ("head", 0, 0),
        ("positions", "a", 2),
        ("admitted", "a", 0),
        ("head", 0, 0),
        ("positions", "b", 2),
        ("spare", 3, 5, 0),
        ("allows", "b", ["a"], 3, 0),
        ("admitted", "b", 0),
        ("processed", 4),
        ("token", "a", 1),
        ("decoding", "a", 1),
        ("token", "b", 1),
        ("decoding", "b", 1),
    ]
    assert step(10) == [
        ("choose", ["a", "b"], 1),
        ("paused", "b", 1),
        ("retracted", [(1, 4)], 1),
        ("positions", "b", 3),
        ("push_back", "b", 10, 1),
        ("processed", 1),
    ]
    for number, to_come in ((2, 2), (3, 1)):
        now = 10 * number
        assert step(now) == [
            ("arrange", now, number),
            ("head", now, number),
            ("positions", "b", 3),
            ("spare", 3, to_come, number),
            ("rule.next_change", number),
            ("order.next_change", now, number),
            ("processed", 1),
            *([("paused", "a", 4)] if number == 3 else []),
        ]
    assert step(40) == [
        ("gone", "a"),
        ("left", "a", 4),
        ("idle", 4),
        ("arrange", 40, 4),
        ("head", 40, 4),
        ("positions", "b", 3),
        ("admitted", "b", 4),
        ("processed", 3),
        ("token", "b", 5),
        ("decoding", "b", 5),
    ]
    assert step(50) == [("processed", 1), ("paused", "b", 6)]
    assert step(60) == [("gone", "b"), ("left", "b", 6)]
    scheduler.check()


def test_steps_that_go_on_are_told_at_once():
    calls = []
    scheduler = engine(slots=2, order=Watched(calls))
    for name in "ab":
        scheduler.submit(job(name, 5), 0)
    scheduler.commit(scheduler.plan(0), 10)
    batch = scheduler.plan(10)
    calls.clear()
    scheduler.proceed(batch, 3)
    assert calls == [("processed", 6), ("paused", "a", 5), ("paused", "b", 5)]


class Displacing(Watched):
    """An order that could take the slot of a running sequence, and does not."""

    preempts = True

    def displaced(self, head, running, now, step):
        self.calls.append(("displaced", head.request.id, [seq.request.id for seq in running], now, step))


def test_an_order_that_preempts_is_asked_with_every_plan():
    calls = []
    scheduler = engine(slots=1, order=Displacing(calls))
    for name in "ab":
        scheduler.submit(job(name, 9), 0)
    scheduler.commit(scheduler.plan(0), 10)
    calls.clear()
    scheduler.plan(10)
    assert calls == [
        ("head", 10, 1),
        ("displaced", "b", ["a"], 10, 1),
        ("order.next_change", 10, 1),
        ("processed", 1),
    ]


def test_what_the_victim_may_still_need_is_not_to_come():
    # a computes 4 + 6 - 1 = 9 positions and b 6. c would take b's slot in step 1: of a's 9 positions 5 are to come.
    calls = []
    scheduler = engine(slots=2, order=PriorityOrder(), admission=WatchedRule(calls), preempt_for_slot=True)
    for name, output, prompt, priority in (("a", 6, 4, 1), ("b", 5, 2, 2)):
        scheduler.submit(Request(name, 0, prompt, output, priority=priority), 0)
    scheduler.commit(scheduler.plan(0), 1)
    scheduler.submit(Request("c", 1, 3, 1), 1)
    calls.clear()
    scheduler.plan(1)
    assert calls[:3] == [("positions", "c", 3), ("spare", PLENTY, 5, 1), ("allows", "c", ["a"], PLENTY, 1)]


def test_rule_and_listeners_are_told_of_one_whose_client_gives_up():
    calls = []
    scheduler = engine(slots=1, order=Watched(calls), admission=WatchedRule(calls))
    a = scheduler.submit(job("a", 9), 0)
    scheduler.commit(scheduler.plan(0), 10)
    scheduler.abort(a, 10, Kind.CANCELLED)
    calls.clear()
    scheduler.plan(10)
    assert calls == [("paused", "a", 1), ("gone", "a"), ("left", "a", 1)]


class Clocked(Watched):
    """An order whose head may change 5 ns from now."""

    def next_change(self, now, step):
        super().next_change(now, step)
        return now + 5, None


def test_the_order_says_when_its_head_may_change_if_one_waits():
    calls = []
    scheduler = engine(slots=1, order=Clocked(calls))
    assert scheduler.order_changes_at(7) is None
    scheduler.submit(job("a", 2), 0)
    assert scheduler.order_changes_at(7) == 12
    scheduler.commit(scheduler.plan(0), 10)
    scheduler.submit(job("b", 2), 10)
    assert scheduler.order_changes_at(10) == 15
    asked = [call for call in calls if call[0] == "order.next_change"]
    assert asked == [("order.next_change", 7, 0), ("order.next_change", 10, 1)]


class NotBehind(Optimistic):
    """Only a sequence enters that the step computes whole; whether it would is noted in `seen`."""

    def __init__(self):
        super().__init__()
        object.__setattr__(self, "seen", [])

    def allows(self, seq, running, pool, step):
        self.seen.append((seq.request.id, seq.behind, step))
        return not seq.behind


def test_a_rule_sees_whether_the_step_would_leave_a_sequence_behind():
    # 6 tokens a step. a's prompt leaves 2 of them for b's 5 in step 0, then 5: all.
    rule = NotBehind()
    scheduler = engine(slots=2, budget=6, admission=rule)
    scheduler.submit(job("a", 9, prompt=4), 0)
    scheduler.submit(job("b", 9, prompt=5), 0)
    for now in (0, 1):
        scheduler.commit(scheduler.plan(now), now + 1)
    assert rule.seen == [("b", True, 0), ("b", False, 1)]
    assert len(scheduler.state.running) == 2
