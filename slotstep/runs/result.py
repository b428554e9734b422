"""What a run gave: the log, and the summary, frames and files made of it. Simulates nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.accounting import frames, metrics, queue_growth, window
from sim.accounting.extrapolation import beyond
from sim.log.events import EventLog
from sim.log.service_log import ServiceLog
from sim.service.sessions import SessionCounts
from slotstep.runs import cache_file
from slotstep.scenario import document
from traces.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

    from calibrate.profiles.profile import Profile
    from slotstep.scenario.engine import Engine
    from slotstep.scenario.schema import Scenario


@dataclass(frozen=True)
class Result:
    """One run of one scenario under one policy: the logs, one a replica, hold all that happened.

    `caches`: what the prefix cache of each replica held at the end, for another run to start from.
    `remarks`: what the reader of a trace changed, left out or doubts, in lines.
    `profiles`: where the cost of its steps comes from, if from a profile, of each replica.
    `sessions`: how conversations went, where clients wait for their answers.
    `service_log`: what happened between clients and replicas, where that is more than one way to one of them.
    """

    scenario: Scenario
    logs: Sequence[EventLog]
    caches: Sequence[Sequence[bytes]] = ()
    remarks: Sequence[str] = ()
    profiles: Sequence[Profile | None] = ()
    sessions: SessionCounts | None = None
    service_log: ServiceLog | None = None

    @property
    def log(self) -> EventLog:
        """The event log of the only replica. Raises ValueError if there are several."""
        (log,) = self.logs
        return log

    @property
    def engines(self) -> list[Engine]:
        """The engine of each replica."""
        return self.scenario.cluster.engines(self.scenario.engine)

    @property
    def policy(self) -> str:
        """The name of the policy."""
        return self.scenario.policy.name

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The numbers of the run as `--json` prints them: times in seconds, None where there is no sample."""
        objectives = self.scenario.objectives
        predictor = self.scenario.predictor
        presets = {engine.modelled for engine in self.engines}
        return {
            "scenario": self.scenario.name,
            "policy": self.policy,
            **({"predictor": predictor} if predictor is not None else {}),
            "seed": self.scenario.seed,
            "preset": presets.pop() if len(presets) == 1 else None,
            "profile": self.measured[0] if self.profile is not None else None,
            "profiles": self.measured,
            "remarks": [*self.remarks, *self.beyond_the_end],
            **metrics.summary(self.logs, objectives.limits or None, self.service_log, objectives.since),
            "measured": self.window,
            "queue_grows": self.queue_grows,
            "sessions": None if self.sessions is None else self.sessions.counted(),
        }

    @cached_property
    def window(self) -> dict[str, Any] | None:
        """The figures of the scenario's measuring window, None without one."""
        measure, objectives = self.scenario.measure, self.scenario.objectives
        if measure is None:
            return None
        return window.measured(
            self.logs, measure.begin, measure.end, objectives.limits or None, self.service_log, objectives.since
        )

    @property
    def beyond_the_end(self) -> list[str]:
        """What has to be known of a measuring window that the run does not fill."""
        found = self.window
        if found is None or found["run_ended_s"] >= found["to_s"] > found["from_s"]:
            return []
        return [
            f"measure: the run ended at {found['run_ended_s']:g} s; the window is from {found['from_s']:g} s "
            f"to {found['to_s']:g} s"
        ]

    @cached_property
    def queue_grows(self) -> bool | None:
        """Whether the queue grows to the end, so that nothing is steady; None where clients wait, or try again."""
        crowd = self.scenario.clients
        reactive = self.sessions is not None or (crowd is not None and bool(crowd.closed or crowd.retry))
        return None if reactive else queue_growth.grows(self.logs, self.service_log)

    @property
    def profile(self) -> Profile | None:
        """The profile of all replicas, if they have the same one."""
        contents = {None if profile is None else profile.sha256 for profile in self.profiles}
        return self.profiles[0] if len(contents) == 1 else None

    @cached_property
    def measured(self) -> list[dict[str, Any]]:
        """The profiles of the run, each once: its name, its content's digest, the replicas that have it, and how many
        of their steps lie beyond what it measured."""
        having: dict[str, list[int]] = {}
        for replica, profile in enumerate(self.profiles):
            if profile is not None:
                having.setdefault(profile.sha256, []).append(replica)
        return [
            {
                "name": profile.name,
                "sha256": profile.sha256,
                "replicas": having[profile.sha256],
                "extrapolated": beyond([self.logs[each] for each in having[profile.sha256]], profile.range),
            }
            for replica, profile in enumerate(self.profiles)
            if profile is not None and having[profile.sha256][0] == replica
        ]

    @property
    def cache(self) -> bytes | None:
        """What the caches held at the end as a file that `engine.warm` takes, if anybody else could use it."""
        engine = self.engines[0]
        return cache_file.packed(engine, self.caches) if self.caches and engine.share != "none" else None

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row per request that was sent; see `sim.accounting.frames.requests_frame` and `client_frame`."""
        if self.service_log is not None:
            return frames.client_frame(self.logs, self.service_log)
        return frames.of_each(frames.requests_frame, self.logs)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row per step; see `sim.accounting.frames.steps_frame`."""
        return frames.of_each(frames.steps_frame, self.logs)

    @cached_property
    def slots(self) -> pd.DataFrame:
        """One row per stay of a request in a slot; see `frames.slots_frame`. Slots count on over replicas."""
        frame = frames.of_each(frames.slots_frame, self.logs)
        if len(self.logs) > 1:
            before = [0, *accumulate(log.slots for log in self.logs)]
            frame["slot"] += frame["replica"].map(dict(enumerate(before)))
        return frame

    def save(self, folder: str | Path) -> list[Path]:
        """Write the run into `folder`, which is made if need be; returns the files written.

        requests.parquet, steps.parquet, slots.parquet, scenario.yaml (resolved), profile.yaml if the cost has
        one, the figures as PNG, cache.json.gz if there is a cache whose pages another run could find, and
        summary.json last.
        Each is whole or absent. Raises BadInput for a folder that cannot be written.
        """
        from reports import files

        folder = Path(folder)
        prepare(folder)
        return [
            files.write_parquet(folder / "requests.parquet", self.requests),
            files.write_parquet(folder / "steps.parquet", self.steps),
            files.write_parquet(folder / "slots.parquet", self.slots),
            files.write_text(folder / "scenario.yaml", document.dump(self.scenario.resolved())),
            *([files.write_text(folder / "profile.yaml", self.profile.text())] if self.profile else []),
            *draw({self.policy: self}, folder),
            *([files.write_bytes(folder / cache_file.NAME, self.cache)] if self.cache else []),
            files.write_json(folder / "summary.json", self.summary),
        ]


