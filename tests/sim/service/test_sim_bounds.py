"""A run is stopped when it has done more than it may, when it gets nowhere, and when its time is over."""

from itertools import count

import pytest
from sim_stories import engine, job, jobs, run

from policies.fcfs import FirstComeFirstServed
from sim.cost.forms import Affine, Unit
from sim.log.events import Kind
from sim.service import bounds
from sim.service.bounds import LATEST, Bounds, Stopped
from sim.service.clients import ClosedLoop
from sim.service.cluster import simulate
from sim.service.outages import Outages
from sim.service.pools import Pool
from sim.service.service import serve


class NobodyGoes(FirstComeFirstServed):
    """An order that lets nobody go."""

    def head(self, now, step):
        return None


class AlwaysAboutTo(NobodyGoes):
    """It lets nobody go, and says that it will at once."""

    def next_change(self, now, step):
        return now, None


def stopped(*arguments, **options):
    """Why a run was stopped."""
    with pytest.raises(Stopped) as found:
        simulate(*arguments, **options)
    return found.value


def test_requests_that_nothing_will_let_go_are_no_progress():
    found = stopped(jobs(a=2, b=4), engine(slots=2, order=NobodyGoes()), Unit(1))
    assert (found.what, found.count, found.ended, found.sent) == ("waiting", 2, 0, 2)


def test_events_that_come_to_nothing_are_no_progress(monkeypatch):
    monkeypatch.setattr(bounds, "QUIET_EVENTS", 1000)
    found = stopped(jobs(a=2), engine(slots=2, order=AlwaysAboutTo()), Unit(1))
    assert (found.what, found.now) == ("quiet", 0)
    assert 1000 < found.count <= 1000 + 2 * bounds.EVERY


def test_failures_that_come_faster_than_a_step_lasts_are_no_progress(monkeypatch):
    monkeypatch.setattr(bounds, "QUIET_FAILURES", 100)
    every_five = Outages({0: ((5 * n, 1) for n in count(1))}, Kind.PREEMPTED)
    with pytest.raises(Stopped) as found:
        serve(jobs(a=1), [Pool([(engine(slots=1), Unit(10))])], outages=every_five)
    assert found.value.what == "failing"


def test_failures_while_nobody_waits_are_not_counted_as_no_progress(monkeypatch):
    monkeypatch.setattr(bounds, "QUIET_FAILURES", 100)
    every_five = Outages({0: ((5 * n, 1) for n in count(1))}, Kind.PREEMPTED)
    late = [job("a", 1), job("b", 1, arrival=10_000)]
    found = serve(late, [Pool([(engine(slots=1), Unit(2))])], outages=every_five)
    assert len(found.service_log.table("outages")) > 1000


def test_a_run_is_stopped_once_it_has_done_more_than_it_may():
    found = stopped(
        [job(str(n), 2, arrival=10 * n) for n in range(1000)], engine(slots=1), Unit(1), bounds=Bounds(steps=900)
    )
    assert found.what == "steps"
    assert 900 < found.count < 900 + 2 * bounds.EVERY
    assert simulate(jobs(a=900), engine(slots=1), Unit(1), bounds=Bounds(steps=900)).steps == 900


def test_nothing_happens_after_the_last_instant():
    assert run(jobs(a=2), engine(slots=1), Unit(LATEST // 2)).steps == 2
    found = stopped(jobs(a=3), engine(slots=1), Unit(LATEST // 2))
    assert (found.what, found.ended) == ("time", 0)


def test_bounds_that_are_not_reached_change_nothing():
    requests = [job(str(n), 1 + n % 9, arrival=n) for n in range(500)]
    free, bounded = (
        simulate(requests, engine(slots=3), Unit(2), bounds=each) for each in (Bounds(), Bounds(5000, 5000))
    )
    assert free.sha256() == bounded.sha256()


def test_clients_without_a_request_are_no_events():
    loop = ClosedLoop(jobs(a=2, b=3), clients=10**9, think=iter([0, 0]))
    assert simulate(loop, engine(slots=4), Unit(1)).steps == 3


def test_a_page_may_be_longer_than_any_run_of_steps():
    requests = [job(str(n), 700 + n, prompt=3 + n) for n in range(5)]
    wide, narrow = (run(requests, engine(slots=5, page_size=size)) for size in (4096, 5))
    assert (wide.step_durations() == narrow.step_durations()).all()
    assert wide.sha256() == run(requests, engine(slots=5, page_size=4096), macro=False).sha256()
    tight = [run(requests, engine(slots=5, page_size=1000, pages=6), macro=macro).sha256() for macro in (True, False)]
    assert tight[0] == tight[1]


@pytest.mark.parametrize("macro", [True, False])
@pytest.mark.parametrize("tokens", [3, 200])
def test_steps_that_64_bits_do_not_hold_are_beyond_the_last_instant(tokens, macro):
    endless = Affine(per_context_token=1e17)
    found = stopped([job("a", tokens, prompt=100)], engine(slots=1), endless, macro=macro)
    assert (found.what, found.ended) == ("time", 0)
    tail = [job("a", 1), job("b", tokens, prompt=90)]
    assert stopped(tail, engine(slots=2, budget=1), Affine(base=1, per_chunk_work=9e17), macro=macro).ended <= 1
