"""Runs that would never end: one line that names key, value and limit, or a result; and leave to go beyond."""

from __future__ import annotations

import itertools

import pytest

import slotstep
from slotstep.cli import app
from slotstep.experiments.sweeps import grid
from slotstep.experiments.sweeps.sweep import name_of
from slotstep.runs import size_limits
from slotstep.scenario import document
from traces.errors import BadInput

TINY = {"workload": {"requests": [{"prompt": 10, "output": 10}]}, "cost": {"unit": "6ms"}}


def refused(mapping):
    """The one line in which a scenario is refused, when it is read or when it runs."""
    with pytest.raises(BadInput) as found:
        slotstep.run(slotstep.parse(mapping))
    assert "\n" not in str(found.value)
    return str(found.value)


def synthetic(**more):
    return {"arrivals": {"poisson": {"rate": 10000}}, "prompt": 5, "output": 5, **more}


def test_an_output_of_two_thousand_million_tokens_is_refused_where_it_would_run():
    asked = {"workload": {"requests": [{"prompt": 10, "output": 2 * 10**9}]}, "cost": {"unit": "1ms"}}
    line = refused({**asked, "engine": {"pages": 10**9}})
    assert line == (
        "scenario: workload: the output of request 1 is 2,000,000,000 tokens, and each is a step; "
        "expected at most 5,000,000, or --yes (in Python allow_large=True)"
    )
    assert slotstep.run(slotstep.parse(asked)).summary["requests"]["rejected"] == 1  # it does not fit into 8192 pages


def test_pages_of_a_thousand_million_tokens_are_refused_before_there_is_a_pool():
    line = refused({**TINY, "engine": {"page_size": 10**9}})
    assert line.startswith("scenario: engine.page_size is 1,000,000,000; expected at most 1,048,576")
    groups = [{"count": 2}, {"engine": {"page_size": 10**9}}]
    assert "1,000,000,000" in refused({**TINY, "cluster": {"replicas": groups}})


def test_replicas_are_counted_before_they_are_made():
    for many in (10**9, [{"count": 1}, {"count": 10**9}]):
        assert "replicas; expected at most 1,024" in refused({**TINY, "cluster": {"replicas": many}})


def test_a_thousand_million_pages_are_no_work():
    assert slotstep.run(slotstep.parse({**TINY, "engine": {"pages": 10**9}})).summary["requests"]["finished"] == 1


def test_a_page_may_be_a_million_tokens_long_and_the_run_is_that_of_any_page_it_fits_in():
    wide, narrow = (
        slotstep.run(slotstep.parse({**TINY, "engine": {"page_size": size, "pages": 4}})).summary["makespan_s"]
        for size in (2**20, 32)
    )
    assert wide == narrow == 0.06


def test_sessions_say_how_many_requests_they_are():
    turns = synthetic(duration="1s", sessions={"turns": {"fixed": 10000}, "think": "1ms"})
    turns["arrivals"] = {"ticks": {"arrivals": {"batches": {"rate": 10000, "size": 10000}}, "every": "1ms"}}
    turns["duration"] = "1.5s"
    line = refused({"workload": {"synthetic": turns}, "cost": {"unit": "1ms"}})
    assert line == (
        "scenario: workload.synthetic.sessions: 10,000 of 10,000 turns each are 100,000,000 requests; "
        "expected at most 200,000, or --yes (in Python allow_large=True)"
    )


@pytest.mark.parametrize(
    ("extent", "said"),
    [
        ({"requests": 10**9}, "workload.synthetic.requests is 1,000,000,000"),
        (
            {"duration": "1000000h"},
            "synthetic.duration is 3.6e+09 s, in which 36,000,000,000,000 requests arrive at 10000/s",
        ),
        (
            {"requests": 20, "prompt": 10**8, "prefixes": {"groups": 1, "tokens": 1}},
            "20 prompts that share content have 125,000,020 blocks of 16 tokens",
        ),
    ],
)
def test_a_workload_that_is_too_large_is_refused_before_it_is_drawn(extent, said):
    line = refused({"workload": {"synthetic": synthetic(**extent)}, "cost": {"unit": "1ms"}})
    assert said in line
    assert "expected at most" in line


def test_a_replica_that_fails_before_any_step_can_end_makes_no_progress():
    failures = {"mtbf": "100us", "mttr": "1ms", "work": "resumed"}
    line = refused({**TINY, "cluster": {"failures": failures}})
    assert "no progress: cluster.failures.mtbf is 100us, and 10," in line
    assert "0 of 1 requests had ended" in line


def test_failures_that_let_a_step_end_now_and_then_are_bounded(monkeypatch):
    monkeypatch.setattr(size_limits, "RUN", size_limits.Bounds(failures=500))
    failures = {"mtbf": "2ms", "mttr": "1ms", "work": "resumed"}
    lasting = {**TINY, "workload": {"requests": [{"prompt": 10, "output": 1000}]}, "cluster": {"failures": failures}}
    line = refused(lasting)
    assert "cluster.failures.mtbf is 2ms: replicas had failed" in line
    assert "expected at most 500" in line


