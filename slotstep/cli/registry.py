"""The commands by name. A new one is its file and one line here; `trace info` is a command of the group `trace`.

A command is a function with typer's annotations. Others are those of installed packages, and `module:function` of the
current directory: `slotstep my_tools:ledger chat.yaml`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sim.registry import Registry

Command = Callable[..., Any]


def function(name: str, found: Any) -> Command:
    """The function of a command. Raises ValueError for anything else."""
    if not callable(found):
        raise ValueError(f"{name!r} is {found!r}; expected a function with typer's annotations")
    command: Command = found
    return command


COMMANDS: Registry[Command] = Registry(
    "command",
    "slotstep.commands",
    {
        "policies": "slotstep.cli.reports.policies:policies",
        "profiles": "slotstep.cli.calibrate.profiles:profiles",
        "pages": "slotstep.cli.calibrate.pages:pages",
        "replay": "slotstep.cli.run.replay:replay",
        "validate": "slotstep.cli.run.validate:validate",
        "report": "slotstep.cli.reports.report:report",
        "check": "slotstep.cli.experiments.check:check",
        "watch": "slotstep.cli.watch.watch:watch",
        "sweep": "slotstep.cli.experiments.sweep:sweep",
        "results": "slotstep.cli.experiments.results:results",
        "plot": "slotstep.cli.experiments.plot:plot",
        "reproduce": "slotstep.cli.experiments.reproduce:reproduce",
        "study": "slotstep.cli.experiments.study:study",
        "plan": "slotstep.cli.experiments.plan:plan",
        "capacity": "slotstep.cli.experiments.capacity:capacity",
        "run": "slotstep.cli.run.run:run",
        "compare": "slotstep.cli.run.compare:compare",
        "explore": "slotstep.cli.run.explore:explore",
        "parity": "slotstep.cli.run.parity:parity",
        "trace info": "slotstep.cli.traces.info:info",
        "trace fit": "slotstep.cli.traces.fit:fit",
        "trace convert": "slotstep.cli.traces.convert:convert",
        "trace generate": "slotstep.cli.traces.generate:generate",
        "trace fetch": "slotstep.cli.traces.fetch:fetch",
        "calibrate from-steps": "slotstep.cli.calibrate.from_steps:from_steps",
        "calibrate from-log": "slotstep.cli.calibrate.from_log:from_log",
        "calibrate from-operators": "slotstep.cli.calibrate.from_operators:from_operators",
        "calibrate from-aiconfigurator": "slotstep.cli.calibrate.from_aiconfigurator:from_aiconfigurator",
        "calibrate from-shapes": "slotstep.cli.calibrate.from_shapes:from_shapes",
        "calibrate measure": "slotstep.cli.calibrate.measure:measure",
        "calibrate fit": "slotstep.cli.calibrate.fit:fit",
        "calibrate transfer": "slotstep.cli.calibrate.transfer:transfer",
    },
    function,
)
