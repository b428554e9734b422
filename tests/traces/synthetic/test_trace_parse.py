"""Synthetic workloads as a scenario writes them."""

import pytest

from traces import BadInput
from traces.synthetic import (
    AtOnce,
    Batches,
    Bimodal,
    Diurnal,
    Empirical,
    Exponential,
    Fixed,
    Gamma,
    Geometric,
    Lognormal,
    Markov,
    Pareto,
    Patience,
    Piece,
    Piecewise,
    Poisson,
    Population,
    Prefixes,
    Quantiles,
    Sessions,
    Synthetic,
    Tenant,
    Ticks,
    Uniform,
    Weibull,
    Zipf,
    parse,
)


def mapping(**changes):
    return {"requests": 10, "arrivals": {"poisson": {"rate": 20}}, "output": 5, **changes}


def test_a_plain_workload():
    assert parse(
        {
            "requests": 1000,
            "arrivals": {"poisson": {"rate": 20}},
            "prompt": {"fixed": 512},
            "output": {"lognormal": {"mean": 200, "cv": 1.0}},
        }
    ) == Synthetic(requests=1000, arrivals=Poisson(20), prompt=Fixed(512), output=Lognormal(200, cv=1.0))


def test_a_workload_with_tenants():
    assert parse(
        {
            "duration": 60_000_000_000,
            "arrivals": {"gamma": {"rate": 20, "cv": 3}},
            "tenants": {
                "a": {"weight": 3, "prompt": {"fixed": 100}, "output": {"geometric": {"mean": 50}}},
                "b": {"arrivals": {"poisson": {"rate": 2}}, "output": 9},
            },
        }
    ) == Synthetic(
        duration=60_000_000_000,
        arrivals=Gamma(20, 3),
        tenants=(
            Tenant("a", weight=3, prompt=Fixed(100), output=Geometric(50)),
            Tenant("b", arrivals=Poisson(2), output=Fixed(9)),
        ),
    )


def test_a_tenant_may_say_nothing_and_a_prompt_is_one_token_by_default():
    spec = parse(mapping(tenants={"a": None, 7: {}}))
    assert spec.tenants == (Tenant("a"), Tenant("7"))
    assert spec.prompt == Fixed(1)


@pytest.mark.parametrize(
    ("written", "law"),
    [
        (512, Fixed(512)),
        ({"fixed": 512}, Fixed(512)),
        ({"fixed": {"tokens": 512}}, Fixed(512)),
        ({"lognormal": {"mean": 9.5, "sigma": 1}}, Lognormal(9.5, sigma=1)),
        ({"exponential": {"mean": 9}}, Exponential(9)),
        ({"geometric": 9}, Geometric(9)),
        ({"pareto": {"alpha": 1.5, "minimum": 10}}, Pareto(1.5, 10)),
        ({"pareto": {"alpha": 1.5, "minimum": 10, "maximum": 99}}, Pareto(1.5, 10, 99)),
        ({"empirical": [1, 2]}, Empirical((1, 2))),
        ({"empirical": {"values": [1, 2], "weights": [3, 4]}}, Empirical((1, 2), (3, 4))),
        (
            {"bimodal": {"first": 10, "second": {"geometric": {"mean": 5}}, "weight": 0.9}},
            Bimodal(Fixed(10), Geometric(5), 0.9),
        ),
        ({"uniform": {"minimum": 3, "maximum": 5}}, Uniform(3, 5)),
        ({"zipf": {"alpha": 1.1, "maximum": 99}}, Zipf(1.1, 99)),
        ({"quantiles": {"shares": [0, 1], "values": [3, 5]}}, Quantiles((0, 1), (3, 5))),
    ],
)
def test_every_law_of_lengths_can_be_written(written, law):
    assert parse(mapping(output=written)).output == law


@pytest.mark.parametrize(
    ("written", "law"),
    [
        ({"weibull": {"rate": 5, "shape": 0.5}}, Weibull(5, 0.5)),
        ({"batches": {"rate": 5, "size": 10}}, Batches(5, 10)),
        ({"diurnal": {"rate": 5, "amplitude": 0.5, "peak": 7}}, Diurnal(5, 0.5, peak=7)),
        ({"piecewise": [{"rate": 5, "lasts": 9}]}, Piecewise((Piece(5, 9),))),
        ({"piecewise": {"pieces": [{"rate": 5, "lasts": 9}], "cv": 2}}, Piecewise((Piece(5, 9),), cv=2)),
        (
            {"markov": {"states": [{"rate": 5, "lasts": 9}, {"rate": 0, "lasts": 1}]}},
            Markov((Piece(5, 9), Piece(0, 1))),
        ),
        ({"ticks": {"arrivals": {"poisson": 5}, "every": 9}}, Ticks(Poisson(5), 9)),
    ],
)
def test_every_law_of_arrival_can_be_written(written, law):
    assert parse(mapping(arrivals=written)).arrivals == law


def test_sessions_prefixes_correlation_and_a_population_can_be_written():
    assert parse(
        mapping(
            correlation=0.2,
            sessions={"turns": {"geometric": 4}, "think": 9, "context": 100},
            prefixes={"groups": 3, "tokens": 50, "skew": 1},
            patience={"lasts": 30, "share": 0.5},
            block_size=4,
            population={"tenants": 5},
        )
    ) == Synthetic(
        requests=10,
        arrivals=Poisson(20),
        output=Fixed(5),
        correlation=0.2,
        sessions=Sessions(Geometric(4), 9, context=100),
        prefixes=Prefixes(3, Fixed(50), 1),
        patience=Patience(30, 0.5),
        block_size=4,
        population=Population(5),
    )


