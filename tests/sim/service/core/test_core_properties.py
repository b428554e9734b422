"""The compiled core writes the log of the Python kernel, to the byte, in every mode that it covers."""

import pytest
from core_scenarios import core_scenarios
from hypothesis import event, given

from sim.accounting.frames import requests_frame, steps_frame
from sim.accounting.metrics import summary
from sim.log.events import Kind
from sim.service.bounds import NONE
from sim.service.cluster import simulate
from sim.service.core import binding, run
from sim.service.pools import Pool

TABLES = ("event_table", "stay_table", "stint_rows", "chunk_table", "maximal_runs", "step_durations")


def on_the_core(scenario):
    """The log of the compiled core; fails if it does not cover the scenario."""
    scheduler = scenario.scheduler()
    assert run.simulated(scenario.clients(), Pool([(scheduler, scenario.cost)]), None, NONE), "not run on the core"
    return scheduler.log


def in_python(scenario):
    """The log of the Python kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binding, "library", lambda: None)
        return simulate(scenario.clients(), scenario.scheduler(), scenario.cost)


@pytest.mark.property
@given(core_scenarios())
def test_the_core_writes_the_log_of_the_python_kernel(scenario):
    compiled, python = on_the_core(scenario), in_python(scenario)
    kinds = set(python.event_table()[:, 1].tolist())
    event(f"depth {scenario.config.depth}, {scenario.policy}, {type(scenario.admission).__name__}")
    event(f"cache: {scenario.cached}, hits: {python.cache is not None and bool(summary(python)['tokens']['cached'])}")
    event(f"{type(scenario.cost).__name__}, preempts: {Kind.PREEMPTED in kinds}, rejects: {Kind.REJECTED in kinds}")
    assert compiled.events == python.events
    assert compiled.chunks == python.chunks
    assert compiled.stays == python.stays
    assert compiled.stints == python.stints
    assert compiled.run_table()["start"].tolist() == python.run_table()["start"].tolist()
    assert compiled.ran.runs == python.ran.runs
    assert compiled.ran.durations == python.ran.durations
    assert compiled.ran.growth == python.ran.growth
    assert (compiled.reasons, compiled.ended) == (python.reasons, python.ended)
    assert (compiled.rests, compiled.cache) == (python.rests, python.cache)
    assert compiled.requests == python.requests
    assert compiled.sha256() == python.sha256()
    assert summary(compiled, {"ttft": 500}) == summary(python, {"ttft": 500})
    assert requests_frame(compiled).equals(requests_frame(python))
    assert steps_frame(compiled).equals(steps_frame(python))
