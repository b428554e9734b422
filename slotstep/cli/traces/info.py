"""`slotstep trace info`: what is in a trace, as lines, as JSON or as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slotstep.cli.output import print_json, say
from slotstep.cli.params import AsJson, Columns, RunName, TraceFile, TraceFormat
from slotstep.cli.traces.reading import read

if TYPE_CHECKING:
    from traces.reading.table import Trace

COLUMNS = ("mean", "p50", "p90", "p99", "p99.9", "max", "tail_index")


def info(
    file: TraceFile,
    kind: TraceFormat = None,
    columns: Columns = None,
    run: RunName = None,
    as_json: AsJson = False,
    png: Annotated[Path | None, typer.Option("--png", metavar="OUT", help="Draw it into this file.")] = None,
) -> None:
    """Say what is in a trace: arrivals, lengths, tenants, what a prefix cache could find, what looks odd."""
    from traces.describe.describe import describe

    trace = read(file, kind, columns, run)
    found = describe(trace)
    if png is not None:
        draw(trace, found, png)
        say(f"written to {png}")
    if as_json:
        print_json(found)
    else:
        print(*lines(found), sep="\n", flush=True)


def draw(trace: Trace, found: dict[str, Any], out: Path) -> None:
    """Draw a trace into a PNG file."""
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


def lines(found: dict[str, Any]) -> Iterator[str]:
    """The description as lines: arrivals, lengths, tenants and sessions, prefixes, measurements, anomalies."""
    yield f"{found['file']}: {found['format']}, {found['kind']}"
    if "runs" in found:
        yield f"runs        {len(found['runs'])}: {', '.join(found['runs'][:5])}{', ...' * (len(found['runs']) > 5)}"
    if "rows" in found:
        span = f" in {found['span_s']:,.0f} s" if "span_s" in found else ""
        yield f"requests    {found['rows']:,}{span}"
    yield from arrivals(found.get("arrivals"))
    yield from lengths(found)
    yield from tenants_and_sessions(found)
    yield from prefixes(found.get("reuse"))
    yield from measurements(found.get("measurements"))
    for name, rows in found.get("tables", {}).items():
        yield f"table       {name}: {rows:,} rows"
    for line in found.get("anomalies", []):
        yield f"odd         {line}"


def arrivals(found: dict[str, Any] | None) -> Iterator[str]:
    """Rate and burstiness."""
    if found is None:
        return
    by_gaps = number(found["rate_by_gaps"])
    gaps = f" ({by_gaps}/s by n - 1 gaps)" if by_gaps != number(found["rate"]) else ""
    yield f"arrivals    {number(found['rate'])}/s{gaps}, CV of the gaps {number(found['cv'])}"
    spread = ", ".join(f"{number(value)} per {window}" for window, value in found["dispersion"].items())
    yield f"dispersion  {spread} (variance over mean of the counts; Poisson: 1)"
    for window, burst in found["bursts"].items():
        if burst is not None:
            yield (
                f"  per {window:4}  most {burst['most']:,}, {burst['peak_over_mean']:.1f} times the mean; "
                f"the busiest tenth holds {burst['busiest_tenth']:.0%}, {burst['empty']:.0%} are empty"
            )


def lengths(found: dict[str, Any]) -> Iterator[str]:
    """A table of prompt and output lengths."""
    present = [name for name in ("prompt", "output") if name in found]
    if present:
        yield f"{'tokens':12}" + "".join(f"{column.replace('_', ' '):>12}" for column in COLUMNS)
    for name in present:
        yield f"  {name:10}" + "".join(f"{number(found[name][column]):>12}" for column in COLUMNS)
    if found.get("rank_correlation") is not None:
        yield f"  rank correlation {found['rank_correlation']:.2f}"


def tenants_and_sessions(found: dict[str, Any]) -> Iterator[str]:
    """Tenants and sessions."""
    if "tenants" in found:
        largest = ", ".join(f"{each['tenant']} {each['share']:.0%}" for each in found["tenants"]["largest"][:5])
        yield f"tenants     {found['tenants']['count']:,}; largest {largest}"
    if "sessions" in found:
        several = found["sessions"]
        turns = f"{several['turns_mean']:.1f} turns in the mean, at most {several['turns_max']}"
        yield f"sessions    {several['count']:,}, {turns}"


def prefixes(found: dict[str, Any] | None) -> Iterator[str]:
    """The share of prompts that a prefix cache could find."""
    if found is None:
        return
    yield (
        f"prefixes    at most {found['hit_tokens']:.3f} of the tokens, {found['hit_blocks']:.3f} of the blocks, are "
        f"repeated ({found['unique']:,} different of {found['blocks']:,} blocks of {found['block_size']})"
    )
    shares = ", ".join(f"{int(blocks):,}: {share:.3f}" for blocks, share in found["lru"].items())
    yield f"  found by a cache of so many blocks (LRU), share of blocks  {shares}"


def measurements(found: dict[str, Any] | None) -> Iterator[str]:
    """Statistics of the measurements."""
    if found is None:
        return
    status = ", ".join(f"{count:,} {name}" for name, count in found.get("status", {}).items())
    yield f"measured    {found['rows']:,} requests" + (f": {status}" if status else "")
    for name in ("wait_s", "ttft_s", "tpot_s", "e2e_s"):
        if name in found:
            part = found[name]
            yield f"  {name:8}  mean {part['mean']:.4g}, p50 {part['p50']:.4g}, p99 {part['p99']:.4g}"


def number(value: float | None) -> str:
    """A number with three or more significant digits; a dash for None."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