def test_a_million_retries_a_nanosecond_apart_are_bounded(monkeypatch):
    assert size_limits.RUN.retries == 100_000
    monkeypatch.setattr(size_limits, "RUN", size_limits.Bounds(retries=20_000))
    two = [{"output": 10**6}, {"output": 5}, {"output": 5}]
    again = {"attempts": 10**6, "initial": "1ns", "factor": 1}
    storm = {"workload": {"requests": two}, "limits": {"queue": 1}, "clients": {"retry": again}}
    line = refused({**storm, "engine": {"slots": 1, "pages": 10**5}, "cost": {"unit": "10ms"}})
    assert "clients.retry.attempts is 1,000,000: 20," in line
    assert "expected at most 20,000" in line


def test_steps_of_a_run_are_bounded_where_they_are_not_known_before(monkeypatch):
    monkeypatch.setattr(size_limits, "RUN", size_limits.Bounds(steps=1000))
    one_by_one = [{"output": 600, "arrival": f"{place}s"} for place in range(4)]
    mapping = {"workload": {"requests": one_by_one}, "cost": {"unit": "1ms"}}
    assert "expected at most 1,000, or --yes" in refused(mapping)
    assert slotstep.run(slotstep.parse(mapping, allow_large=True)).summary["steps"] == 2400
    assert slotstep.run(slotstep.parse(mapping), allow_large=True).summary["steps"] == 2400


def test_a_run_does_not_go_on_after_146_years():
    pools = {"prefill": {}, "decode": {}, "transfer": {"per_token": "2562047h"}}
    affine = {"affine": {"per_context_token": "2562047h"}}
    for part in ({"cost": {"unit": "200000h"}}, {"cost": affine}, {"cluster": pools}):
        assert "the run goes on after 146 years of its own time" in refused({**TINY, **part})


NINE_TIMES = "{after}: &{after} [*{name}, *{name}, *{name}, *{name}, *{name}, *{name}, *{name}, *{name}, *{name}]\n"
ALIASES = "a: &a [1, 2]\n" + "".join(
    NINE_TIMES.format(name=name, after=after) for name, after in itertools.pairwise("abcdefghijk")
)


@pytest.mark.slow
def test_aliases_that_stand_for_more_than_anybody_wrote_are_refused(tmp_path):
    file = tmp_path / "aliases.yaml"
    file.write_text(ALIASES)
    with pytest.raises(BadInput, match="aliases stand for more than 1,000,000 values"):
        slotstep.load(file)
    file.write_text(document.dump(TINY))
    with pytest.raises(BadInput, match=r"--set name=.*values inside values"):
        slotstep.load(file, [f"name={'[' * 3000}"])


def test_few_aliases_are_read_as_what_they_stand_for():
    assert document.parse("{a: &a [1, 2], b: *a, c: {<<: {d: *a}}}") == {"a": [1, 2], "b": [1, 2], "c": {"d": [1, 2]}}


def test_a_replay_numbers_no_more_pages_than_there_is_memory_for(tmp_path, capsys):
    file = tmp_path / "wide.yaml"
    file.write_text(document.dump({**TINY, "engine": {"pages": 10**9}}))
    with pytest.raises(SystemExit) as ended:
        app.main(["replay", str(file), "--model", "synthetic"])
    assert ended.value.code == 2
    assert "engine.pages is 1,000,000,000, and a replay numbers them; expected at most" in capsys.readouterr().err


def test_runs_of_a_sweep_and_seeds_are_counted_before_the_first():
    with pytest.raises(BadInput, match="grid: 1,000,000,000 runs; expected at most 100,000, or --yes"):
        grid.read({"scenario": TINY, "seeds": 10**9})
    with pytest.raises(BadInput, match="seeds: 2,000,000,000 runs; expected at most 100,000"):
        slotstep.replicate(slotstep.parse(TINY), ["fcfs", "sjf"], 10**9)


def test_yes_is_no_part_of_what_names_the_run_of_a_sweep():
    plain, allowed = (grid.read({"scenario": TINY, "seeds": 2}, allow_large=each) for each in (False, True))
    assert [point.scenario.allow_large for point in allowed.points] == [True, True]
    assert [name_of(point) for point in plain.points] == [name_of(point) for point in allowed.points]


COMMANDS = [["run"], ["compare", "--policies", "fcfs,sjf"], ["capacity", "--slo", "p99 ttft < 1s"]]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_what_is_too_large_and_yes_lets_it_run(command, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(size_limits, "MOST_STEPS", 8)
    file = tmp_path / "ten.yaml"
    file.write_text(document.dump(TINY))
    with pytest.raises(SystemExit) as ended:
        app.main([command[0], str(file), *command[1:]])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"error: {file}: workload: the output of request 1 is 10 tokens")
    if command[0] != "capacity":
        with pytest.raises(SystemExit) as ended:
            app.main([command[0], str(file), "--yes", *command[1:]])
        assert ended.value.code == 0


def test_a_scenario_keeps_its_permission():
    allowed = slotstep.parse(TINY, allow_large=True)
    assert slotstep.parse(slotstep.resolved(allowed)).allow_large
    assert not slotstep.parse(TINY).allow_large
