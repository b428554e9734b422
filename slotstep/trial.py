"""A scenario's prediction put to the test on a real engine: what `slotstep validate --replay` runs.

From a scenario to what `calibrate.trial` needs: who sends, the scheduler, the tokens, and how much is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrate.fit_run import Form
from calibrate.live import Pacing
from calibrate.measure import Plan
from calibrate.prompts import prompts
from calibrate.trial import Subject, Trial, trial
from sim.request import Request
from slotstep import engine, live
from slotstep.crowd import clients, limited
from slotstep.workload import Made
from slotstep.workload import load as load_workload
from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.scenario import Scenario

SHORTEST = 128
"""Positions that a sequence can have while measuring, at least: a shorter grid tells nothing of context."""


def validate(
    scenario: Scenario,
    model: str,
    *,
    workload: Made | None = None,
    pacing: Pacing | None = None,
    tolerance: float | None = None,
    rounds: int = 4,
    seconds: float = 120.0,
    form: Form = "table",
    folder: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> tuple[Trial, dict[str, Any]]:
    """Calibrate on an engine, simulate and replay the scenario's requests there; what came out, and where it was.

    By CPU time on a CPU and by the wall on a GPU, unless `pacing` says so. The busy time has to be within
    `tolerance`: 0.2 on a CPU, 0.03 on a GPU, 0.02 on the synthetic engine. Raises BadInput as `slotstep.live`.
    """
    made = load_workload(scenario) if workload is None else workload
    sent = limited(made.requests, scenario.limits)
    if scenario.engine.prefix_cache:
        engine.check_blocks(scenario, sent)
    longest = longest_of(scenario, sent)
    spare = scenario.engine.slots * -(-longest // scenario.engine.page_size)
    with live.opened(scenario, model, sent, spare, longest, **options) as device:
        clock: Pacing = pacing or ("cpu" if device.has_cpu_time else "wall")
        allowed = tolerance or (0.02 if model == live.SYNTHETIC else 0.2 if device.has_cpu_time else 0.03)
        subject = Subject(
            lambda: clients(sent, scenario.clients, scenario.engine.page_size),
            lambda: engine.scheduler(scenario, numbered=True),
            prompts(device.vocabulary, scenario.seed),
        )
        about = {**device.about, "page_size": scenario.engine.page_size}
        try:
            with live.as_bad_input():
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


def longest_of(scenario: Scenario, sent: Sequence[Request]) -> int:
    """The most positions of a sequence, in the replay and while measuring."""
    reaches = [live.reach(scenario, request) for request in sent]
    return max(SHORTEST, *reaches) + 34


def plan_of(scenario: Scenario, sent: Sequence[Request], rounds: int, seconds: float, clock: Pacing) -> Plan:
    """Steps as they will come: batches up to the slots, chunks up to the longest prompt or the budget."""
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
