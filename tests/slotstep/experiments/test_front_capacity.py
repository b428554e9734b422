"""Capacity: objectives as written, a search that brackets, verdicts with confidence, an engine with a known limit."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

import slotstep
from reports.figures.capacity import capacity_figure
from reports.figures.png import write_png
from slotstep.cli.app import main
from slotstep.experiments.capacity import search
from slotstep.experiments.capacity.answer import find
from slotstep.experiments.capacity.content import content_of
from slotstep.experiments.capacity.judge import judge
from slotstep.experiments.capacity.objective import Objective, parse
from slotstep.experiments.capacity.question import Question, variants
from slotstep.experiments.capacity.trial import Measured, Trial, attempt
from slotstep.runs.resolution import with_transforms
from traces.errors import BadInput

EXAMPLES = ROOT / "examples"
LIMIT = EXAMPLES / "limit.yaml"
THEORY = 16 / ((0.005 + 16 * 0.001) * 50)
"""Answers a second that the engine of limit.yaml can finish: B / ((a + b B) E[output])."""


@pytest.mark.parametrize(
    ("text", "objective"),
    [
        ("p99 ttft < 1s", Objective("p99 ttft < 1s", "ttft_s", 0.01, 1.0)),
        (" P99.9 TPOT<50ms ", Objective("p99.9 tpot < 50ms", "tpot_s", 0.001, 0.05)),
        ("max wait < 2m", Objective("max wait < 2m", "wait_s", 0.0, 120.0)),
        ("mean e2e < 10s", Objective("mean e2e < 10s", "e2e_s", None, 10.0)),
        ("attainment > 95%", Objective("attainment > 95%", None, pytest.approx(0.05))),
    ],
)
def test_an_objective_is_read_as_it_is_written(text: str, objective: Objective) -> None:
    assert parse(text) == objective


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ttft < 1s", "expected such as 'p99 ttft < 1s'"),
        ("p99 ttfs < 1s", "ttfs is unknown; did you mean ttft?"),
        ("p99 ttft < 1", "found '1', without a unit; expected a duration"),
        ("p99 ttft < 0s", "found 0; expected a duration above 0"),
        ("p0 ttft < 1s", "found p0; expected a percentile above 0 and at most 100"),
        ("attainment > 100%", "found 100%; expected a share between 0% and 100%"),
    ],
)
def test_an_objective_that_is_none_is_refused(text: str, reason: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert str(caught.value).startswith(f"--slo {text!r}: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize("start", [0.1, 1.0, 17.2, 400.0])
def test_a_search_closes_in_on_the_edge(start: float) -> None:
    asked: list[float] = []

    def good(at: float) -> bool:
        asked.append(at)
        return at <= 17.3

    found = search.largest(good, start, 0.02)
    assert found.good is not None
    assert found.bad is not None
    assert found.good <= 17.3 < found.bad <= 1.02 * found.good
    assert len(asked) < 20


def test_a_search_without_an_edge_says_which_end_is_open() -> None:
    assert search.largest(lambda _: True, 1.0, 0.02).bad is None
    assert search.largest(lambda _: False, 1.0, 0.02).good is None


@pytest.mark.parametrize("needed", [1, 2, 3, 7, 8, 13, 20])
def test_the_fewest_are_found(needed: int) -> None:
    assert search.fewest(lambda n: n >= needed, 20) == search.Bracket(needed, needed - 1 or None)
    assert search.fewest(lambda n: n >= needed, needed - 1 or 1).good == (1 if needed == 1 else None)


P99 = Objective("p99 ttft < 1s", "ttft_s", 0.01, 1.0)


def trials(*late: float, grows: int = 0) -> list[Trial]:
    return [
        Trial(seed, 1, (Measured(share, 0.5),), seed < grows, {}, {"slots": 1.0}) for seed, share in enumerate(late)
    ]


def test_an_objective_is_met_or_missed_only_when_luck_cannot_explain_it() -> None:
    # Means 0.5%, 2%, and 0.9% with a deviation of 0.5% over four runs: t(0.95, 3) = 2.353, so up to 1.49%.
    assert judge(1, trials(0.004, 0.006, 0.005, 0.005), [P99], 0.95).met is True
    assert judge(1, trials(0.019, 0.021, 0.020, 0.020), [P99], 0.95).met is False
    unsure = judge(1, trials(0.004, 0.014, 0.006, 0.012), [P99], 0.95)
    assert unsure.met is None
    assert unsure.binding == "p99 ttft < 1s"
    late = unsure.judged[0].late
    assert late is not None
    deviation = math.sqrt(sum((x - 0.009) ** 2 for x in (0.004, 0.014, 0.006, 0.012)) / 3)
    assert late.high == pytest.approx(0.009 + 2.3534 * deviation / 2, rel=1e-4)


def test_a_queue_that_grows_in_every_run_is_a_miss_and_in_some_the_majority_decides_at_last() -> None:
    none_late = (0.0, 0.0, 0.0, 0.0)
    assert judge(1, trials(*none_late, grows=4), [P99], 0.95, last=False).met is False
    assert judge(1, trials(*none_late, grows=1), [P99], 0.95, last=False).met is None
    assert judge(1, trials(*none_late, grows=1), [P99], 0.95, last=True).met is True
    point = judge(1, trials(*none_late, grows=2), [P99], 0.95, last=True)
    assert (point.met, point.binding) == (False, "a queue that grows")


def test_a_request_that_never_got_a_token_is_late() -> None:
    settings = slotstep.resolved(
        slotstep.parse(
            {
                "workload": {"requests": [{"output": 10}] * 4},
                "engine": {"slots": 1},
                "cost": {"unit": "1ms"},
                "limits": {"queue": 1},
            }
        )
    )
    # All come at once: one runs, one waits, two are turned away.
    found = attempt(settings, 0, [parse("p50 ttft < 1h"), parse("mean ttft < 1h"), parse("p99 itl < 1ms")])
    assert found.summary["requests"]["rejected"] == 3
    assert found.measured[0] == Measured(3 / 4, math.inf)
    assert found.measured[1] == Measured(None, math.inf)
    assert found.measured[2] == Measured(0.0, pytest.approx(0.001))


def test_transforms_come_after_what_is_done_already() -> None:
    rate = [{"rate": 5.0}]
    keys = {"trace": {"azure": "x"}, "between": ["0s", "1s"], "first": 10, "scale_rate": 2.0}
    steps = [{"between": ["0s", "1s"]}, {"first": 10}, {"scale_rate": 2.0}, {"rate": 5.0}]
    assert with_transforms(keys, rate) == {"trace": {"azure": "x"}, "transforms": steps}
    listed = {"trace": {"azure": "x"}, "transforms": ["shuffle_lengths"], "scale_rate": 1.0}
    assert with_transforms(listed, rate) == {
        "trace": {"azure": "x"},
        "transforms": ["shuffle_lengths", {"rate": 5.0}],
    }
    assert with_transforms(keys, []) == keys


@pytest.fixture(scope="module")
def limit() -> dict[str, Any]:
    """The answer for the engine whose limit is known."""
    question = Question(slotstep.load(LIMIT), price=2.0, jobs=1, seeds=8)
    return content_of(question, *find(question))


@pytest.mark.slow
def test_the_limit_of_an_engine_is_found_within_two_percent(limit: dict[str, Any]) -> None:
    (answer,) = limit["answers"]
    assert answer["at"] == pytest.approx(THEORY, rel=0.02)
    assert answer["at"] < answer["next"] <= 1.02 * answer["at"]
    assert (answer["binding"], answer["bound_by"]) == ("a queue that grows", "slots")
    assert limit["sentences"][0] == f"limit: {answer['at']:.1f} req/s fcfs; limited by slots."


def test_the_curve_rises_to_the_knee_and_the_cost_follows_from_the_price(limit: dict[str, Any]) -> None:
    (answer,) = limit["answers"]
    points = [point["at"] for point in answer["curve"]]
    assert points == sorted(points)
    assert points[0] < 0.6 * answer["at"]
    assert points[-1] > 1.1 * answer["at"]
    knee = answer["knee"]
    assert knee["cost_per_million_output_tokens"] == pytest.approx(2.0 / (3600 * knee["output_tokens_per_s"]) * 1e6)
    rows = {row: time for row, time in knee["slot_seconds"].items() if row != "bought"}
    assert sum(rows.values()) == pytest.approx(knee["slot_seconds"]["bought"])


def test_the_figure_and_the_object_are_written(limit: dict[str, Any], tmp_path: Path) -> None:
    json.dumps(limit, allow_nan=False)
    (picture,) = write_png({"capacity": capacity_figure(limit)}, tmp_path)
    assert picture.read_bytes().startswith(b"\x89PNG")


SMALL = ["workload.synthetic.requests=400", "workload.synthetic.output={geometric: {mean: 20}}"]


@pytest.mark.parametrize(("load", "needed"), [(0.6, 1), (1.4, 2), (2.6, 3)])
def test_so_many_replicas_as_the_load_needs(load: float, needed: int) -> None:
    rate = load * THEORY * 50 / 20
    scenario = slotstep.load(LIMIT, [*SMALL, f"workload.synthetic.arrivals.gamma.rate={rate}"])
    question = Question(scenario, find="replicas", jobs=1, seeds=4)
    (answer,), _ = find(question)
    assert answer.knee is not None
    assert answer.knee.at == needed


@pytest.mark.slow
def test_the_best_slots_are_those_that_bear_most() -> None:
    # B / (a + b B) grows with B.
    scenario = slotstep.load(LIMIT, [*SMALL, "workload.synthetic.requests=150"])
    question = Question(scenario, find="slots", slots=(4, 16), jobs=1, seeds=4, tolerance=0.1)
    content = content_of(question, *find(question))
    few, many = content["answers"]
    assert (few["slots"], many["slots"], content["best"]) == (4, 16, 1)
    assert few["at"] == pytest.approx(4 / ((0.005 + 4 * 0.001) * 20), rel=0.15)
    assert many["at"] > few["at"]


GROUPS = {"replicas": [{"engine": {"pages": 50000}}, {"engine": {"slots": 2, "token_budget": 64}}]}


@pytest.mark.slow
def test_slots_and_budgets_are_those_of_every_replica() -> None:
    scenario = slotstep.load(LIMIT, [*SMALL, "workload.synthetic.requests=150"])
    apart = slotstep.parse({**slotstep.resolved(scenario), "cluster": GROUPS})
    (own,) = variants(Question(apart))
    assert (own.slots, own.budget) == (None, None)
    asked = variants(Question(apart, slots=(1, 8), budgets=(32, 512)))
    assert [(each.slots, each.budget) for each in asked] == [(1, 32), (1, 512), (8, 32), (8, 512)]
    for each in asked:
        engines = each.scenario.cluster.engines(each.scenario.engine)
        assert [(engine.slots, engine.token_budget) for engine in engines] == [(each.slots, each.budget)] * 2
        assert engines[0].pages == 50000
    # Two replicas bear twice B / ((a + b B) E[output]).
    question = Question(apart, slots=(1, 8), budgets=(512,), jobs=1, seeds=4, tolerance=0.1)
    for slots, (answer,) in zip((1, 8), zip(find(question)[0], strict=True), strict=True):
        assert answer.knee is not None
        assert answer.knee.at == pytest.approx(2 * slots / ((0.005 + slots * 0.001) * 20), rel=0.2)


def test_the_slots_that_are_tried_are_those_around_what_replicas_have() -> None:
    scenario = slotstep.load(LIMIT)
    alike = {"replicas": [{"count": 2, "engine": {"slots": 4}}]}
    found = variants(Question(slotstep.parse({**slotstep.resolved(scenario), "cluster": alike}), find="slots"))
    assert [each.slots for each in found] == [1, 2, 4, 8, 16]


def test_a_profile_is_that_of_every_replica_and_pages_that_fit_are_counted_anew() -> None:
    settings = slotstep.resolved(slotstep.load(LIMIT))
    settings |= {"cost": {"profile": "h100-llama-3.1-8b"}, "engine": {"fit": 0.9, "slots": 8}}
    settings["cluster"] = {"replicas": [{"cost": {"unit": "1ms"}, "engine": {"pages": 100}}, {}]}
    (other,) = variants(Question(slotstep.parse(settings), profiles=("h200-llama-3.1-8b",), slots=(512,)))
    assert other.profile is not None
    assert other.profile.name == "h200-llama-3.1-8b"
    plain = {**settings, "cost": {"profile": "h200-llama-3.1-8b"}, "engine": {"fit": 0.9, "slots": 512}}
    fitting = slotstep.parse({**plain, "cluster": {}}).engine.pages
    assert fitting != slotstep.parse({**settings, "cluster": {}}).engine.pages
    assert [each.pages for each in other.scenario.cluster.engines(other.scenario.engine)] == [100, fitting]
    (own,) = variants(Question(slotstep.parse(settings)))
    assert own.profile is None


def test_each_profile_has_the_defaults_of_its_own_device() -> None:
    settings = slotstep.resolved(slotstep.load(LIMIT))
    settings |= {
        "cost": {"profile": "h100-llama-3.1-8b"},
        "engine": {"preset": "vllm", "max_num_batched_tokens": 999},
    }
    del settings["cluster"]
    del settings["policy"]
    settings["engine"]["policy"] = "priority"
    profiles = ("h200-llama-3.1-8b", "a100-llama-3.1-8b")
    found = variants(Question(slotstep.parse(settings), profiles=profiles))
    assert [(each.slots, each.budget, each.policy) for each in found] == [
        (999, 999, "priority"),
        (256, 999, "priority"),
    ]
    given = {**settings, "engine": {"preset": "vllm", "max_num_seqs": 300}}
    found = variants(Question(slotstep.parse(given), profiles=profiles, budgets=(512,)))
    assert [(each.slots, each.budget) for each in found] == [(300, 512)] * 2


def test_a_price_is_paid_for_the_gpus_of_every_replica() -> None:
    settings = slotstep.resolved(slotstep.load(LIMIT, ["workload.synthetic.requests=20"]))
    two = {"cost": {"profile": "rtxpro6000-qwen3-32b-tp2"}}
    settings["cluster"] = {"replicas": [{"count": 3}, {"count": 2, **two}]}
    assert attempt(settings, 0, []).devices == 3 + 2 * 2


@pytest.mark.slow
def test_an_objective_binds_before_the_engine_does_and_the_policy_matters() -> None:
    scenario = slotstep.load(LIMIT, [*SMALL, "workload.synthetic.output={lognormal: {mean: 20, cv: 2}}"])
    slo = (parse("p90 wait < 20ms"),)
    question = Question(scenario, objectives=slo, policies=("fcfs", "sjf"), jobs=1, seeds=4, tolerance=0.05)
    fcfs, sjf = content_of(question, *find(question))["answers"]
    assert fcfs["at"] < sjf["at"] < 1.05 * THEORY * 50 / 20
    assert fcfs["binding"] == "p90 wait < 20ms"


@pytest.mark.slow
def test_a_trace_is_resampled_and_the_answer_is_the_same_again(tmp_path: Path) -> None:
    lines = [f"2023-11-16 18:{15 + n // 60:02}:{n % 60:02}.5000000,{50 + n % 7},{10 + n % 30}" for n in range(240)]
    trace = tmp_path / "trace.csv"
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(lines) + "\n")
    scenario = slotstep.load(LIMIT, trace=trace)
    question = Question(scenario, "rate", (parse("mean e2e < 1s"),), jobs=1, seeds=4, resample="20s", tolerance=0.1)
    first, again = (content_of(question, *find(question)) for _ in range(2))
    assert first == again
    assert first["resampled"] == "20s"
    assert first["answers"][0]["knee"] is not None
    assert any("put together anew from its pieces of 20s" in sentence for sentence in first["sentences"])


def test_the_command_prints_the_answer(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = ["capacity", LIMIT, "--slo", "p95 ttft < 100ms", "--seeds", "4", "--tolerance", "0.2", "--jobs", "1"]
    command += ["--set", "workload.synthetic.requests=100", "--price", "3", "--out", tmp_path]
    with pytest.raises(SystemExit) as ended:
        main([str(part) for part in command])
    assert not ended.value.code
    printed = capsys.readouterr().out
    assert "limit: " in printed
    assert "Met: p95 ttft < 100ms (at 95% confidence each, from at most 4 runs a point" in printed
    written_ = json.loads((tmp_path / "capacity.json").read_text())
    assert written_["objectives"] == ["p95 ttft < 100ms"]
    assert (tmp_path / "capacity.png").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--slo", "ttft"], "--slo 'ttft': expected such as"),
        (["--slo", "attainment > 90%"], "objectives: found none; an attainment needs some"),
        (["--policies", "fcfs,fcfs"], "--policies fcfs,fcfs: expected different names separated by commas"),
        (["--slots", "4,x"], "--slots 4,x: expected whole numbers of at least 1 separated by commas"),
        (["--resample", "10"], "--resample 10: found '10', without a unit"),
        (
            ["--set", "clients={closed: {clients: 4}}"],
            "clients.closed: clients that wait for their answers have no rate",
        ),
        (["--profiles", "h1000-llama-3.1-8b"], "did you mean"),
    ],
)
def test_a_question_without_answer_gets_one_line(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["capacity", str(LIMIT), *arguments])
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert reason in printed.err
    assert printed.err.count("\n") == 1
