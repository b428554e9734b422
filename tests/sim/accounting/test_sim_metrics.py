"""What a run is judged by: three requests worked out by hand, percentiles, objectives, frames."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim_stories import Script, engine, job, jobs, run, static_engine

from sim.accounting.frames import requests_frame, slots_frame, steps_frame
from sim.accounting.latencies import describe, stable_order
from sim.accounting.metrics import summary
from sim.request import SECOND, Patience, Request

MS = SECOND // 1000


def three_requests():
    """Steps of 1, 2 and 4 s. a: tokens at 1, 3, 7; b: at 1; c comes at 0.5, enters at 1, tokens at 3 and 7."""
    requests = [job("a", 3), job("b", 1, tenant="other"), job("c", 2, arrival=SECOND // 2)]
    return run(requests, engine(slots=2), Script(SECOND, 2 * SECOND, 4 * SECOND), macro=False)


def test_the_times_of_each_request():
    frame = requests_frame(three_requests()).set_index("id")
    assert frame.wait_s.tolist() == [0, 0, 0.5]
    assert frame.ttft_s.tolist() == [1, 1, 2.5]
    assert frame.e2e_s.tolist() == [7, 1, 6.5]
    assert frame.tpot_s[["a", "c"]].tolist() == [3, 4]
    assert np.isnan(frame.tpot_s["b"])
    assert frame.max_itl_s[["a", "c"]].tolist() == [4, 4]
    assert np.isnan(frame.max_itl_s["b"])
    assert frame.tokens.tolist() == [3, 1, 2]


def test_the_summary_of_three_requests():
    found = summary(three_requests())
    assert found["makespan_s"] == 7
    assert found["steps"] == 3
    assert found["occupancy"] == 1
    assert found["tokens_per_slot_step"] == 1
    # Wanted at 0, 0 and 0.5; ended at 1, 7 and 7.
    assert found["rates"] == pytest.approx(
        {
            "offered_per_s": 3 / 0.5,
            "offered_by_gaps_per_s": 2 / 0.5,
            "finished_per_s": 3 / 7,
            "finished_by_gaps_per_s": 2 / 6,
            "output_tokens_per_s": 6 / 7,
        }
    )
    assert found["tokens"]["prompt"] == 3
    assert found["tokens"]["output"] == 6
    # Sorted waits 0, 0, 0.5: p90 is 0.8 and p95 0.9 of the way from the second to the third, p99 0.98.
    assert found["wait_s"] == pytest.approx(
        {"n": 3, "censored_share": 0, "mean": 0.5 / 3, "p50": 0, "p90": 0.4, "p95": 0.45, "p99": 0.49, "max": 0.5}
    )
    assert found["ttft_s"]["mean"] == pytest.approx(1.5)
    assert found["e2e_s"]["p50"] == pytest.approx(6.5)
    assert (found["tpot_s"]["n"], found["tpot_s"]["mean"]) == (2, pytest.approx(3.5))
    # The gaps 2, 4 and 4, pooled.
    assert found["itl_s"] == pytest.approx(
        {"n": 3, "censored_share": 0, "mean": 10 / 3, "p50": 4, "p90": 4, "p95": 4, "p99": 4, "max": 4}
    )
    assert found["max_itl_s"]["n"] == 2
    assert found["attainment"] is None
    assert found["goodput_per_s"] is None


def test_tenants_have_their_own_numbers():
    tenants = summary(three_requests())["tenants"]
    assert list(tenants) == ["default", "other"]
    assert tenants["default"]["requests"]["injected"] == 2
    assert tenants["default"]["itl_s"]["n"] == 3
    assert tenants["other"]["requests"]["finished"] == 1
    assert tenants["other"]["e2e_s"]["mean"] == 1
    assert tenants["other"]["itl_s"]["n"] == 0


@pytest.mark.parametrize(
    ("objectives", "met"),
    [
        ({"ttft": SECOND}, 2),  # a and b, just
        ({"ttft": SECOND - 1}, 0),
        ({"tpot": 3 * SECOND}, 2),  # a, and b, which has one token and cannot miss it
        ({"ttft": SECOND, "e2e": SECOND}, 1),
        ({"itl": 4 * SECOND}, 3),
        ({"itl": 4 * SECOND - 1}, 1),
        ({"wait": SECOND // 2}, 3),
        ({"wait": 0}, 2),
    ],
)
def test_attainment_counts_those_who_met_all(objectives, met):
    found = summary(three_requests(), objectives)
    assert found["attainment"] == pytest.approx(met / 3)
    assert found["goodput_per_s"] == pytest.approx(met / 7)


def test_attainment_is_a_share_of_the_injected():
    # One of two is turned away: half of the injected met an objective that nobody could miss.
    log = run([job("a", 1), job("b", 99)], engine(slots=1, pages=1))
    assert summary(log, {"e2e": SECOND})["attainment"] == 0.5


def test_rejected_requests_have_no_times():
    frame = requests_frame(run([job("a", 1), job("b", 99, arrival=5)], engine(slots=1, pages=1))).set_index("id")
    assert frame.loc["b", ["wait_s", "ttft_s", "tpot_s", "e2e_s", "max_itl_s"]].isna().all()
    assert frame.loc["b", ["queued_ns", "admitted_ns", "first_token_ns"]].isna().all()
    assert frame.ended_ns.tolist() == [1, 5]


@pytest.mark.parametrize("requests", [[], [job("a", 99)]])
def test_a_run_in_which_nothing_runs(requests):
    found = summary(run(requests, engine(slots=2, pages=1)), {"ttft": SECOND})
    share = 1.0 if requests else 0.0  # who was rejected has no latency
    nothing = {
        "n": 0,
        "censored_share": share,
        "mean": None,
        "p50": None,
        "p90": None,
        "p95": None,
        "p99": None,
        "max": None,
    }
    for latency in ("wait_s", "ttft_s", "tpot_s", "itl_s", "e2e_s", "max_itl_s"):
        assert found[latency] == nothing
    assert found["steps"] == found["makespan_s"] == 0
    assert found["requests"]["injected"] == found["requests"]["rejected"] == len(requests)
    assert set(found["slot_steps"].values()) == {0}
    assert found["occupancy"] is None
    assert found["attainment"] == (0 if requests else None)
    assert set(found["rates"].values()) == {None}


def test_the_makespan_starts_with_the_first_queue_entry():
    found = summary(run([job("a", 2, arrival=100)], engine(slots=1)))
    assert found["makespan_s"] == pytest.approx(2e-9)
    assert found["slot_seconds"]["idle"] == 0


@given(
    st.lists(
        st.tuples(st.floats(0, 1e3) | st.just(float("nan")), st.integers(0, 6)),
        max_size=40,
    )
)
def test_weighted_percentiles_are_those_of_the_expanded_sample(pairs):
    values = np.array([value for value, _ in pairs])
    weights = np.array([weight for _, weight in pairs], dtype=np.int64)
    found = describe(values, weights)
    sample = np.repeat(values, weights)
    sample = sample[~np.isnan(sample)]
    assert found["n"] == len(sample)
    if not len(sample):
        assert set(found.values()) == {0, None}
        return
    expected = [sample.mean(), *np.percentile(sample, [50, 90, 95, 99], method="linear"), sample.max()]
    assert [found[name] for name in ("mean", "p50", "p90", "p95", "p99", "max")] == pytest.approx(expected)


def test_pooled_gaps_against_the_sample_written_out():
    # 3 slots, steps of 1 to 9 ms; the token times follow from who is in which step.
    durations = [place * MS for place in range(1, 10)]
    log = run(jobs(a=9, b=4, c=2, d=6), engine(slots=3), Script(*durations), macro=False)
    # a: steps 0 to 8, b: 0 to 3, c: 0 and 1, d: 2 to 7. Every token but the first has the gap of its step.
    sample = [step + 1 for first, end in ((0, 9), (0, 4), (0, 2), (2, 8)) for step in range(first + 1, end)]
    found = summary(log)["itl_s"]
    expected = [*np.percentile(sample, [50, 90, 95, 99]), max(sample), np.mean(sample)]
    assert found["n"] == len(sample) == 17
    assert [1000 * found[name] for name in ("p50", "p90", "p95", "p99", "max", "mean")] == pytest.approx(expected)


def test_a_frame_of_steps():
    frame = steps_frame(run([job("a", 3, prompt=5), job("b", 1, arrival=14)], engine(slots=2, page_size=4)))
    assert frame.start_ns.tolist() == [0, 1, 2, 14]
    assert frame.duration_ns.tolist() == [1, 1, 1, 1]
    assert frame.prefill.tolist() == [1, 0, 0, 1]
    assert frame.decode.tolist() == [0, 1, 1, 0]
    assert frame.tokens.tolist() == [5, 1, 1, 1]
    assert frame.context.tolist() == [0, 5, 6, 0]
    assert frame.live.tolist() == [5, 6, 7, 1]
    assert frame.pages_used.tolist() == [2, 2, 2, 1]


def stays(log):
    return [
        (stay.slot, stay.id, stay.status, stay.admitted_ns, stay.completed_ns, stay.released_ns)
        for stay in slots_frame(log).itertuples()
    ]


def test_a_frame_of_slots():
    assert stays(run(jobs(a=2, b=4, c=1), engine(slots=2))) == [
        (0, "a", "finished", 0, 2, 2),
        (1, "b", "finished", 0, 4, 4),
        (0, "c", "finished", 2, 3, 3),
    ]
    assert stays(run(jobs(a=2, b=4, c=1), static_engine(slots=2))) == [
        (0, "a", "finished", 0, 2, 4),
        (1, "b", "finished", 0, 4, 4),
        (0, "c", "finished", 4, 5, 5),
    ]
    assert stays(run(jobs(a=2), engine(slots=1, evict="after"))) == [(0, "a", "finished", 0, 2, 3)]
    # The story of test_sim_memory: b leaves at 1 and is back at 4.
    requests = [job("a", 4, prompt=2), job("b", 3, prompt=2)]
    assert stays(run(requests, engine(slots=2, pages=3, page_size=2))) == [
        (0, "a", "finished", 0, 4, 4),
        (1, "b", "preempted", 0, 1, 1),
        (0, "b", "finished", 4, 6, 6),
    ]


def test_who_has_no_latency_because_of_its_end_is_censored_and_who_cannot_have_one_is_not():
    # One slot. "short" ends with its one token at 1: it lacks no TPOT. "leaves" enters at 1, has a token
    # at 2 and gives up at 3; "late" times out in the queue at 2; "huge" never fits.
    requests = [
        Request("short", 0, 1, 1),
        Request("leaves", 0, 1, 9, patience=Patience(cancel_after=3)),
        Request("late", 0, 1, 9, patience=Patience(queue_timeout=2)),
        Request("huge", 0, 10_000, 1),
    ]
    found = summary(run(requests, engine(slots=1, pages=100)))
    shares = {name: (found[name]["n"], found[name]["censored_share"]) for name in ("wait_s", "ttft_s", "e2e_s")}
    assert shares == {"wait_s": (2, 0.5), "ttft_s": (2, 0.5), "e2e_s": (1, 0.75)}
    assert (found["tpot_s"]["n"], found["tpot_s"]["censored_share"]) == (0, 0.75)
    assert found["itl_s"]["censored_share"] == 0.75
    assert found["tenants"]["default"]["e2e_s"]["censored_share"] == 0.75


@given(st.lists(st.sampled_from([0.0, -0.0, 1.5, 2.25, 1e300, inf, 7.0]) | st.floats(allow_nan=False)))
def test_a_stable_order_keeps_ties_in_their_order(values):
    values = np.array(values, np.float64)
    assert stable_order(values).tolist() == np.argsort(values, kind="stable").tolist()
