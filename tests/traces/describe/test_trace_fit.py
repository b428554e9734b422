"""A fitted workload is like its trace: in its statistics, judged by a million draws, and on an engine."""

import numpy as np
import pandas as pd
import pytest

from policies import registry
from sim.accounting import metrics
from sim.cost.forms import Roofline
from sim.engine.config import EngineConfig
from sim.engine.scheduler import Scheduler
from sim.memory.pool import PagePool
from sim.policy.base import Optimistic, Policy
from sim.request import SECOND
from sim.service.cluster import simulate
from traces import BadInput, load
from traces.describe.fit import fit
from traces.describe.fit_arrivals import rate_pieces
from traces.describe.fit_lengths import length_law
from traces.reading.tabulate import tabulate
from traces.synthetic import (
    Fixed,
    Gamma,
    Lognormal,
    Piece,
    Piecewise,
    Poisson,
    Quantiles,
    Stream,
    Synthetic,
    generate,
    parse,
)
from traces.synthetic.arrivals import ArrivalTimes
from traces.transforms import operations

PUBLIC = {
    "azure_2023/AzureLLMInferenceTrace_conv.csv.gz": 1,
    "azure_2023/AzureLLMInferenceTrace_code.csv.gz": 1,
    "burstgpt/burstgpt_1_first400.csv": 200,
    "burstgpt/burstgpt_3_first118.csv": 200,
    "mooncake/conversation_trace.jsonl.gz": 1,
}
"""The traces, and how much faster than in the file they are sent, so that an engine has something to do."""

BOUNDS = {"mean": 0.05, "p50": 0.05, "p99": 0.05, "rate /s": 0.01, "dispersion per 1 s": 0.10}
ENGINE = Roofline(
    weight_pass=1e7, per_token=4.4e4, per_context_token=53, per_chunk_work=0.32, per_sequence=1e4, host=8e5
)

pytestmark = pytest.mark.no_cover  # many runs of what other tests cover: watching each line would treble the time


@pytest.fixture(scope="module")
def fitted(data):
    """Every public trace and its law, each fitted once."""
    traces = {name: load(data / "traces" / name) for name in PUBLIC}
    return {name: (trace, fit(trace.workload)) for name, trace in traces.items()}


def occupancy(requests, slots):
    policy = Policy(registry.build("fcfs", {}, 0), Optimistic())
    scheduler = Scheduler(policy, PagePool(40_000, 16), EngineConfig(slots=slots, token_budget=8192))
    return metrics.summary(simulate(requests, scheduler, ENGINE), None)["occupancy"]


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLIC)
def test_the_law_has_the_statistics_of_the_trace(fitted, name):
    _, law = fitted[name]
    judged = {}
    for each in law.distances:
        bound = BOUNDS.get(each.name, BOUNDS.get(each.name.partition(" ")[2]))
        if bound is not None:
            assert abs(each.relative) <= bound, each
            judged[each.name] = each
    assert len(judged) == 8


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLIC)
def test_the_law_keeps_an_engine_as_busy_as_the_trace(fitted, name):
    trace, law = fitted[name]
    drawn = generate(parse(law.workload), 0)
    both = (operations.scale_rate(requests, PUBLIC[name]) for requests in (trace.requests(), drawn))
    asked, found = (occupancy(requests, 64) for requests in both)
    assert abs(asked - found) <= 0.03


def test_distances_are_those_of_the_draws(fitted):
    """The law as it is written, drawn by the generator, has the means that the fit states."""
    _, law = fitted["azure_2023/AzureLLMInferenceTrace_conv.csv.gz"]
    requests = generate(parse({**law.workload, "requests": 100_000}), 5)
    stated = {each.name: each.law for each in law.distances}
    assert np.mean([r.prompt for r in requests]) == pytest.approx(stated["prompt mean"], rel=0.02)
    assert np.mean([r.output for r in requests]) == pytest.approx(stated["output mean"], rel=0.02)


