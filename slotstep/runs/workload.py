"""The requests of a scenario's workload: from a trace, synthetic, listed, or merged of several workloads.

File formats, distributions and transforms are those of `traces`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.request import Request
from slotstep.runs import size_limits
from slotstep.scenario import units
from slotstep.scenario.durations import in_nanoseconds
from slotstep.scenario.workload import AUTO
from traces import synthetic
from traces.errors import BadInput
from traces.reading import listed_requests as listed
from traces.reading import registry
from traces.transforms import operations, pipeline
from traces.transforms.throttled import with_throttled

if TYPE_CHECKING:
    from slotstep.scenario.schema import Scenario
    from slotstep.scenario.workload import Workload


TOLERATED = 0.1
"""The share of its time by which a part of a merge may end before the last one without a remark."""


@dataclass(frozen=True)
class LoadedWorkload:
    """Requests sorted by arrival.

    sessions  the session of a request's id, where it has one
    remarks   lines on what the reader of a trace changed or dropped
    timed     False if the source has no arrivals: all are 0
    """

    requests: list[Request]
    sessions: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    timed: bool = True


Reader = Callable[[Mapping[str, Any]], LoadedWorkload]
"""Reads the trace that a workload names."""


def requests(scenario: Scenario) -> list[Request]:
    """The requests of a scenario's workload, sorted by arrival.

    Raises BadInput for a trace that cannot be read, an empty slice, or an output above the workload's limit.
    """
    return load(scenario).requests


def load(scenario: Scenario, read: Reader | None = None) -> LoadedWorkload:
    """The requests with the remarks of their readers; `read` replaces `replayed`. Raises as `requests`."""
    made = make(scenario, scenario.workload, "workload.", scenario.seed, read or replayed)
    closed = scenario.clients is not None and scenario.clients.closed is not None
    if not made.timed and not closed:
        with scenario.blamed("workload."):
            raise untimed(scenario.workload, ", or clients.closed, which use none")
    size_limits.check_requests(scenario, made.requests)
    return made


def check(scenario: Scenario, given: Workload, where: str = "workload.") -> None:
    """Check everything that needs no trace and no drawn requests. Raises BadInput."""
    if given.requests is not None:
        make(scenario, given, where, scenario.seed, replayed)
    with scenario.blamed(where):
        if given.synthetic is not None:
            specification(given.synthetic)
        pipeline.parse(steps(given))
    for name, part in (given.merge or {}).items():
        check(scenario, part, f"{where}merge.{name}.")


def make(scenario: Scenario, given: Workload, where: str, seed: int, read: Reader) -> LoadedWorkload:
    """The requests of one workload, after its transforms; `where` begins the keys in messages."""
    begun = source(scenario, given, where, seed, read)
    found, timed = begun.requests, begun.timed
    with scenario.blamed(where):
        if given.transforms is not None:
            found = pipeline.apply(steps(given), found, seed, begun.sessions, timed=timed)
            timed = timed or pipeline.draws_arrivals(steps(given))
        elif not timed and (given.between is not None or given.scale_rate != 1):
            raise untimed(given)
        if given.between is not None:
            found = operations.between(found, *given.between)
        if given.first is not None:
            found = operations.first(found, given.first)
        if given.scale_rate != 1:
            found = operations.scale_rate(found, given.scale_rate)
    if given.max_output is not None:
        with scenario.blamed(f"{where}max_output: "):
            found = [
                request if request.declared else replace(request, declared=given.max_output) for request in found
            ]
    if given.ignore_eos:
        found = [
            replace(request, declared=request.output, patience=replace(request.patience, ignore_eos=True))
            for request in found
        ]
    return replace(begun, requests=found, timed=timed)


def untimed(given: Workload, otherwise: str = "") -> BadInput:
    """What is wrong with a workload whose trace has no arrivals, where it needs them."""
    file = next(iter((given.trace or {}).values()))
    drawn = "transforms: [{redraw_arrivals: {poisson: {rate: 5}}}]"
    return BadInput(f"trace: {file}: no arrival times in this file; expected {drawn}{otherwise}")


def source(scenario: Scenario, given: Workload, where: str, seed: int, read: Reader) -> LoadedWorkload:
    """The requests of a workload's source, before any transform."""
    if given.trace is not None:
        return read(given.trace)
    if given.merge is not None:
        parts = {
            name: make(scenario, part, f"{where}merge.{name}.", part_seed(seed, name), read)
            for name, part in given.merge.items()
        }
        for name, part in parts.items():
            if not part.timed:
                with scenario.blamed(f"{where}merge.{name}."):
                    raise untimed(given.merge[name])
        sessions = {
            f"{name}-{id_}": f"{name}-{whose}" for name, part in parts.items() for id_, whose in part.sessions.items()
        }
        remarks = [remark for part in parts.values() for remark in part.remarks]
        found = {name: part.requests for name, part in parts.items()}
        remarks += ends_apart(found, given, where)
        return LoadedWorkload(operations.merge(found), sessions, tuple(remarks))
    with scenario.blamed(where):
        if given.synthetic is not None:
            spec = specification(given.synthetic)
            drawn = synthetic.generate(spec, seed, scenario.allow_large)
            return LoadedWorkload(drawn, synthetic.sessions(spec, drawn))
        lines = given.requests or ()
        return LoadedWorkload(listed.parse([line.model_dump(exclude_none=True) for line in lines]))


