"""`slotstep watch`: tokens per slot-step of a running engine, exact, from its metrics page."""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slotstep.cli.output import say
from traces.errors import BadInput

if TYPE_CHECKING:
    from slotstep.watch.meter import Meter, Observation


def watch(
    url: Annotated[str, typer.Argument(metavar="URL", help="Such as http://localhost:8000/metrics.")],
    slots: Annotated[int, typer.Option(min=1, help="max_num_seqs of each engine behind the page.")],
    interval: Annotated[str, typer.Option(metavar="TIME", help="Between two readings.")] = "5s",
    timeout: Annotated[str, typer.Option(metavar="TIME", help="How long an answer may take.")] = "5s",
    count: Annotated[int | None, typer.Option(min=1, help="Stop after this many readings.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="One of several models that are served.")] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Read once: what the counters hold of the engine's life.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per reading.")] = False,
    table: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Append a row per reading.")] = None,
    export: Annotated[
        str | None, typer.Option("--export", metavar="[HOST]:PORT", help="Publish the derived gauges here.")
    ] = None,
) -> None:
    """Watch the tokens per slot-step of a running engine, by vLLM's metric names.

    Exit code 1 if --once got no whole answer; without --once an engine that does not answer is waited for.
    """
    from slotstep.watch.meter import Meter

    page, pause, patience = prepared(url, interval, timeout)
    seen = None
    with ExitStack() as stack:
        shows = displays(stack, page, once or as_json or not sys.stdout.isatty(), as_json, table, export)
        try:
            for seen in observations(Meter(slots), page, pause, patience, 1 if once else count, model):
                for show in shows:
                    show(seen)
        except KeyboardInterrupt:
            pass
        except ValueError as error:
            raise BadInput(f"{page}: {error}") from None
    if once and (seen is None or seen.problem):
        raise typer.Exit(1)


def prepared(url: str, interval: str, timeout: str) -> tuple[str, float, float]:
    """The page's address, and both times in seconds. Raises BadInput for invalid ones."""
    from slotstep.watch.scrape import address

    try:
        page = address(url)
    except ValueError as error:
        raise BadInput(f"URL: {error}") from None
    return page, seconds("--interval", interval), seconds("--timeout", timeout)


def seconds(option: str, value: str) -> float:
    """A duration above 0, in seconds. Raises BadInput for an invalid one."""
    from slotstep.scenario.units import nanoseconds

    try:
        found = nanoseconds(value)
    except ValueError as error:
        raise BadInput(f"{option}: {error}") from None
    if not found:
        raise BadInput(f"{option}: found {value}; expected a duration above 0")
    return found / 1e9


def observations(
    meter: Meter, page: str, pause: float, patience: float, count: int | None, model: str | None
) -> Iterator[Observation]:
    """An observation every `pause` seconds, `count` of them or without end."""
    from slotstep.watch.reading import parse
    from slotstep.watch.scrape import NoAnswerError, fetch

    due = time.monotonic()
    done = 0
    while True:
        try:
            reading = parse(fetch(page, patience), model)
        except NoAnswerError as problem:
            yield meter.silent(time.time(), str(problem))
        else:
            yield meter.feed(reading, time.time())
        done += 1
        if count is not None and done >= count:
            return
        due = max(due + pause, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))


def displays(
    stack: ExitStack, page: str, as_lines: bool, as_json: bool, table: Path | None, export: str | None
) -> list[Callable[[Observation], None]]:
    """The functions that show an observation: terminal or lines, CSV file, exporter."""
    from slotstep.watch import show

    shows: list[Callable[[Observation], None]] = []
    if as_json:
        shows.append(lambda seen: print(json.dumps(seen.as_dict(), allow_nan=False), flush=True))
    elif as_lines:
        shows.append(lambda seen: print(show.line(seen), flush=True))
    else:
        from rich.live import Live

        live = stack.enter_context(Live(auto_refresh=False))
        shows.append(lambda seen: live.update(show.screen(page, seen), refresh=True))
    if table is not None:
        shows.append(rows_into(stack, table))
    if export is not None:
        from slotstep.watch.exporter import Exporter

        try:
            exporter = Exporter(export)
        except (ValueError, OSError) as error:
            raise BadInput(f"--export {export}: {error}") from None
        stack.callback(exporter.close)
        say(f"derived gauges at port {exporter.port}")
        shows.append(exporter.show)
    return shows


def rows_into(stack: ExitStack, path: Path) -> Callable[[Observation], None]:
    """A function that appends a row per observation. Raises BadInput for a file with other columns."""
    from slotstep.watch import show

    head = ",".join(show.COLUMNS)
    if path.exists() and path.stat().st_size:
        with path.open(encoding="utf-8") as present:
            if present.readline().rstrip("\r\n") != head:
                raise BadInput(f"{path}: has other columns; expected {head}")
        fresh = False
    else:
        fresh = True
    file = stack.enter_context(path.open("a", encoding="utf-8", newline=""))
    writer = csv.DictWriter(file, show.COLUMNS)
    if fresh:
        writer.writeheader()

    def append(seen: Observation) -> None:
        writer.writerow(show.row(seen))
        file.flush()

    return append
