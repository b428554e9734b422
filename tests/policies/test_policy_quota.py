"""Request quotas: who is over the quota of its tenant is rejected, with the reason, and nobody is held back."""

from __future__ import annotations

import pytest
from sim_stories import engine, happenings, job, run, times

from policies.registry import build
from sim.accounting.frames import requests_frame
from sim.accounting.metrics import summary


def served(sent, **options):
    """The log of one slot under the quotas."""
    return run(sent, engine(slots=1, order=build("tenant_quota", options, 0)))


def test_the_third_within_a_window_is_rejected():
    # Two in any 10 ns. a1 at 0 and a2 at 4 get in; a3 at 9 is over; at 10 a1 counts no more; at 13 a2 and a4 do,
    # at 14 only a4; what was rejected took no place.
    arrivals = {"a1": 0, "a2": 4, "a3": 9, "a4": 10, "a5": 13, "a6": 14}
    log = served([job(name, 1, arrival=at) for name, at in arrivals.items()], requests=2, window=10)
    assert list(times(log, "finished")) == ["a1", "a2", "a4", "a6"]
    assert [event.who for event in happenings(log, "rejected")] == ["a3", "a5"]
    assert summary(log)["rejections"] == {"tenant is over its quota": 2}
    assert summary(log)["requests"]["injected"] == 6
    assert requests_frame(log).reason.tolist() == ["", "", *["tenant is over its quota", ""] * 2]


def test_every_tenant_has_its_own():
    requests = [job(f"{tenant}{n}", 1, tenant=tenant) for n in range(3) for tenant in ("free", "paid", "none")]
    log = served(requests, requests=1, tenants={"paid": 2, "none": 0})
    assert list(times(log, "finished")) == ["free0", "paid0", "paid1"]


def test_who_gets_in_waits_as_the_wrapped_order_says():
    requests = [job("running", 5), job("long", 3, arrival=1), job("short", 1, arrival=2), job("over", 1, arrival=3)]
    log = served(requests, requests=3, order="sjf")
    assert list(times(log, "finished")) == ["running", "short", "long"]


def test_what_can_never_fit_does_not_count():
    requests = [job("huge", 1, prompt=100), job("fits", 1, arrival=1)]
    scheduler = engine(slots=1, pages=10, page_size=1, order=build("tenant_quota", {"requests": 1}, 0))
    log = run(requests, scheduler)
    assert list(times(log, "finished")) == ["fits"]
    assert summary(log)["rejections"] == {"needs more pages than exist": 1}


@pytest.mark.parametrize("outer", ["vtc", "drr", "fair", "max_wait", "tenant_slots", "reserved"])
def test_it_rejects_from_within_other_wrappers(outer):
    inner = {"tenant_quota": {"requests": 2}}
    log = run([job(str(n), 1) for n in range(5)], engine(slots=1, order=build(outer, {"order": inner}, 0)))
    assert summary(log)["requests"]["rejected"] == 3


@pytest.mark.parametrize(
    "options", [{"requests": 0}, {"window": 0}, {"window": -1}, {"tenants": {"a": -1}}, {"tenants": 3}]
)
def test_what_is_no_quota_is_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))}"):
        build("tenant_quota", options, 0)
