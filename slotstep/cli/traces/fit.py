"""`slotstep trace fit`: a synthetic workload with the statistics of a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slotstep.cli.output import say
from slotstep.cli.params import Columns, RunName, TraceFile, TraceFormat
from slotstep.cli.traces.reading import read

if TYPE_CHECKING:
    from traces.describe.fit import Fitted


def fit(
    file: TraceFile,
    kind: TraceFormat = None,
    columns: Columns = None,
    run: RunName = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws that tune and judge the law.")] = 0,
) -> None:
    """Print a synthetic workload with the statistics of a trace; how far it is from it goes to standard error."""
    from traces.describe.fit import fit as fitted
    from traces.errors import BadInput

    trace = read(file, kind, columns, run)
    if trace.workload is None or len(trace.runs) > 1:
        found = (
            f"{len(trace.runs)} runs; expected --run" if len(trace.runs) > 1 else "no request; expected a workload"
        )
        raise BadInput(f"{file}: has {found}")
    try:
        law = fitted(trace.workload, seed)
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None
    for line in distance_lines(law):
        say(line)
    print(scenario_text(law, file), end="", flush=True)


def distance_lines(law: Fitted) -> list[str]:
    """Statistics of the trace beside those of the fitted workload, and what is not modelled."""
    rows = [f"{'':22}{'trace':>12}{'law':>12}"]
    rows += [f"{each.name:22}{each.trace:12,.4g}{each.law:12,.4g}{each.relative:+9.1%}" for each in law.distances]
    return [*rows, *(f"not in the law: {line}" for line in law.left_out)]


def scenario_text(law: Fitted, file: Path) -> str:
    """The workload as part of a scenario file."""
    import yaml

    from slotstep.scenario import document
    from slotstep.scenario.durations import with_units
    from traces.synthetic import DURATIONS

    content = {"workload": {"synthetic": with_units(law.workload, DURATIONS)}}
    text = yaml.dump(content, Dumper=document.Dumper, sort_keys=False, default_flow_style=None, width=110)
    return f"# Fitted to {file.name} by slotstep trace fit.\n{text}"
