"""Options of policies in a scenario: of what kind each is, is for its policy to say."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import slotstep
from policies.admissions import ADMISSIONS
from slotstep.runs import policy as policies
from slotstep.scenario.engine import RULES, Engine
from traces.errors import BadInput

FOREIGN = """
from policies.base.entry import Entry, Option
from policies.fcfs import FirstComeFirstServed
from sim.policy.base import Order

class Mine(FirstComeFirstServed):
    durations = ("patience",)

    def __init__(self, window=3, patience=0, quantum="short"):
        super().__init__()
        self.given = (window, patience, quantum)

def make(seed, order, lease, tenants):
    made = order()
    made.given = (*made.given, lease, tenants)
    return made

ENTRY = Entry(
    "Wraps.",
    make,
    {"order": Option("fcfs", "order"), "lease": Option(0, "duration"), "tenants": Option({}, times=("lease",))},
)
"""


@pytest.fixture
def foreign_policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A class and an entry that wraps it, in the current directory."""
    (tmp_path / "kinds_of_mine.py").write_text(FOREIGN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("kinds_of_mine", None)


def under(policy: Any) -> Any:
    """The order of a scenario with this policy, and of the scenario that it resolves to."""
    scenario = slotstep.parse({"workload": {"requests": [{"output": 1}]}, "cost": {"unit": "1ms"}, "policy": policy})
    assert slotstep.resolved(slotstep.parse(slotstep.resolved(scenario))) == slotstep.resolved(scenario)
    return policies.order(scenario)


@pytest.mark.usefixtures("foreign_policies")
def test_the_kind_of_an_option_is_that_of_its_policy() -> None:

    # `window`, `unit`, `within` are durations of other policies; `quantum` is a count of two others.
    mine = {"window": 5, "patience": "1.5s", "quantum": "3s"}
    assert under({"kinds_of_mine:Mine": mine}).given == (5, 1_500_000_000, "3s")
    wrapped = {
        "order": {"kinds_of_mine:Mine": mine},
        "lease": "2ms",
        "tenants": {"lease": {"lease": "1us", "unit": 4}},
    }
    assert under({"kinds_of_mine:ENTRY": wrapped}).given == (
        *(5, 1_500_000_000, "3s"),
        2_000_000,
        {"lease": {"lease": 1000, "unit": 4}},
    )
    with pytest.raises(BadInput, match=r"policy: order.kinds_of_mine:Mine.patience: found 5, without a unit"):
        under({"kinds_of_mine:ENTRY": {"order": {"kinds_of_mine:Mine": {"patience": 5}}}})


def test_tenants_may_be_called_as_options_are() -> None:
    deadlines = {"edf": {"tenants": {"within": {"within": "1s"}}}}
    order = under({"tenant_slots": {"tenants": {"window": 2, "unit": 3}, "order": deadlines}})
    assert order.tenants == {"window": 2, "unit": 3}
    assert order.inner.deadlines.tenants == {"within": 10**9}


def reserving(engine: dict[str, Any], **options: Any) -> slotstep.Scenario:
    """64 requests at once of 5 tokens in, 5 out, in steps of 10 ms; four slots are kept for b, who sends nothing."""
    requests = [{"prompt": 5, "output": 5}] * 64
    policy = {"reserved": {"tenants": {"b": 4}, **options}}
    return slotstep.parse(
        {"workload": {"requests": requests}, "engine": engine, "cost": {"unit": "10ms"}, "policy": policy}
    )


def test_reserved_slots_are_among_all_that_the_engine_has() -> None:
    # 60 go at once and take 50 ms, the other 4 after them. Of 64 slots with 32 active, 28 + 28 + 8.
    assert slotstep.run(reserving({"slots": 64})).summary["makespan_s"] == 0.1
    assert slotstep.run(reserving({"slots": 64, "max_active": 32})).summary["makespan_s"] == 0.15
    assert slotstep.run(reserving({"slots": 64}, of=8)).summary["makespan_s"] == 0.8
    resolved = slotstep.parse(slotstep.resolved(reserving({"slots": 64})))
    assert slotstep.run(resolved).summary["makespan_s"] == 0.1


def test_every_replica_keeps_slots_of_its_own_number() -> None:
    # 32 requests each: in 12 open slots of 16 three rounds, in 60 of 64 one.
    given = slotstep.resolved(reserving({"slots": 64})) | {"cluster": {"replicas": [{"engine": {"slots": 16}}, {}]}}
    found = slotstep.run(slotstep.parse(given))
    assert [log.steps for log in found.logs] == [15, 5]


def test_no_more_slots_can_be_shared_out_than_run_at_once() -> None:
    with pytest.raises(BadInput, match=r"policy: reserved.of is 65; expected at most the 64 requests"):
        reserving({"slots": 64}, of=65)
    with pytest.raises(BadInput, match=r"policy: of is 4; expected more than the 4 that are reserved"):
        reserving({"slots": 4})


@pytest.mark.parametrize("name", RULES)
def test_a_rule_with_a_section_has_the_defaults_of_its_entry(name: str) -> None:
    chosen = Engine.model_validate({"admission": name})
    assert chosen.rule == (name, {key: option.default for key, option in ADMISSIONS[name].options.items()})