def test_what_the_law_leaves_out_is_said(fitted):
    _, law = fitted["mooncake/conversation_trace.jsonl.gz"]
    assert law.left_out == ["contents of prompts: those of the workload share nothing"]
    assert "ticks" in law.workload["arrivals"]


def test_a_plain_workload_is_recognised():
    spec = Synthetic(requests=20_000, arrivals=Poisson(8), prompt=Fixed(512), output=Lognormal(300, sigma=0.6))
    law = fit(tabulate(generate(spec, 1))[0].workload).workload
    (piece,) = law["arrivals"]["piecewise"]["pieces"]
    assert piece["rate"] == pytest.approx(8, rel=0.03)
    assert law["arrivals"]["piecewise"]["cv"] == pytest.approx(1, abs=0.05)
    assert law["prompt"] == {"fixed": {"tokens": 512}}
    assert law["output"]["lognormal"]["sigma"] == pytest.approx(0.6, rel=0.03)
    assert "correlation" not in law


def test_the_cv_of_bursty_gaps_is_recognised():
    spec = Synthetic(requests=30_000, arrivals=Gamma(20, 2.0), output=Fixed(1))
    law = fit(tabulate(generate(spec, 1))[0].workload).workload
    assert law["arrivals"]["piecewise"]["cv"] == pytest.approx(2, rel=0.1)


def test_a_change_of_the_rate_is_found_where_it_is():
    law = Piecewise((Piece(5, 300 * SECOND), Piece(20, 100 * SECOND)))
    times = ArrivalTimes(law, law.rate, Stream(0, "test")).until(399 * SECOND)
    first, *more, last = rate_pieces(times - times[0])
    assert first.rate == pytest.approx(5, rel=0.1)
    assert last.rate == pytest.approx(20, rel=0.1)
    assert not more
    assert first.lasts == pytest.approx(300 * SECOND, rel=0.02)


def test_a_steady_rate_is_one_piece():
    found = [len(rate_pieces(ArrivalTimes(Poisson(9), 9, Stream(s, "t")).until(500 * SECOND))) for s in range(20)]
    assert sum(pieces > 1 for pieces in found) <= 3


@pytest.mark.parametrize("law", [Lognormal(400, sigma=1.2), Quantiles((0, 0.7, 1), (3, 9, 5000)), Fixed(3)], ids=repr)
def test_a_law_of_lengths_is_close_to_its_sample(law):
    values = law.sample(Stream(0, "test"), 30_000)
    found = length_law(values)
    drawn = found.sample(Stream(1, "test"), 200_000)
    assert drawn.mean() == pytest.approx(values.mean(), rel=0.02)
    for q in (0.5, 0.99):
        assert np.quantile(drawn, q) == pytest.approx(np.quantile(values, q), rel=0.03)


def test_lengths_without_arrivals_are_fitted_and_arrive_at_once():
    law = fit(pd.DataFrame({"prompt": [7, 7, 7], "output": [3, 3, 3]}))
    assert law.workload == {"requests": 3, "arrivals": "at_once", "prompt": {"fixed": {"tokens": 7}}} | {
        "output": {"fixed": {"tokens": 3}}
    }
    assert law.left_out[0].startswith("arrivals: the trace has none")
    drawn = generate(parse(law.workload), seed=0)
    assert [(request.arrival, request.prompt, request.output) for request in drawn] == [(0, 7, 3)] * 3


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"prompt": [1, 2], "arrival_ns": [0, 2]}, "has no output lengths; a workload can be fitted only to"),
        ({"prompt": [1, 2], "output": [1, 2], "arrival_ns": [4, 4]}, "2 requests arrive at once; expected"),
        ({"prompt": [1], "output": [1], "arrival_ns": [4]}, "1 request; expected at least two"),
    ],
)
def test_what_cannot_be_fitted_is_refused(columns, expected):
    with pytest.raises(BadInput) as caught:
        fit(pd.DataFrame(columns))
    assert str(caught.value).startswith(expected)
