"""A core with one wrong line is found: some random scenario then has another log, or the core gives up."""

from random import Random

import core_build
import pytest
from core_scenarios import core_scenarios
from hypothesis import HealthCheck, Phase, find, settings

from sim.service.bounds import NONE
from sim.service.cluster import simulate
from sim.service.core import binding, run
from sim.service.pools import Pool

pytestmark = [pytest.mark.slow, pytest.mark.kernels]

MUTANTS = {
    "an arrival cuts no run": ("replica.h", "if (core->unsettled && ", "if (0 && "),
    "a run is cut a step late": ("replica.h", "< elapsed)", "<= elapsed)"),
    "a reason is forgotten": ("scheduler.h", "batch->reason = NO_MEMORY;", ""),
    "a preempted sequence joins at the end": ("scheduler.h", "needs(core, s), 1);", "needs(core, s), 0);"),
    "the watermark is ignored": ("scheduler.h", "core->config.spare", "0"),
    "the oldest is preempted": ("scheduler.h", "return core->running.last;", "return core->running.first;"),
    "recomputed positions count as prefill": ("scheduler.h", "if (again > 0) {", "if (again > tokens) {"),
    "pages of a run are counted a step early": ("decoding.h", "core->step + j", "core->step + j - 1"),
    "durations are cut off": ("cost.h", "rint(exact)", "floor(exact)"),
    "the tail of a chunk costs nothing": ("cost.h", "if (tokens > last) {", "if (tokens < 0) {"),
    "cached pages are evicted late": ("extents.h", "core->cached - core->free);", "core->cached - core->free - 1);"),
}  # fmt: skip


def differs(scenario):
    """Whether the core gives up, or writes another log than the Python kernel."""
    scheduler, reference = scenario.scheduler(), scenario.scheduler()
    if not run.simulated(scenario.clients(), Pool([(scheduler, scenario.cost)]), None, NONE):
        return True
    log, expected = scheduler.log, simulate(scenario.clients(), reference, scenario.cost, macro=False)
    return log.sha256() != expected.sha256() or log.cache != expected.cache or log.rests != expected.rests


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_line_is_found(name, tmp_path, monkeypatch):
    library = core_build.build(tmp_path, MUTANTS[name])
    monkeypatch.setattr(binding, "library", lambda: library)
    several = settings(
        max_examples=4000, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
    )
    find(core_scenarios(), differs, settings=several, random=Random(7))  # raises NoSuchExample if there is none