@pytest.mark.parametrize("written", ["at_once", {"at_once": {}}, {"at_once": None}])
def test_a_backlog_can_be_written(written):
    assert parse(mapping(arrivals=written)).arrivals == AtOnce()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"output": {"lognormal": {"mu": 3}}}, "synthetic.output.lognormal.mu: unknown key; did you mean mean?"),
        ({"requets": 3}, "synthetic.requets: unknown key; did you mean requests?"),
        ({"arrivals": {"poison": {"rate": 1}}}, "synthetic.arrivals.poison: unknown law; did you mean poisson?"),
        ({"arrivals": "poisson"}, "synthetic.arrivals.poisson.rate is missing"),
        ({"arrivals": {"at_once": 3}}, "synthetic.arrivals.at_once is 3; expected keys and values"),
        ({"arrivals": 20}, "synthetic.arrivals is 20; expected one law, such as {poisson: {rate: 20}}"),
        (
            {"arrivals": {"poisson": {"rate": -1}}},
            "synthetic.arrivals.poisson.rate is -1; expected a number from 1e-09 to 1e+09",
        ),
        (
            {"prompt": None},
            "synthetic.prompt is None; expected one law, such as a number of tokens or {geometric: {mean: 50}}",
        ),
        (
            {"prompt": True},
            "synthetic.prompt is True; expected one law, such as a number of tokens or {geometric: {mean: 50}}",
        ),
        ({"prompt": 0}, "synthetic.prompt.fixed.tokens is 0; expected a whole number from 1 to 2147483648"),
        ({"prompt": "512"}, "synthetic.prompt is '512'; expected one law, such as a number of tokens or"),
        (
            {"output": {"fixed": 1, "geometric": 2}},
            "synthetic.output is {'fixed': 1, 'geometric': 2}; expected one law, such as",
        ),
        ({"output": {}}, "synthetic.output is {}; expected one law, such as"),
        (
            {"output": {"geometric": {"mean": "50"}}},
            "synthetic.output.geometric.mean is '50'; expected a number from 1 to",
        ),
        ({"output": {"lognormal": {"mean": 9}}}, "synthetic.output.lognormal.sigma is missing; expected sigma or cv"),
        (
            {"output": {"bimodal": {"first": 1, "second": {"geometric": {"mean": 0}}, "weight": 0.5}}},
            "synthetic.output.bimodal.second.geometric.mean is 0; expected a number from 1 to",
        ),
        (
            {"output": {"empirical": {"values": [1, "x"]}}},
            "synthetic.output.empirical.values[1] is 'x'; expected a whole number",
        ),
        (
            {"arrivals": {"markov": [{"rate": 5}]}},
            "synthetic.arrivals.markov.states.0.lasts is missing",
        ),
        (
            {"arrivals": {"markov": [{"rate": 5, "last": 5}]}},
            "synthetic.arrivals.markov.states.0.last: unknown key; did you mean lasts?",
        ),
        ({"arrivals": {"markov": 5}}, "synthetic.arrivals.markov.states is 5; expected a list such as"),
        (
            {"arrivals": {"ticks": {"arrivals": "at_once", "every": 5}}},
            "synthetic.arrivals.ticks.arrivals is 'at_once'",
        ),
        ({"sessions": {"turns": 2}}, "synthetic.sessions.think is missing"),
        ({"sessions": 3}, "synthetic.sessions is 3; expected keys and values"),
        ({"sessions": {"turns": 2, "think": -1}}, "synthetic.sessions.think is -1; expected a whole number from 0"),
        ({"prefixes": {"groups": 0, "tokens": 5}}, "synthetic.prefixes.groups is 0; expected a whole number from 1"),
        ({"correlation": 2}, "synthetic.correlation is 2; expected a number from -1 to 1"),
        ({"block_size": 16}, "synthetic.block_size is given without sessions or prefixes"),
        ({"population": {"tenants": 2}, "tenants": {"a": {}}}, "synthetic.population is given beside tenants"),
        (
            {"arrivals": "at_once", "sessions": {"turns": 2, "think": 1}},
            "synthetic.sessions need arrivals with a rate; found at_once",
        ),
        ({"requests": "1e6"}, "synthetic.requests is '1e6'; expected a whole number from 1 to"),
        ({"duration": 5}, "synthetic.requests is given beside duration; expected either requests or duration"),
        ({"tenants": ["a"]}, "synthetic.tenants is ['a']; expected keys and values"),
        ({"tenants": {"a": 3}}, "synthetic.tenants.a is 3; expected keys and values"),
        ({"tenants": {"a": {"wieght": 3}}}, "synthetic.tenants.a.wieght: unknown key; did you mean weight?"),
        ({"tenants": {"a": {"weight": -3}}}, "synthetic.tenants.a.weight is -3; expected a number from"),
        ({"tenants": {"a": {"prompt": {"fixed": 0}}}}, "synthetic.tenants.a.prompt.fixed.tokens is 0; expected"),
        ({"tenants": {"a": {}, 1: {}, "1": {}}}, "synthetic.tenants.1 is given twice; expected one of each name"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(changes, expected):
    with pytest.raises(BadInput) as caught:
        parse(mapping(**changes))
    assert str(caught.value).startswith(expected)
    assert "\n" not in str(caught.value)


def test_the_path_starts_where_the_caller_says():
    with pytest.raises(BadInput, match=r"^workload\.synthetic\.output\.fixed\.tokens is 0;"):
        parse(mapping(output=0), where="workload.synthetic")


def test_what_is_no_mapping_is_refused():
    with pytest.raises(BadInput, match=r"^synthetic is \[1\]; expected keys and values$"):
        parse([1])
