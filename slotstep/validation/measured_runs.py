"""Measured runs, read beside a scenario, and ready to be simulated with any step cost.

Each run in the files takes the place of the scenario's workload, whose transforms are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from slotstep.runs import simulation
from slotstep.runs.loading import parse, read_from
from slotstep.runs.workload import LoadedWorkload, load
from slotstep.scenario import document
from slotstep.scenario.clients import Clients
from slotstep.scenario.schema import Scenario
from slotstep.scenario.workload import AUTO, TRACE_OPTIONS
from slotstep.validation import repeated_prompts
from traces.errors import BadInput
from traces.reading import registry, step_logs

if TYPE_CHECKING:
    from calibrate.fit.measured_run import MeasuredRun
    from sim.cost.forms import Curve
    from sim.log.events import EventLog
    from sim.request import Nanoseconds
    from slotstep.runs.result import Result


TABLE = re.compile(r"\.(csv|jsonl?|parquet)(\.gz|\.zst)?$")


@dataclass(frozen=True)
class Run:
    """One measured run: the scenario on its requests, and the measurements, a row per request.

    frame    the columns of `traces.reading.table` measurements, and the lengths of replayed requests where known
    prompts  how many prompts the client sent in turn, if that was stated
    period   after how many requests prompt lengths repeat, if they do and the engine caches prefixes
    unknown_hits  the engine caches prefixes, and the content of the prompts is unknown
    cost     step cost in place of the scenario's
    """

    name: str
    scenario: Scenario
    made: LoadedWorkload
    frame: pd.DataFrame
    prompts: int | None = None
    period: int | None = None
    unknown_hits: bool = False
    cost: Curve | None = None

    @property
    def at_client(self) -> bool:
        """Whether latencies count from sending at the client; else from queue entry at the engine."""
        return "queued_ns" not in self.frame or bool(self.frame["queued_ns"].isna().all())

    @property
    def delay(self) -> Nanoseconds:
        """The scenario's delay between client and engine, ns."""
        return self.scenario.clients.delay if self.scenario.clients is not None else 0

    def at(self, cost: Curve, delay: Nanoseconds) -> Run:
        """The run with this step cost and client delay."""
        return replace(self, cost=cost, scenario=at_distance(self.scenario, delay))

    def result(self, first: int | None = None) -> Result:
        """The simulated run, of the first requests only if `first` is given."""
        made = self.made if first is None else replace(self.made, requests=self.made.requests[:first])
        return simulation.run(self.scenario, workload=made, price=self.cost)

    def simulate(self, cost: Curve, delay: Nanoseconds, first: int) -> Sequence[EventLog]:
        """The logs of a simulated run, one a replica."""
        return self.at(cost, delay).result(first).logs

    def for_fit(self) -> MeasuredRun:
        """The successful requests by arrival, in the form that fits take. Raises BadInput if there are none."""
        from calibrate.fit.measured_run import MeasuredRun

        frame = self.frame[(self.frame["status"] == "ok") & self.frame["e2e_s"].notna()]
        frame = frame[frame["replayed"]].sort_values("rank", kind="stable")
        if frame.empty:
            raise BadInput(f"{self.name}: no request was measured to its end and can be replayed")
        columns = [
            "id",
            "rank",
            "sent_s",
            "prompt",
            "output",
            *(name for name in ("ttft_s", "tpot_s", "e2e_s") if name in frame),
        ]
        return MeasuredRun(
            self.name, frame[columns].reset_index(drop=True), len(self.made.requests), self.simulate, self.at_client
        )


def at_distance(scenario: Scenario, delay: Nanoseconds) -> Scenario:
    """The scenario with this client delay, ns."""
    if scenario.clients is None and not delay:
        return scenario
    clients = Clients.model_construct(delay=delay) if scenario.clients is None else scenario.clients
    return scenario.model_copy(update={"clients": clients.model_copy(update={"delay": delay})})


def runs(
    files: Sequence[Path], scenario: Path, settings: Sequence[str] = (), prompts: int | None = None
) -> list[Run]:
    """The measured runs in these files, named by file, and by run if a file has several.

    prompts  the client of each run sent this many prompts in turn

    Raises BadInput for a file without measurements, for a repeated file, and as `repeated_prompts.repeated`.
    """
    places = [file.absolute() for file in files]
    twice = next((file for file, place in zip(files, places, strict=True) if places.count(place) > 1), None)
    if twice is not None:
        raise BadInput(f"{twice}: given twice; expected each file once")
    return [
        run
        for file, name in zip(files, names(files), strict=True)
        for run in of_file(file, name, scenario, settings, prompts)
    ]


