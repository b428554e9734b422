"""Scenarios with one key broken: a result or a BadInput of one line, never else, and neither takes long.

SLOTSTEP_SCENARIO_FUZZ_SECONDS sets how long to go on (default 5); the seeds count from 0, so a failure names its own.
"""

import os
import signal
import time
from contextlib import contextmanager

import numpy as np
import pytest
from scenario_mutations import broken, scenario

import slotstep
from slotstep.scenario import document
from traces import BadInput

pytestmark = pytest.mark.no_cover  # many runs of what other tests cover: watching each line would treble the time

SECONDS = float(os.environ.get("SLOTSTEP_SCENARIO_FUZZ_SECONDS", "5"))
LONGEST = 20


@contextmanager
def at_most(seconds):
    """Raises TimeoutError in what computes for longer, by CPU time: what else the machine does is left out."""

    def late(*_):
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def outcome(mapping):
    """What became of a scenario: its result with all that is made of it, or the complaint."""
    try:
        result = slotstep.run(slotstep.parse(document.parse(document.dump(mapping))))
    except BadInput as error:
        said = str(error)
        assert "\n" not in said, said
        assert len(said) < 1000, said
        return error
    assert sum(len(frame) for frame in (result.requests, result.steps, result.slots)) > 0
    assert result.summary["requests"]["injected"] == len(result.requests)
    return result


@pytest.mark.slow
def test_scenarios_with_one_key_broken_give_a_result_or_a_line():
    seed = ran = 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or seed < 20:
        random = np.random.default_rng(seed)
        mapping, key, value = broken(scenario(random), random)
        try:
            with at_most(LONGEST):
                ran += not isinstance(outcome(mapping), BadInput)
        except Exception as error:
            pytest.fail(f"seed {seed}, {key} = {value!r}: {type(error).__name__}: {error}")
        seed += 1
    assert seed > ran > seed // 10


@pytest.mark.slow
def test_scenarios_are_valid_until_a_key_is_broken():
    results = [outcome(scenario(np.random.default_rng(seed))) for seed in range(40)]
    assert sum(isinstance(result, BadInput) for result in results) < 8
