"""The result of a run: its logs, and the summary, frames and files made of them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim import kernel
from sim.accounting import frames, metrics, queue_growth, window
from sim.accounting.extrapolation import beyond
from sim.cost.full_batch import load_of
from sim.log.events import EventLog
from sim.log.service_log import ServiceLog
from sim.service.sessions import SessionCounts
from slotstep.runs import build, cache_file
from slotstep.runs.policy import predictor as policy_predictor
from slotstep.runs.resolution import resolved
from slotstep.scenario import document
from slotstep.scenario.cluster import POOLS
from traces.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

    from calibrate.profiles.profile import Profile
    from slotstep.scenario.engine import Engine
    from slotstep.scenario.schema import Scenario


@dataclass(frozen=True)
class Result:
    """The result of one run of one scenario under one policy.

    logs         the event log of each replica
    caches       the prefix cache of each replica at the end, for another run to start from
    remarks      lines on what the reader of a trace changed, dropped or doubts
    profiles     the profile of each replica's step cost, None where it has none
    sessions     counts of the sessions, where clients wait for answers
    service_log  events between clients and replicas; None where requests go straight to replicas that never fail
    repriced     whether its step cost is not the scenario's
    core         whether the compiled core simulated it
    """

    scenario: Scenario
    logs: Sequence[EventLog]
    caches: Sequence[Sequence[bytes]] = ()
    remarks: Sequence[str] = ()
    profiles: Sequence[Profile | None] = ()
    sessions: SessionCounts | None = None
    service_log: ServiceLog | None = None
    repriced: bool = False
    core: bool = False

    @property
    def log(self) -> EventLog:
        """The event log of the only replica. Raises ValueError if there are several."""
        (log,) = self.logs
        return log

    @property
    def engines(self) -> list[Engine]:
        """The engine section of each replica."""
        return self.scenario.cluster.engines(self.scenario.engine)

    @property
    def policy(self) -> str:
        """The name of the policy."""
        return self.scenario.policy.name

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The metrics of the run as `--json` prints them: times in seconds, None without samples."""
        objectives = self.scenario.objectives
        predictor = policy_predictor(self.scenario)
        presets = {engine.modelled for engine in self.engines}
        more = self.scenario.metrics or ()
        found = metrics.summary(self.logs, objectives.limits or None, self.service_log, objectives.since, more)
        return {
            "scenario": self.scenario.name,
            "policy": self.policy,
            **({"predictor": predictor} if predictor is not None else {}),
            "seed": self.scenario.seed,
            "kernel": "compiled core" if self.core else kernel.path(),
            "preset": presets.pop() if len(presets) == 1 else None,
            "profile": self.measured[0] if self.profile is not None else None,
            "profiles": self.measured,
            "remarks": [*self.remarks, *self.beyond_the_end],
            **({"metrics": list(more)} if more else {}),
            "engine": self.engine,
            "headroom": self.headroom(found),
            **found,
            "measured": self.window,
            "queue_grows": self.queue_grows,
            "sessions": None if self.sessions is None else self.sessions.counted(),
        }

    @property
    def engine(self) -> dict[str, Any] | None:
        """The settings of the engine on which the advice on a ledger depends; None where replicas differ in them."""
        found = [
            {
                "slots": engine.slots,
                "token_budget": engine.token_budget,
                "batching": engine.batching,
                "evict": engine.evict,
                "admission": engine.admission if isinstance(engine.admission, str) else next(iter(engine.admission)),
                "prefix_cache": engine.prefix_cache,
            }
            for engine in self.engines
        ]
        return found[0] if all(each == found[0] for each in found) else None

    def headroom(self, found: Mapping[str, Any]) -> dict[str, Any] | None:
        """Time in steps, and what the replicas could bear, from the metrics of the run; keys in docs/output.md.

        None without requests or steps, for static batches, and a cost from elsewhere.
        """
        tokens, seconds = found["tokens"], found["slot_seconds"]
        cached = tokens["cached"] / tokens["prompt"] if tokens["prompt"] else 0.0
        load = load_of([request for log in self.logs for request in log.requests], cached)
        known = seconds["bought"] and not self.repriced
        bounds = build.bounds(self.scenario, load) if load is not None and known else None
        if bounds is None:
            return None
        of_pools = [sum(each.rate for each in pool) for pool in bounds]
        binding = of_pools.index(min(of_pools))
        tightest = min(bounds[binding], key=lambda each: each.rate)
        return {
            "in_steps": 1 - (seconds["idle"] + seconds.get("down", 0.0)) / seconds["bought"],
            "bound_per_s": of_pools[binding],
            **({"pool": POOLS[binding]} if len(bounds) > 1 else {}),
            "batch": tightest.batch,
            "slots": tightest.slots,
            "batch_bound_by": tightest.bound_by,
            "parts": dict(tightest.parts),
        }

    @cached_property
    def window(self) -> dict[str, Any] | None:
        """The metrics of the scenario's measuring window, None without one."""
        measure, objectives = self.scenario.measure, self.scenario.objectives
        if measure is None:
            return None
        return window.measured(
            self.logs, measure.begin, measure.end, objectives.limits or None, self.service_log, objectives.since
        )

    @property
    def beyond_the_end(self) -> list[str]:
        """A remark if the measuring window ends after the run."""
        found = self.window
        if found is None or found["run_ended_s"] >= found["to_s"] > found["from_s"]:
            return []
        return [
            f"measure: the run ended at {found['run_ended_s']:g} s; the window is from {found['from_s']:g} s "
            f"to {found['to_s']:g} s"
        ]

    @cached_property
    def queue_grows(self) -> bool | None:
        """Whether the queue grows until the end; None for closed clients, sessions and retries."""
        clients = self.scenario.clients
        reactive = self.sessions is not None or (clients is not None and bool(clients.closed or clients.retry))
        return None if reactive else queue_growth.grows(self.logs, self.service_log)

    @property
    def profile(self) -> Profile | None:
        """The profile of all replicas, None if they differ or have none."""
        contents = {None if profile is None else profile.sha256 for profile in self.profiles}
        return self.profiles[0] if len(contents) == 1 else None

    @cached_property
    def measured(self) -> list[dict[str, Any]]:
        """The distinct profiles of the run: name, digest, replicas, and how many steps lie beyond its range."""
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
        """The caches at the end as a file that `engine.warm` reads; None if no other run could use it."""
        engine = self.engines[0]
        return cache_file.packed(engine, self.caches) if self.caches and engine.share != "none" else None

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row per injected request: identity, timestamps in ns, latencies in s, status.

        The columns are those of `sim.accounting.frames.requests_frame`, or of `client_frame` with a service log.
        """
        if self.service_log is not None:
            return frames.client_frame(self.logs, self.service_log)
        return frames.of_each(frames.requests_frame, self.logs)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row per step of each replica; columns as `sim.accounting.frames.steps_frame`."""
        return frames.of_each(frames.steps_frame, self.logs)

    @cached_property
    def slots(self) -> pd.DataFrame:
        """One row per stay of a request in a slot; columns as `sim.accounting.frames.slots_frame`.

        Slots are numbered across replicas.
        """
        frame = frames.of_each(frames.slots_frame, self.logs)
        if len(self.logs) > 1:
            before = [0, *accumulate(log.slots for log in self.logs)]
            frame["slot"] += frame["replica"].map(dict(enumerate(before)))
        return frame

    def save(self, folder: str | Path) -> list[Path]:
        """Write the run into `folder`, created if necessary; returns the files.

        requests.parquet, steps.parquet, slots.parquet, scenario.yaml (resolved), profile.yaml if the cost has one,
        the figures as PNG, cache.json.gz if another run could use it, and last summary.json. Every file is written
        atomically. Raises BadInput for a folder that cannot be written.
        """
        from reports import files

        folder = Path(folder)
        prepare(folder)
        return [
            files.write_parquet(folder / "requests.parquet", self.requests),
            files.write_parquet(folder / "steps.parquet", self.steps),
            files.write_parquet(folder / "slots.parquet", self.slots),
            files.write_text(folder / "scenario.yaml", document.dump(resolved(self.scenario))),
            *([files.write_text(folder / "profile.yaml", self.profile.text())] if self.profile else []),
            *draw({self.policy: self}, folder),
            *([files.write_bytes(folder / cache_file.NAME, self.cache)] if self.cache else []),
            files.write_json(folder / "summary.json", self.summary),
        ]


