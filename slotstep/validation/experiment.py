"""The experiment of `slotstep validate --replay`: a scenario predicted, replayed and compared on a real engine.

Prepares what `calibrate.validate.experiment` needs: clients, scheduler, prompts, and the plan of the measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrate.fit.fit_run import Form
from calibrate.measure.measure import Plan
from calibrate.replay.live import Pacing
from calibrate.replay.prompts import prompts
from calibrate.validate.experiment import Subject, Trial, trial
from sim.request import Request
from slotstep.runs import build, engine_replay
from slotstep.runs.clients import clients, limited
from slotstep.runs.workload import LoadedWorkload
from slotstep.runs.workload import load as load_workload
from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario

SHORTEST = 128
"""Least positions of the longest measured sequence, so that the effect of context is measured."""


def validate(
    scenario: Scenario,
    model: str,
    *,
    workload: LoadedWorkload | None = None,
    pacing: Pacing | None = None,
    tolerance: float | None = None,
    rounds: int = 4,
    seconds: float = 120.0,
    form: Form = "table",
    folder: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> tuple[Trial, dict[str, Any]]:
    """Calibrate on an engine, simulate and replay the scenario's requests there; the comparison, and the device.

    pacing     CPU time on a CPU and wall time on a GPU if not given
    tolerance  allowed relative error of the busy time: 0.2 on a CPU, 0.03 on a GPU, 0.02 on the synthetic engine
    options    engine options as in `engine_replay.opened`

    Raises BadInput as `engine_replay`.
    """
    made = load_workload(scenario) if workload is None else workload
    sent = limited(made.requests, scenario.limits)
    if scenario.engine.prefix_cache:
        build.check_blocks(scenario, sent)
    max_model_len = max_model_len_of(scenario, sent)
    spare = scenario.engine.slots * -(-max_model_len // scenario.engine.page_size)
    with engine_replay.opened(scenario, model, sent, spare, max_model_len, **options) as device:
        clock: Pacing = pacing or ("cpu" if device.has_cpu_time else "wall")
        allowed = tolerance or (0.02 if model == engine_replay.SYNTHETIC else 0.2 if device.has_cpu_time else 0.03)
        subject = Subject(
            lambda: clients(sent, scenario.clients, scenario.engine.page_size),
            lambda: build.stepwise(scenario, numbered=True),
            prompts(device.vocabulary, scenario.seed),
        )
        about = {**device.about, "page_size": scenario.engine.page_size}
        try:
            with engine_replay.as_bad_input():
                found = trial(
                    subject,
                    device.engine,
                    device.vocabulary,
                    about,
                    plan_of(scenario, sent, rounds, seconds, clock),
                    first_page=device.pages,
                    pacing=clock,
                    tolerance=allowed,
                    form=form,
                    folder=folder,
                    say=say,
                )
        except ValueError as error:
            raise BadInput(str(error)) from None
        return found, about | {"clock": clock}


def max_model_len_of(scenario: Scenario, sent: Sequence[Request]) -> int:
    """The longest sequence in positions, in the replay and in the measurement."""
    reaches = [engine_replay.reach(scenario, request) for request in sent]
    return max(SHORTEST, *reaches) + 34


def plan_of(scenario: Scenario, sent: Sequence[Request], rounds: int, seconds: float, clock: Pacing) -> Plan:
    """A measurement plan that covers the expected steps: batches up to the slots, chunks up to the longest prompt."""
    slots, prompt = scenario.engine.slots, max((request.prompt for request in sent), default=1)
    tokens = max(8, min(scenario.engine.token_budget, prompt + slots))
    return Plan(
        batch=slots,
        tokens=tokens,
        rounds=rounds,
        ragged=8,
        factor=1.5 if slots <= 16 else 2.0,
        seconds=seconds,
        seed=scenario.seed,
    )
