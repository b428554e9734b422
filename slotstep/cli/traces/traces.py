"""`slotstep trace info`, `fit`, `convert` and `generate`: what is in a trace, a workload like it, other formats.

Answers go to standard output, all else to standard error, and heavy imports are inside, as in `slotstep.cli.app`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slotstep.cli.permission import Yes, permitted

if TYPE_CHECKING:
    from traces.describe.fit import Fitted
    from traces.reading.table import Trace

TraceFile = Annotated[Path, typer.Argument(help="The trace: plain, gzip or zstd.")]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="The file's format; found out by its content if not given."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="ROLE=COLUMN", help="Which column is what, as in arrival=ts:ms. May be repeated."),
]
Run = Annotated[str | None, typer.Option("--run", metavar="NAME", help="One of several runs in the file.")]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="NAME", help="parquet, vidur, mooncake or tracev2; by OUT's ending if not given."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as in workload.first=8. May be repeated."),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the group `slotstep trace`."""
    for command in (info, fit, convert, generate):
        app.command()(command)


def info(
    file: TraceFile,
    kind: Format = None,
    columns: Columns = None,
    run: Run = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    png: Annotated[Path | None, typer.Option("--png", metavar="OUT", help="Draw it into this file.")] = None,
) -> None:
    """Say what is in a trace: arrivals, lengths, tenants, what a prefix cache could find, what looks odd."""
    from slotstep.cli.traces.text import lines
    from traces.describe.describe import describe

    trace = read(file, kind, columns, run)
    found = describe(trace)
    if png is not None:
        draw(trace, found, png)
        say(f"written to {png}")
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False), flush=True)
    else:
        print(*lines(found), sep="\n", flush=True)


def fit(
    file: TraceFile,
    kind: Format = None,
    columns: Columns = None,
    run: Run = None,
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


def convert(
    file: TraceFile,
    out: Annotated[Path, typer.Argument(help="The file to write.")],
    kind: Format = None,
    columns: Columns = None,
    run: Run = None,
    to: To = None,
) -> None:
    """Write a trace in another format, and say what that could not hold."""
    from traces import writers

    trace = read(file, kind, columns, run)
    account(writers.write(trace, out, to), out)


def generate(
    scenario: Annotated[Path, typer.Argument(help="The scenario, a YAML file.")],
    out: Annotated[Path, typer.Argument(help="The file to write.")],
    settings: Settings = None,
    to: To = None,
    yes: Yes = False,
) -> None:
    """Write the requests of a scenario as a trace."""
    from slotstep.runs import workload
    from slotstep.scenario.schema import load
    from traces import writers
    from traces.reading.tabulate import tabulate

    loaded = load(scenario, permitted(settings, yes))
    made = workload.load(loaded)
    trace, lost = tabulate(made.requests, made.sessions, str(scenario))
    account([*made.remarks, *lost, *writers.write(trace, out, to)], out)


def read(file: Path, kind: str | None, columns: Sequence[str] | None, run: str | None) -> Trace:
    """The trace in a file, or one run of it; what the reader has to say goes to standard error."""
    from traces.errors import BadInput
    from traces.reading.registry import load

    pairs = dict(pair.partition("=")[::2] for pair in columns or ())
    if not all(pairs) or not all(pairs.values()):
        raise BadInput("--map: expected ROLE=COLUMN, such as arrival=ts:ms")
    trace = load(file, kind, pairs or None)
    for line in trace.report.lines():
        say(line)
    return trace if run is None else trace.run(run)


def draw(trace: Trace, found: dict[str, Any], out: Path) -> None:
    """The picture of a trace, as PNG."""
    import numpy as np

    from reports.figures.png import write_png
    from reports.figures.traffic import traffic
    from traces.errors import BadInput

    frame = trace.workload
    if frame is None or frame.empty:
        raise BadInput(f"{trace.report.file}: has no request to draw")
    if out.suffix != ".png":
        raise BadInput(f"--png {out}: expected a name that ends in .png")
    times = frame["arrival_ns"].to_numpy(np.int64) if "arrivals" in found else None
    lengths = {name: frame[name].to_numpy(np.int64) for name in ("prompt", "output") if name in frame}
    lru = {int(blocks): share for blocks, share in found["reuse"]["lru"].items()} if "reuse" in found else None
    write_png({out.stem: traffic(times, lengths, lru)}, out.parent)


def distance_lines(law: Fitted) -> list[str]:
    """The law beside the trace, a line for each statistic, and what is left out."""
    rows = [f"{'':22}{'trace':>12}{'law':>12}"]
    rows += [f"{each.name:22}{each.trace:12,.4g}{each.law:12,.4g}{each.relative:+9.1%}" for each in law.distances]
    return [*rows, *(f"not in the law: {line}" for line in law.left_out)]


def scenario_text(law: Fitted, file: Path) -> str:
    """The workload as part of a scenario file."""
    import yaml

    from slotstep.scenario import document
    from slotstep.scenario.durations import written
    from traces.synthetic import DURATIONS

    content = {"workload": {"synthetic": written(law.workload, DURATIONS)}}
    text = yaml.dump(content, Dumper=document.Dumper, sort_keys=False, default_flow_style=None, width=110)
    return f"# Fitted to {file.name} by slotstep trace fit.\n{text}"


def account(lost: Sequence[str], out: Path) -> None:
    """Say what was lost and what was written."""
    for line in lost:
        say(f"lost: {line}")
    say(f"written to {out}" if lost else f"written to {out}; nothing is lost")


def say(words: str) -> None:
    """A remark on standard error."""
    print(words, file=sys.stderr)
