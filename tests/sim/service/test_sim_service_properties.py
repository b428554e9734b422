"""What holds in every service, whatever fails when, whoever tries again, and however requests move."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from speculative_stories import speculating

from policies import routers
from policies.registry import build
from sim.accounting.frames import client_frame
from sim.accounting.metrics import summary
from sim.cost.forms import Affine, Unit
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.engine.static import StaticScheduler
from sim.log.events import Kind
from sim.memory.extents import ExtentPool
from sim.memory.pool import PagePool
from sim.policy.base import Optimistic, Policy, Reserve
from sim.policy.quantile import Quantile
from sim.policy.ratio import Ratio
from sim.request import Patience, Request
from sim.service.clients import ClosedLoop, Distant, OpenLoop, Window
from sim.service.outages import Outages
from sim.service.pools import Pool
from sim.service.service import Retry, Transfer, serve
from sim.service.sessions import Sessions

ROUTERS = ("round_robin", "random", "least_requests", "least_tokens", "power_of_two", "sticky")


MODES = ("plain", "depth 2", "depth 2", "swap", "reserve", "ratio", "quantile", "speculative")
ORDERS = (
    *((name, {}) for name in ("fcfs", "fcfs", "sjf", "vtc", "drr", "mlfq", "longest_prefix")),
    ("srpt", {"preemptive": True}),
    ("fair", {"max_wait": 100}),
    ("tenant_slots", {"slots": 1}),
    ("tenant_quota", {"requests": 3, "window": 200}),
)


def some_right(request):
    """Acceptance that differs from token to token."""
    return [(place + request.prompt) % 4 for place in range(request.output)]


@dataclass
class Story:
    requests: list
    pools: list
    router: str
    order: tuple
    mode: str
    share: str | None
    outages: list
    fate: Kind
    retry: Retry | None
    clients: str
    transfer: Transfer
    cost: object

    def engine(self, slots, pages, budget):
        order = build(*self.order, seed=0)
        if self.mode == "static":
            return StaticScheduler(
                Policy(order, Reserve()), PagePool(pages, 4), EngineConfig(slots=slots, token_budget=1, queue_limit=6)
            )
        modes = {"depth 2": {"depth": 2}, "late": {"evict": "after"}, "swap": {"swap": True}}.get(self.mode, {})
        admission = {"reserve": Reserve, "ratio": Ratio, "quantile": Quantile}.get(self.mode, Optimistic)()
        plain = self.share is None or self.mode in ("swap", "reserve")
        pool = PagePool(pages, 4) if plain else ExtentPool(pages, 4, self.share)
        made = Scheduler(
            Policy(order, admission), pool, EngineConfig(slots=slots, token_budget=budget, queue_limit=6, **modes)
        )
        return speculating(made, 3, some_right) if self.mode == "speculative" else made

    def senders(self):
        """The clients, and how many of the requests they have not sent in the end."""
        requests = self.requests
        if self.clients == "sessions":
            talks = {}
            for request in requests:
                talks.setdefault(request.tenant, []).append(replace(request, session=request.tenant, think=5))
            clients = Sessions(talks.values())
            return clients, lambda: clients.counts.unsent_turns
        made = {
            "open": lambda: OpenLoop(requests),
            "window": lambda: Window(requests, 3),
            "closed": lambda: ClosedLoop(requests, 3, [5] * len(requests) * 2),
            "far": lambda: Distant(Window(requests, 3), 4),
        }
        return made[self.clients](), lambda: 0

    def made_pools(self):
        return [
            Pool(
                [(self.engine(*shape), self.cost) for shape in shapes],
                routers.build(self.router, {}, 1, len(shapes)),
            )
            for shapes in self.pools
        ]

    def serve(self, clients, macro):
        number = sum(map(len, self.pools))
        when = {replica: [] for replica in range(number)}
        for replica, start, lasts in sorted(self.outages, key=lambda outage: outage[1]):
            when[replica % number].append((start, lasts))
        outages = Outages({replica: iter(times) for replica, times in when.items()}, self.fate)
        return serve(
            clients,
            self.made_pools(),
            retry=self.retry,
            outages=outages,
            transfer=self.transfer,
            macro=macro,
        )


@st.composite
def stories(draw):
    """Up to 15 requests, some impatient, on one or two pools of engines that may fail at any time."""
    now, requests = 0, []
    some_time = st.one_of(st.none(), st.none(), st.integers(1, 900))
    for place in range(draw(st.integers(1, 15))):
        now += draw(st.sampled_from([0, 0, 1, 13, 80, 300]))
        prompt = draw(st.integers(1, 30))
        tokens = tuple(range(prompt)) if draw(st.booleans()) else None
        requests.append(
            Request(
                str(place),
                now,
                prompt,
                draw(st.integers(1, 40)),
                draw(st.sampled_from("ab")),
                tokens=tokens,
                patience=Patience(
                    cancel_after=draw(some_time),
                    cancel_tokens=draw(st.one_of(st.none(), st.none(), st.integers(1, 40))),
                    queue_timeout=draw(some_time),
                    timeout=draw(some_time),
                ),
            )
        )
    two = draw(st.booleans())
    order = draw(st.sampled_from(ORDERS))
    alone = [] if two else ["late"] if "preemptive" in order[1] else ["late", "static"]
    mode = draw(st.sampled_from([*MODES, *alone]))
    longest = max(-(-(r.prompt + r.output) // 4) for r in requests)
    shapes = st.tuples(
        st.sampled_from([1, 2, 5]),
        st.sampled_from([longest - 1, longest, longest + 3, 1000]).map(lambda pages: max(1, pages)),
        st.sampled_from([8, 1000]),
    )
    pool = st.lists(shapes, min_size=1, max_size=3)
    retry = Retry(
        draw(st.integers(1, 4)),
        lambda request, attempt: 10 * attempt + len(request.id),
        tuple(draw(st.lists(st.sampled_from([Kind.REJECTED, Kind.TIMED_OUT, Kind.INTERRUPTED]), unique=True))),
    )
    return Story(
        requests=requests,
        pools=[draw(pool), draw(pool)] if two else [draw(pool)],
        router=draw(st.sampled_from(ROUTERS)),
        order=order,
        mode=mode,
        share=draw(st.sampled_from([None, None, "tenant"])),
        outages=draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 900), st.integers(1, 200)), max_size=6)),
        fate=draw(st.sampled_from([Kind.PREEMPTED, Kind.MOVED, Kind.INTERRUPTED])),
        retry=draw(st.sampled_from([None, retry])),
        clients=draw(st.sampled_from(["open", "open", "window", "closed", "sessions", "far"])),
        transfer=Transfer(draw(st.sampled_from([0, 5])), draw(st.sampled_from([0.0, 0.4, 3.0])), draw(st.booleans())),
        cost=draw(st.sampled_from([Unit(7), Affine(base=5, per_sequence=0.7, per_context_token=0.13,
                                                   per_prefill_token=1.1)])),
    )  # fmt: skip


def wasted(run, status):
    """Slot-steps of all stays of attempts that were not the last, and of those that did not finish."""
    legs = run.service_log.table("legs").tolist()
    last = {request: attempt for request, attempt, *_ in legs}
    wasted = {
        (replica, index)
        for request, attempt, replica, index in legs
        if attempt < last[request] or status[request] != "finished"
    }
    return sum(
        end - first
        for replica, log in enumerate(run.logs)
        for index, first, end in log.stay_table().tolist()
        if (replica, index) in wasted
    )


@given(stories())
def test_nothing_vanishes_and_every_account_adds_up(story):
    """`serve` itself checks that every request ended, and that every slot and page came back."""
    (clients, unsent), (again, _) = story.senders(), story.senders()
    run = story.serve(clients, macro=True)
    stepped = story.serve(again, macro=False)
    assert [log.sha256() for log in run.logs] == [log.sha256() for log in stepped.logs]
    assert run.service_log.sha256(run.logs) == stepped.service_log.sha256(stepped.logs)
    found = summary(run.logs, {"e2e": 10**9}, run.service_log)
    counts = dict(found["requests"])
    assert counts.pop("injected") == len(story.requests) - unsent() == sum(counts.values())
    assert counts["waiting"] == counts["running"] == 0
    event(f"mode {story.mode}, {len(story.pools)} pools, {story.fate.name}: {bool(run.service_log.outages)}")
    event(f"finished: {counts['finished'] > 0}; retried: {found['service']['retried'] > 0}")

    for account in (found["slot_steps"], found["slot_seconds"]):
        assert min(account.values()) >= -1e-15
        assert sum(spent for row, spent in account.items() if row != "bought") == pytest.approx(account["bought"])
    capacity = sum(log.pages * log.page_size for log in run.logs)
    if found["steps"]:
        assert sum(found["pages"]["positions"].values()) == pytest.approx(capacity)
        assert min(found["pages"]["positions"].values()) >= -1e-6

    frame = client_frame(run.logs, run.service_log)
    done = frame[frame.status == "finished"]
    assert (done.tokens == done.output).all()
    assert (frame.tokens <= frame.output).all()
    assert (done.ttft_s <= done.e2e_s).all()
    assert (done.wait_s <= done.ttft_s).all()
    # Who has n tokens has n - 1 gaps between them, wherever they came from, and these make up its decode time.
    gaps = done.tpot_s * (done.tokens - 1)
    assert (gaps + done.ttft_s).dropna().tolist() == pytest.approx(done.e2e_s[done.tokens > 1].tolist())
    assert (done.max_itl_s >= done.tpot_s - 1e-15)[done.tokens > 1].all()

    assert found["slot_steps"]["wasted"] == wasted(run, frame.status.tolist())
    for number, log in enumerate(run.logs):
        came = [time for time, kind, *_ in log.event_table().tolist() if kind in (Kind.QUEUED, Kind.REJECTED)]
        down = [
            (failed, until) for down, _, failed, until in run.service_log.table("outages").tolist() if down == number
        ]
        assert not any(failed <= time < until for time in came for failed, until in down)

    if (frame.status == "finished").all() and frame.attempts.max() == 1 and story.mode in ("plain", "reserve"):
        needed = sum(request.prompt + request.output - 1 for request in story.requests)
        tokens = found["tokens"]
        assert tokens["computed"] == needed + tokens["recomputed"] - tokens["cached"]
        assert tokens["output"] == frame.output.sum()
        assert found["itl_s"]["n"] == (frame.output - 1).sum()
        assert found["slot_steps"]["wasted"] == 0


@given(stories())
def test_the_direct_way_writes_the_logs_of_a_service_in_which_nothing_happens_between(story):
    # Without a service log, who gave up on the way is entered in a replica's log: the one difference.
    assume(story.clients != "far" or all(request.patience.cancel_after is None for request in story.requests))
    story = replace(story, pools=story.pools[:1])
    direct, whole = (serve(story.senders()[0], story.made_pools(), direct=way) for way in (True, False))
    assert [log.sha256() for log in direct.logs] == [log.sha256() for log in whole.logs]
    assert direct.service_log is None
    assert not whole.service_log.eventful
