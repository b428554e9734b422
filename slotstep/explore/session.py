"""One page at work: the scenario, the run that is pinned, and the report of the last change."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from threading import Lock
from typing import TYPE_CHECKING, Any

from slotstep.explore.controls import REQUESTS, Control, changed, controls, engine_values, loaded, read, shortened
from slotstep.runs.resolution import resolved, unpinned
from slotstep.runs.simulation import run
from slotstep.scenario import document
from traces.errors import BadInput

if TYPE_CHECKING:
    from reports.page.report import Run
    from slotstep.runs.result import Result
    from slotstep.scenario.schema import Scenario

LONGEST = 20.0
"""Seconds after which a simulation is given up."""


@dataclass(frozen=True)
class Simulated:
    """A run, the values it was made with by key, and the scenario with them, of all requests, as YAML."""

    result: Result
    values: Mapping[str, Any]
    scenario: str


class Session:
    """Simulates a scenario with the values that are asked for; one at a time."""

    def __init__(self, scenario: Scenario, source: str, requests: int) -> None:
        """Simulate the scenario as it is, and pin that run. Raises BadInput as `slotstep.run`."""
        self.scenario = scenario
        self.source = source
        self.controls: list[Control] = controls(scenario, requests)
        self.lock = Lock()
        self.pinned = self.simulated({})
        self.report = self.page(self.pinned)

    def change(self, given: object, pin: bool) -> dict[str, Any]:
        """Simulate with the values `given` as text by key, and pin the run if asked.

        Returns `said`, a sentence, `scenario`, the YAML, and `values`, what the run was made with, as text by key;
        or only `error`, one line, for values that cannot be simulated.
        """
        with self.lock:
            began = time.monotonic()
            try:
                made = self.simulated(read(given, self.controls))
                if pin:
                    self.pinned = made
                self.report = self.page(made)
            except BadInput as error:
                return {"error": " ".join(str(error).split())}
            took = time.monotonic() - began
        said = f"{self.extent(made)} Simulated and drawn in {took:.1f} s."
        values = {key: str(value) for key, value in made.values.items()}
        return {"said": said, "scenario": made.scenario, "values": values}

    def simulated(self, given: Mapping[str, Any]) -> Simulated:
        """The run with these values."""
        settings = changed(self.scenario, given)
        whole = loaded(settings, self.source)
        own = {control.key: control.value for control in self.controls}
        values: dict[str, Any] = {**own, **engine_values(whole), **given}
        part = loaded(shortened(settings, values[REQUESTS]), self.source)
        end = time.monotonic() + LONGEST

        def stop(_: object) -> None:
            if time.monotonic() > end:
                raise BadInput(f"{self.source}: takes longer than {LONGEST:g} s; expected fewer requests")

        return Simulated(run(part, watch=stop), values, document.dump(unpinned(whole)))

    def extent(self, made: Simulated) -> str:
        """How many of the requests were simulated, in a sentence."""
        sent, asked = made.result.summary["requests"]["injected"], made.values[REQUESTS]
        if sent < asked:
            return f"All {sent:,} requests are simulated."
        return f"The first {sent:,} requests are simulated; the copied scenario has all."

    def page(self, made: Simulated) -> str:
        """The report of a run, beside that which is pinned, if it is another."""
        from reports.page.html import page
        from reports.page.report import Report
        from reports.text.comparison_sentences import labels

        if made is self.pinned:
            runs = [report_run("pinned", made)]
        else:
            runs = [report_run("pinned", self.pinned), report_run("changed", made)]
            assert labels([run.summary for run in runs]) == [run.name for run in runs]
        different = [
            f"{key}: {before} -> {made.values[key]}"
            for key, before in self.pinned.values.items()
            if made.values[key] != before
        ]
        remarks = [f"The runs differ in {', '.join(different)}."] if different else []
        return page(Report(self.scenario.name, runs, (), [self.extent(made), *remarks]), version("slotstep"))


def report_run(role: str, made: Simulated) -> Run:
    """A run as a report has it, named by its role and its policy."""
    from reports.page.report import Run

    result = made.result
    name = f"{role} ({result.policy})"
    summary = {**result.summary, "policy": name, "preset": None}
    scenario = document.dump(resolved(result.scenario))
    profile = result.profile.text() if result.profile else None
    return Run(name, summary, result.requests, result.steps, result.slots, scenario, profile)