def save_all(results: Sequence[Result], folder: str | Path) -> list[Path]:
    """Write runs of one scenario into `folder`: each into a subfolder named by its policy, and their comparison.

    The comparison is comparison.md, figures of all runs, and comparison.json with the subfolders. Returns the files;
    raises as `Result.save`.
    """
    from reports import files
    from reports.text.comparison import comparison_markdown

    folder = Path(folder)
    written = [path for result in results for path in result.save(folder / result.policy)]
    compared = comparison_markdown([result.summary for result in results])
    written += draw({result.policy: result for result in results}, folder)
    listed = {"runs": [result.policy for result in results]}
    return [
        *written,
        files.write_text(folder / "comparison.md", compared),
        files.write_json(folder / "comparison.json", listed),
    ]


def draw(results: Mapping[str, Result], folder: Path) -> list[Path]:
    """Write the figures of one or several runs, by name, into a folder; returns the files.

    timeline.png, latencies.png and ledger.png. Raises OSError for a folder that cannot be written.
    """
    from reports.figures.distributions import latency_distributions
    from reports.figures.ledger import ledger
    from reports.figures.png import write_png
    from reports.figures.timeline import slot_timeline

    summaries = {name: result.summary for name, result in results.items()}
    shares = {name: summary["occupancy"] for name, summary in summaries.items() if summary["steps"]}
    stays = {name: (result.slots, sum(log.slots for log in result.logs)) for name, result in results.items()}
    pictures = {
        "timeline": slot_timeline(stays, shares),
        "latencies": latency_distributions({name: run.requests for name, run in results.items()}),
        "ledger": ledger(summaries),
    }
    return write_png(pictures, folder)


def prepare(folder: Path) -> None:
    """Create `folder` and check that it can be written. Raises BadInput if it cannot."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadInput(f"{folder}: cannot be written: {error.strerror}") from error