def save_all(results: Sequence[Result], folder: str | Path) -> list[Path]:
    """Write runs of one scenario into `folder`: each into one named by its policy, and how they compare.

    The comparison is comparison.md, the figures of all runs, and comparison.json, which lists the runs by folder.
    Returns the files; raises as `Result.save`.
    """
    from reports import files
    from reports.text import table

    folder = Path(folder)
    written = [path for result in results for path in result.save(folder / result.policy)]
    compared = table.comparison_markdown([result.summary for result in results])
    written += draw({result.policy: result for result in results}, folder)
    listed = {"runs": [result.policy for result in results]}
    return [
        *written,
        files.write_text(folder / "comparison.md", compared),
        files.write_json(folder / "comparison.json", listed),
    ]


def draw(results: Mapping[str, Result], folder: Path) -> list[Path]:
    """Write the figures of one run or of several side by side, by name, into a folder; returns the files.

    timeline.png, latencies.png and ledger.png. Raises OSError for a folder that cannot be written.
    """
    from reports.figures import files as figures

    summaries = {name: result.summary for name, result in results.items()}
    shares = {name: summary["occupancy"] for name, summary in summaries.items() if summary["steps"]}
    stays = {name: (result.slots, sum(log.slots for log in result.logs)) for name, result in results.items()}
    pictures = {
        "timeline": figures.slot_timeline(stays, shares),
        "latencies": figures.latency_distributions({name: run.requests for name, run in results.items()}),
        "ledger": figures.ledger(summaries),
    }
    return figures.write(pictures, folder)


def prepare(folder: Path) -> None:
    """Make `folder` and try that it can be written; raises BadInput if it cannot."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadInput(f"{folder}: cannot be written: {error.strerror}") from error
