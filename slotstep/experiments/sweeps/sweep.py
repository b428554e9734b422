"""A sweep: runs the points of a grid that have no row yet, and writes each row when its run ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from slotstep.experiments.sweeps import backends, identity, row
from slotstep.experiments.sweeps.grid import Grid, Point
from slotstep.experiments.sweeps.store import Store, make
from slotstep.experiments.sweeps.work import execute
from slotstep.runs.resolution import resolved
from traces.errors import BadInput


@dataclass(frozen=True)
class Tally:
    """The progress of a sweep: runs in all, present before, done now, and failed of these."""

    total: int
    before: int
    done: int = 0
    failed: int = 0


def sweep(
    grid: Grid,
    folder: str | Path,
    *,
    backend: str = "local",
    address: str | None = None,
    jobs: int | None = None,
    retry: bool = False,
    progress: Callable[[Tally], None] = lambda _: None,
) -> Store:
    """Run every point of a grid whose row is not in `folder` (with `retry`: or is there as failed).

    backend, address, jobs  as in `backends.compute`
    progress                called after each run with a `Tally`

    Raises BadInput for a folder that cannot be written or holds a sweep over other axes, and as `backends.compute`;
    OSError if a row cannot be written. Rows written before stay, apart if they are not of this grid.
    """
    store = make(Path(folder), grid.keys, grid.kinds)
    named = {name_of(point): point for point in grid.points}
    store.choose(named)
    missing = {run: point for run, point in named.items() if not store.has(run) or (retry and store.failed(run))}
    tally = Tally(len(named), len(named) - len(missing))
    progress(tally)
    for line in lines(missing, store, retry, backend, address, jobs):
        if line is not None:
            store.write(line)
        failed = line is not None and line["status"] == "failed"
        tally = Tally(tally.total, tally.before, tally.done + 1, tally.failed + failed)
        progress(tally)
    return store


def lines(
    missing: dict[str, Point], store: Store, retry: bool, backend: str, address: str | None, jobs: int | None
) -> Iterator[row.Row | None]:
    """The rows of these runs as they end; None for one that another sweep has written meanwhile."""
    refused = [run for run, point in missing.items() if point.scenario is None]
    for run in refused:
        line = row.failed(run, missing[run].axes, None, f"BadInput: {missing[run].error}")
        yield line | {"code": identity.code()}
    left = [run for run in missing if missing[run].scenario is not None]
    if not left:
        return
    sources: dict[str, dict[str, str]] = {}
    overtaken: list[str] = []

    def calls() -> Iterator[backends.Call]:
        for run in left:
            if not retry and store.has(run):
                overtaken.append(run)
                continue
            point = missing[run]
            assert point.scenario is not None
            settings = resolved(point.scenario)
            sources[run] = identity.sources(settings)
            yield run, dict(point.axes), settings, identity.code()

    for line in backends.compute(execute, calls(), backend, address, jobs):
        yield line | sources.pop(line["run"])
    yield from (None for _ in overtaken)


def name_of(point: Point) -> str:
    """The identity of a point's run; a point without scenario is identified by its axes and error."""
    if point.scenario is None:
        return identity.named({"axes": dict(point.axes), "error": point.error, "code": identity.code()})
    try:
        return identity.name(resolved(point.scenario), point.axes)
    except OSError as error:
        raise BadInput(f"{error.filename}: cannot be read: {error.strerror}") from None
