"""A roofline from measured requests: hidden truth is found where the runs show it, and what they hide is said."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import pytest
from sim_stories import engine

from calibrate.fit.from_log import fit
from calibrate.fit.identifiability import identify
from calibrate.fit.initial import Prior, initial_estimate, prior
from calibrate.fit.measured_run import METRICS, MeasuredRun, compared
from calibrate.fit.optimizer import descend, loss
from calibrate.fit.step_log import of_log, predicted
from calibrate.hardware.devices import DEVICES
from calibrate.models.registry import architecture
from sim.accounting.frames import requests_frame
from sim.cost.forms import Roofline, StepCost
from sim.cost.shape import Shape
from sim.log.events import EventLog
from sim.request import Request
from sim.service.clients import Distant, OpenLoop
from sim.service.cluster import simulate

HIDDEN = Roofline(host=8e5, weight_pass=1e7, per_token=44e3, per_context_token=60.0)
DELAY = 3_000_000


@dataclass(frozen=True)
class Noisy:
    """A cost whose every step has an error of its own, lognormal with mean 1 and the given sigma."""

    cost: Roofline
    sigma: float
    lot: np.random.Generator = field(default_factory=lambda: np.random.default_rng(11))

    def errors(self, count: int) -> np.ndarray:
        return self.lot.lognormal(-(self.sigma**2) / 2, self.sigma, count)

    def step(self, shape: Shape) -> int:
        return max(1, round(self.cost.step(shape) * float(self.errors(1)[0])))

    def run(self, shape: Shape, steps: int, growth: Sequence[int]) -> array[int]:
        exact = np.array(self.cost.run(shape, steps, growth)) * self.errors(steps)
        return array("q", np.maximum(exact, 1).astype(np.int64).tolist())


def requests(rate: float, count: int, prompts: tuple[int, int], seed: int) -> list[Request]:
    """Poisson arrivals, prompts of all lengths between two, outputs of 40 to 120."""
    lot = np.random.default_rng(seed)
    arrivals = np.cumsum(lot.exponential(1e9 / rate, count)).astype(int).tolist()
    lengths = lot.integers(*prompts, count).tolist()
    outputs = lot.integers(40, 120, count).tolist()
    return [Request(str(i), a, p, o) for i, (a, p, o) in enumerate(zip(arrivals, lengths, outputs, strict=True))]


def logged(asked: Sequence[Request], cost: StepCost, delay: int) -> EventLog:
    """What an engine with asynchronous scheduling does with these requests."""
    return simulate(Distant(OpenLoop(asked), delay), engine(slots=64, budget=2048, depth=2), cost)


def measured(name: str, asked: Sequence[Request], cost: StepCost, delay: int = DELAY) -> MeasuredRun:
    """A run of this engine as its clients would have measured it."""
    frame = requests_frame(logged(asked, cost, delay))
    frame["sent_s"] = [request.arrival / 1e9 for request in asked]
    frame[["ttft_s", "e2e_s"]] += delay / 1e9
    frame["rank"] = range(len(asked))
    columns = ["id", "rank", "sent_s", "prompt", "output", *METRICS]
    return MeasuredRun(
        name, frame[columns], len(asked), lambda price, away, first: [logged(asked[:first], price, away)]
    )


@pytest.fixture(scope="module")
def runs() -> list[MeasuredRun]:
    """Three runs with 5% noise on every step: nearly idle, busy, and more than the engine can take."""
    noisy = Noisy(HIDDEN, 0.05)
    loads = {"light": (2, 120, (64, 1500)), "busy": (9, 260, (64, 1500)), "full": (30, 260, (64, 1500))}
    return [measured(name, requests(*load, seed=3), noisy) for name, load in loads.items()]


@pytest.mark.slow
def test_hidden_coefficients_are_found_through_noise(runs: list[MeasuredRun]) -> None:
    found = fit(runs[::2], runs[1:2], draws=40)
    steps = pd.concat([of_log(each.simulate(HIDDEN, DELAY, each.requests)[0]) for each in runs])
    assert predicted(found.cost, steps).mean() == pytest.approx(steps["duration_ns"].mean(), rel=0.02)
    assert found.cost.weight_pass + found.cost.host == pytest.approx(1.08e7, rel=0.03)
    assert found.cost.per_token == pytest.approx(44e3, rel=0.05)
    assert found.delay == pytest.approx(DELAY, abs=2e6)
    unseen = found.errors[found.errors["part"] == "held out"]
    assert set(unseen["run"]) == {"busy"}
    assert unseen["error"].abs().max() < 0.06
    low, high = found.intervals["per_token"]
    assert low < found.cost.per_token < high
    assert 1.02 < high / low < 1.5 or high / low < 1.02
    assert found.free == ("host", "weight_pass", "per_token", "per_context_token", "delay")
    assert "left at 0; these runs are met as well without" in found.lines()[-1]


@pytest.mark.slow
def test_runs_that_are_nearly_idle_cannot_tell_the_host_from_the_weights(runs: list[MeasuredRun]) -> None:
    alone = measured("alone", requests(0.4, 60, (900, 1000), seed=5), Noisy(HIDDEN, 0.05))
    found = fit([alone], starts=1, draws=20)
    steps = of_log(alone.simulate(HIDDEN, DELAY, alone.requests)[0])
    assert predicted(found.cost, steps).mean() == pytest.approx(steps["duration_ns"].mean(), rel=0.02)
    assert "host and weight_pass: not told apart; only their mixture is known" in found.lines()


@pytest.mark.slow
def test_a_further_term_is_fitted_when_asked_for() -> None:
    crowded = replace(HIDDEN, per_sequence=4e5)
    asked = [requests(7, 150, (16, 32), seed=8), requests(3, 120, (1400, 1500), seed=9)]
    several = [measured(f"{i}", each, crowded) for i, each in enumerate(asked)]
    found = fit(several, start=HIDDEN, free=["per_sequence", "host"], delay=DELAY, starts=1, draws=10)
    assert found.free == ("host", "per_sequence")
    assert found.cost.per_sequence == pytest.approx(4e5, rel=0.1)
    assert found.left_out == ()


def test_only_free_terms_move(runs: list[MeasuredRun]) -> None:
    start = replace(HIDDEN, host=3e6, per_sequence=123.0)
    found = fit(runs[:1], start=start, delay=DELAY, free=["host"], starts=1, draws=10)
    assert found.free == ("host",)
    assert replace(found.cost, host=3e6) == start
    assert found.cost.host == pytest.approx(HIDDEN.host, abs=3e5)
    assert found.delay == DELAY


@pytest.mark.slow
def test_no_term_leaves_what_is_possible(runs: list[MeasuredRun]) -> None:
    """The cache is read at 60 ns a position: a fence at 40 is where the fit ends, and it says so."""
    start = replace(HIDDEN, per_context_token=20.0)
    ends = {"per_context_token": (10.0, 40.0)}
    found = fit(runs[1:2], start=start, delay=DELAY, free=["per_context_token"], within=ends, starts=1, draws=10)
    assert found.cost.per_context_token == pytest.approx(40, rel=0.03)
    assert all(10 <= end <= 40 * (1 + 1e-9) for end in found.intervals["per_context_token"])
    assert Prior(start, ends).edges(found.cost) == [
        "per_context_token: at the end of its range, 50% of the data sheet"
    ]


def test_what_is_possible_is_the_data_sheet_and_a_share_of_it() -> None:
    model, device = architecture("llama-2-7b"), DEVICES["h100-sxm"]
    known = prior(model, device)
    layer = 4 * 4096**2 + 3 * 4096 * 11008
    fastest = 2 * (32 * layer + 4096 * 32000) / 3.35e12 * 1e9
    assert known.within["weight_pass"] == pytest.approx((fastest, 2 * fastest), rel=0.01)
    cached = 2 * 32 * 4096 * 2 / 3.35e12 * 1e9
    assert known.within["per_context_token"] == pytest.approx((cached, 2 * cached), rel=0.01)
    product = 2 * 32 * layer / 989e12 * 1e9
    assert known.within["per_token"] == pytest.approx((product, 2.5 * product), rel=0.03)
    for term, (low, high) in known.within.items():
        assert low < getattr(known.start, term) < high
    assert known.edges(replace(known.start, weight_pass=fastest)) == [
        "weight_pass: at the end of its range, 100% of the data sheet"
    ]
    # Four devices read a quarter each; experts are small matrices, whose rate has no lower end.
    assert prior(architecture("llama-2-70b"), device, tensor_parallel=4).within.keys() == known.within.keys()
    assert "per_token" not in prior(architecture("mixtral-8x7b"), device, tensor_parallel=2).within
    with pytest.raises(ValueError, match="has layers with a window"):
        prior(replace(model, window=4096, windowed_layers=16), device)


@pytest.mark.slow
def test_latencies_from_queue_entry_know_no_delay(runs: list[MeasuredRun]) -> None:
    here = replace(measured("here", requests(2, 80, (64, 1500), 4), HIDDEN, delay=0), at_client=False)
    found = fit([here], starts=1, draws=10)
    assert "delay" not in found.free
    assert found.delay == 0


def test_what_cannot_be_fitted_is_refused(runs: list[MeasuredRun]) -> None:
    few = replace(runs[0], measured=runs[0].measured.head(19))
    with pytest.raises(ValueError, match="light: 19 requests with a latency to compare; expected at least 20"):
        fit([few])
    with pytest.raises(ValueError, match="warmth is no term; expected some of host, weight_pass"):
        fit(runs[:1], free=["warmth"])


def test_the_last_of_a_part_are_not_compared_for_they_met_those_who_are_missing(runs: list[MeasuredRun]) -> None:
    busy = runs[1]
    settled = busy.settled(100)
    assert 50 < len(settled) < 100
    cut = busy.measured["sent_s"].iloc[99]
    assert (settled["sent_s"] + settled["e2e_s"]).max() <= cut
    assert busy.settled(busy.requests) is busy.measured
    # Those who failed have no row, but were sent: the 100th request stays the 100th.
    some = replace(busy, measured=busy.measured.iloc[20:])
    assert some.settled(100)["id"].tolist() == settled["id"][settled["rank"] >= 20].tolist()


def test_errors_are_by_metric_and_statistic_of_the_same_requests() -> None:
    found = pd.DataFrame({"id": list("abc"), "e2e_s": [1.0, 2.0, 6.0]})
    said = pd.DataFrame({"e2e_s": [2.2, 1.0]}, index=["b", "a"])
    table = compared(found, said, ["e2e_s"]).set_index("statistic")
    assert table.loc["mean", "n"] == 2
    assert table.loc["mean", "measured"] == pytest.approx(1.5)
    assert table.loc["mean", "error"] == pytest.approx(1.6 / 1.5 - 1)


def test_the_first_guess_is_of_the_right_size(runs: list[MeasuredRun]) -> None:
    found = initial_estimate([each.measured for each in runs])
    for term in ("weight_pass", "per_token", "per_context_token"):
        assert 0.2 < getattr(found, term) / getattr(HIDDEN, term) < 5, term


def test_identical_columns_are_tied_and_a_column_of_nothing_is_unseen() -> None:
    lot = np.random.default_rng(0)
    one, other = lot.normal(size=(2, 50))
    jacobian = np.column_stack([one, one + 1e-3 * lot.normal(size=50), other, np.zeros(50)])
    found = identify(["a", "b", "c", "d"], jacobian, 0.01 * lot.normal(size=50))
    assert found.tied == (("a", "b"),)
    assert found.unseen == ("d",)
    assert found.relative_error["c"] == pytest.approx(0.01 / np.sqrt(50), rel=0.3)
    assert found.lines() == [
        "d: not seen in these data; any small value fits",
        "a and b: not told apart; only their mixture is known",
    ]


def test_the_descent_finds_the_valley_and_one_outlier_does_not_move_it() -> None:
    def residuals(point: np.ndarray) -> np.ndarray:
        straight = np.array([10 * (point[1] - point[0] ** 2), 1 - point[0]])  # Rosenbrock
        return np.append(straight, 5.0)

    ends = np.full(2, 6.0)
    found = descend(residuals, np.array([-1.2, 1.0]), 1.0, 400, -ends, ends)
    assert loss(residuals(found), 1.0) - loss(np.array([0.0, 0.0, 5.0]), 1.0) < 0.02
    # With the first coordinate kept below a half, the best is at that end: there the second is a quarter.
    found = descend(residuals, np.array([-1.2, 1.0]), 1.0, 400, -ends, np.array([0.5, 6.0]))
    assert found == pytest.approx([0.5, 0.25], abs=0.05)


@pytest.mark.slow
def test_what_runs_of_one_setting_differ_by_widens_the_intervals() -> None:
    """A machine that was 25% slow and then 20% fast: neither run alone has an interval that holds its usual speed."""
    asked = requests(5, 60, (64, 1500), seed=8)
    slow, fast = (
        measured(name, asked, replace(HIDDEN, host=0.0, weight_pass=HIDDEN.weight_pass * speed))
        for name, speed in (("slow", 1.25), ("fast", 0.8))
    )
    start = replace(HIDDEN, host=0.0)
    settled = {"start": start, "free": ["weight_pass"], "delay": DELAY, "starts": 1, "draws": 100}
    alone, both = fit([slow], **settled), fit([slow, fast], **settled)
    assert alone.intervals["weight_pass"][0] > 1.1 * HIDDEN.weight_pass
    assert alone.noise.repeats == ()
    assert any(line.startswith("one run cannot tell how much the same run would differ") for line in alone.lines())
    low, high = both.intervals["weight_pass"]
    assert low < 0.8 * HIDDEN.weight_pass < 1.25 * HIDDEN.weight_pass < high
    assert both.noise.repeats[0].runs == ("slow", "fast")
    assert both.noise.repeats[0].spread["tpot_s"] > 0.4
