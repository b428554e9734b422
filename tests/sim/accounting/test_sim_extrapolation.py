"""Steps beyond what was measured: counted by hand in a run of two requests."""

from __future__ import annotations

import pytest
from sim_stories import engine, job, run

from sim.accounting.extrapolation import beyond
from sim.log.events import EventLog


@pytest.fixture(params=[True, False], ids=["macro", "stepped"])
def log(request: pytest.FixtureRequest) -> EventLog:
    """a (prompt 10, output 4) and b (prompt 20, output 3): prompts, then contexts 30, 32, and 12 when b has ended."""
    made: EventLog = run([job("a", 4, prompt=10), job("b", 3, prompt=20)], engine(slots=2), macro=request.param)
    return made


def test_the_steps_beyond_a_bound_are_counted(log: EventLog) -> None:
    assert beyond([log], {"context": 31}) == {"any": 1 / 4, "context": 1 / 4}
    assert beyond([log], {"sequences": 1}) == {"any": 2 / 4, "sequences": 2 / 4}
    assert beyond([log], {"tokens": 29}) == {"any": 1 / 4, "tokens": 1 / 4}
    assert beyond([log], {"position": 19}) == {"any": 1 / 4, "position": 1 / 4}
    assert beyond([log], {"sequences": 1, "context": 31, "tokens": 30}) == {
        "any": 2 / 4,
        "sequences": 2 / 4,
        "context": 1 / 4,
        "tokens": 0.0,
    }


def test_the_steps_of_all_replicas_count(log: EventLog) -> None:
    assert beyond([log, log], {"context": 31}) == {"any": 1 / 4, "context": 1 / 4}


def test_without_bounds_nobody_knows(log: EventLog) -> None:
    assert beyond([log], {}) is None
    with pytest.raises(ValueError, match="batch: unknown bound"):
        beyond([log], {"batch": 3})