def ends_apart(parts: Mapping[str, Sequence[Request]], given: Workload, where: str) -> list[str]:
    """A line if a part ends more than a tenth before the last one does, within the time that the merge keeps."""
    cuts = [step["between"] for step in steps(given) if isinstance(step, Mapping) and "between" in step]
    kept = given.between or next(iter(cuts), None)
    ends = {name: requests[-1].arrival if requests else 0 for name, requests in parts.items()}
    shortest, longest = min(ends.values()), max(ends.values())
    last = min(longest, kept[1]) if kept else longest
    if shortest >= last * (1 - TOLERATED):
        return []
    return [
        f"{where}merge: the parts end at different times: "
        + ", ".join(f"{name} at {units.text(end)}" for name, end in ends.items())
        + f"; `repeat_until: {units.text(last)}` among the transforms of the shorter ones repeats them, "
        f"`between: [0s, {units.text(shortest)}]` of the merged workload cuts the others"
    ]


def replayed(given: Mapping[str, Any]) -> LoadedWorkload:
    """The requests of a trace. Raises BadInput; for a missing public trace with the command that downloads it."""
    from traces.reading.fetch import SOURCES

    kind, file = next(iter(given.items()))
    path = Path(file)
    try:
        trace = registry.load(path, None if kind == AUTO else kind, given.get("map"))
        if given.get("replay_throttled"):
            trace = with_throttled(trace)
        trace = trace.only(given.get("only") or {})
        found = trace.requests(given.get("run"), timed=False)
    except BadInput as error:
        public = [name for name, known in SOURCES.items() if known.file_name == path.name]
        if public and not path.exists():
            raise BadInput(f"{error}; `slotstep trace fetch {public[0]}` downloads it") from None
        raise
    report = trace.report
    remarks = report.lines() if report.changed or report.dropped or report.warnings else []
    frame = trace.workload
    sessions: dict[str, str] = {}
    if frame is not None and "session" in frame:
        sessions = dict(frame.loc[frame["session"].notna(), ["id", "session"]].itertuples(index=False))
    return LoadedWorkload(found, sessions, tuple(remarks), trace.timed)


def specification(written: Mapping[str, Any]) -> synthetic.Synthetic:
    """The synthetic workload that a scenario describes; raises BadInput for an invalid one."""
    return synthetic.parse(in_nanoseconds(written, synthetic.DURATIONS, "synthetic"))


def steps(given: Workload) -> Sequence[Any]:
    """The transforms of a workload, durations in ns; none where there is no list."""
    read: Sequence[Any] = in_nanoseconds(list(given.transforms or ()), pipeline.DURATIONS, "transforms")
    return read


def part_seed(seed: int, name: str) -> int:
    """The seed of one part of a merge, derived from its name."""
    return int.from_bytes(hashlib.sha256(f"{seed}/merge/{name}".encode()).digest()[:8], "big")