def names(files: Sequence[Path]) -> list[str]:
    """The names of the files' runs: the file name without endings, with its folder if it is ambiguous."""
    found = [re.sub(r"(\.(trace|csv|jsonl?|parquet|gz|zst))+$", "", file.name) for file in files]
    return [
        name if found.count(name) == 1 else f"{file.absolute().parent.name}/{name}"
        for file, name in zip(files, found, strict=True)
    ]


def logs_beside(files: Sequence[Path]) -> list[Path]:
    """The step logs in the folders of these files."""
    given = {file.absolute() for file in files}
    folders = dict.fromkeys(file.parent for file in sorted(given))
    beside = [file for folder in folders for file in sorted(folder.iterdir()) if TABLE.search(file.name)]
    return [file for file in beside if file.is_file() and file not in given and step_logs.is_log(file)]


def of_file(file: Path, called: str, scenario: Path, settings: Sequence[str], prompts: int | None) -> Iterator[Run]:
    """The runs of one file."""
    mapping = document.read(scenario)
    document.override(mapping, settings)
    read_from(file, mapping)
    given = mapping["workload"]["trace"]
    kind = next(key for key in given if key not in TRACE_OPTIONS)
    trace = registry.load(file, None if kind == AUTO else kind, given.get("map"))
    if trace.measurements is None:
        raise BadInput(f"{file}: {trace.report.format} has no measurements; expected latencies per request")
    for name in trace.runs if len(trace.runs) > 1 else [None]:
        frame = trace.measurements if name is None else trace.run(name).measurements
        chosen = given if name is None else {**given, "run": name}
        whole = {**mapping, "workload": {**mapping["workload"], "trace": chosen}}
        loaded = parse(whole, source=str(scenario), folder=scenario.parent, name=scenario.stem)
        made = load(loaded)
        assert frame is not None
        title, period, table = called if name is None else f"{called}/{name}", None, prepared(frame, made)
        unknown = prompts is None and loaded.engine.prefix_cache and not repeated_prompts.has_content(made)
        if prompts is not None:
            made = repeated_prompts.repeated(title, made, table, prompts, loaded.engine)
        elif unknown:
            period = repeated_prompts.period(repeated_prompts.lengths(table.sort_values("sent_s", kind="stable")))
        yield Run(title, without_unused_cache(loaded, made), made, table, prompts, period, unknown)


def remarks(runs: Sequence[Run]) -> list[str]:
    """The remarks of the readers of these runs, each once."""
    return list(dict.fromkeys(line for run in runs for line in run.made.remarks))


def hints(runs: Iterable[Run]) -> Iterator[str]:
    """A line for each run whose prompt lengths repeat although `--prompts` was not given."""
    for run in runs:
        if run.period is not None:
            yield (
                f"{run.name}: the lengths of prompts repeat after {run.period} requests; if these are the same "
                f"prompts, sent in turn, say --prompts {run.period}: the engine's prefix cache found them"
            )


def without_unused_cache(scenario: Scenario, made: LoadedWorkload) -> Scenario:
    """The scenario without a prefix cache, if the content of prompts is unknown."""
    engine_section = scenario.engine
    if not engine_section.prefix_cache or engine_section.warm is not None:
        return scenario
    if repeated_prompts.has_content(made):
        return scenario
    off: dict[str, Any] = {"prefix_cache": False, "share": None, "model": None, "positions": None}
    return scenario.model_copy(update={"engine": engine_section.model_copy(update=off)})


def prepared(frame: pd.DataFrame, made: LoadedWorkload) -> pd.DataFrame:
    """The measurements with the lengths and positions of replayed requests, and when each was sent, s."""
    asked = made.requests
    ids = [request.id for request in asked]
    place = pd.Series(np.arange(len(asked)), index=ids)
    rank = frame["id"].map(place)
    lengths = {"prompt": [r.prompt for r in asked], "output": [r.output for r in asked]}
    by_id = {name: pd.Series(values, index=ids) for name, values in lengths.items()}
    sent = frame["sent_ns"] if "sent_ns" in frame else pd.Series(pd.NA, index=frame.index, dtype="Int64")
    for other in ("queued_ns", "arrival_ns"):
        sent = sent.fillna(frame[other]) if other in frame else sent
    return frame.assign(
        replayed=rank.notna(),
        rank=rank.fillna(len(asked)).astype(np.int64),
        sent_s=sent.astype("Float64").to_numpy(np.float64, na_value=np.nan) / 1e9,
        **{name: frame["id"].map(values).astype("Int64") for name, values in by_id.items()},
    )
