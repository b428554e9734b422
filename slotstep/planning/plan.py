"""A plan: a log, candidates and objectives in; the table, the choices and the errors out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from reports.text.plan import sentences
from slotstep.experiments.sweeps.backends import compute
from slotstep.planning import decision, slices
from slotstep.planning.candidates import Candidate
from slotstep.planning.evaluate import Wanted, evaluate, row, scenario_of, together
from slotstep.planning.prices import Prices
from traces.reading.table import Trace

MOST_TOGETHER = 25_000
"""Requests of a simulation of a whole service; of a larger one the sum of its replicas is taken unchecked."""
MORE = 3
"""So many replicas are added at most where the whole service misses an objective that its replicas meet alone."""

Progress = Callable[[str], None]


@dataclass
class Plan:
    """What is planned, and what has been found of it so far.

    model     its name
    log       what was read: keys in docs/plan.md
    demand    of the log
    slices    for which the plan is made
    wanted    objectives, and variants of the engine
    growths   multiples of today's traffic, rising
    prices    None: cost is left out
    notes     lines on what was assumed
    rows      what was found, of each candidate that has been looked at
    checks    whole services that were simulated
    """

    model: str
    log: dict[str, Any]
    demand: slices.Demand
    slices: Sequence[slices.Slice]
    candidates: Sequence[Candidate]
    wanted: Wanted
    growths: Sequence[float]
    prices: Prices | None
    notes: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)

    @property
    def priced(self) -> bool:
        """Whether costs are compared."""
        return self.prices is not None

    def find(self, jobs: int | None, progress: Progress) -> None:
        """Evaluate every candidate, then simulate what is chosen as a whole; what is found is kept as it comes."""
        self.rows = [row(each) for each in self.candidates if each.refused is not None]
        open_ = [each for each in self.candidates if each.refused is None]
        progress(f"{len(open_)} candidates on {len(self.slices)} slices of the log")
        calls = ((number, each, self.slices, self.wanted) for number, each in enumerate(open_))
        for done, (number, found) in enumerate(compute(numbered, calls, "local", None, jobs), 1):
            self.rows += [self.completed(each) for each in found]
            for each in found:
                progress(f"{done} of {len(open_)}: {open_[number].name}: {told(each)}")
        self.sort()
        self.check(jobs, progress)

    def completed(self, found: dict[str, Any]) -> dict[str, Any]:
        """A row with what each growth needs."""
        found["needs"] = []
        if found["refused"] is not None:
            return found
        where = self.slices[found["slice"]]
        for growth in self.growths:
            need = decision.needs(found, where, growth)
            if need["replicas"]:
                need["latencies"] = decision.latencies(found, need["rate"] / need["replicas"])
            found["needs"].append(self.priced_need(need, found))
        return found

    def priced_need(self, need: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
        """What a growth needs, with its cost where there are prices."""
        if self.prices is None:
            return need
        span = len(self.demand.requests) * self.demand.width
        tokens = {name: float(getattr(self.demand, name).sum()) / span for name in ("prompt", "output")}
        return need | decision.costs(need, found, self.prices, tokens)

    def sort(self) -> None:
        """The rows in the order of the candidates."""
        order = {each.name: place for place, each in enumerate(self.candidates)}
        self.rows.sort(key=lambda each: order[each["name"]])

    def check(self, jobs: int | None, progress: Progress) -> None:
        """Simulate the whole service of each choice, with more replicas while an objective is missed."""
        wanted = [(number, place) for place in range(len(self.growths)) for number in self.chosen(place)]
        by_name = {each.name: each for each in self.candidates}
        calls = []
        for number, place in wanted:
            found, need = self.rows[number], self.rows[number]["needs"][place]
            where = self.slices[found["slice"]]
            if need["replicas"] > 1 and where.requests * where.kept * (MORE + 1) <= MOST_TOGETHER:
                calls.append(
                    (number, place, by_name[found["name"]], where, self.wanted, need["replicas"], need["rate"])
                )
        if calls:
            progress(f"{len(calls)} services simulated as a whole")
        for number, place, points in compute(whole, calls, "local", None, jobs):
            found, last = self.rows[number], points[-1]
            need, count = found["needs"][place], last["replicas"]
            self.checks.append({"row": number, "growth": need["growth"], "points": points})
            if last["met"] and count > need["replicas"]:
                more = {"replicas": count, "gpus": count * found["tensor_parallel"]}
                more["headroom"] = count * found["at"] / need["rate"]
                found["needs"][place] = self.priced_need(need | more, found)
            met = "met" if last["met"] else "not met with confidence"
            progress(f"{count} replicas of {found['name']} together at {last['rate']:.3g} requests/s: {met}")

    def chosen(self, place: int, sure: bool = False) -> list[int]:
        """The rows to choose from for one growth."""
        return decision.cheapest(self.rows, place, self.priced, sure)

    def content(self, complete: bool = True) -> dict[str, Any]:
        """The whole result, as `--json` prints it; `complete`: whether every candidate has been looked at."""
        places = range(len(self.growths))
        found: dict[str, Any] = {
            "model": self.model,
            "complete": complete,
            "log": self.log,
            "demand": {"width_s": self.demand.width, "rates": self.demand.rates},
            "slices": [asdict(each) for each in self.slices],
            "objectives": [each.text for each in self.wanted.objectives],
            "limits_s": [each.limit for each in self.wanted.objectives],
            "confidence": self.wanted.confidence,
            "growths": list(self.growths),
            "currency": self.prices and self.prices.currency,
            "prices": self.prices and dict(self.prices.gpu_hour),
            "rows": self.rows,
            "cheapest": [self.chosen(place) for place in places],
            "cheapest_sure": [self.chosen(place, sure=True) for place in places],
            "front": [decision.front(self.rows, place, self.priced) for place in places],
            "checks": self.checks,
            "notes": self.notes,
        }
        return {**found, "sentences": sentences(found)}

    def scenarios(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The name and the scenario of each candidate on the slice that binds it, for `slotstep capacity`."""
        slice_of = {each["name"]: each["slice"] for each in self.rows if each["refused"] is None}
        for each in self.candidates:
            if each.name in slice_of:
                yield str(each.scenario["name"]), scenario_of(each, self.slices[slice_of[each.name]])


def numbered(number: int, *call: Any) -> tuple[int, list[dict[str, Any]]]:
    """`evaluate`, with the number of its candidate."""
    return number, evaluate(*call)


def whole(number: int, place: int, *call: Any) -> tuple[int, int, list[dict[str, Any]]]:
    """`together` with so many replicas, and with one more at a time while an objective is missed."""
    candidate, where, wanted, replicas, rate = call
    points: list[dict[str, Any]] = []
    for more in range(MORE + 1):
        points.append(dict(together(candidate, where, wanted, replicas + more, rate)))
        if points[-1]["met"]:
            break
    return number, place, points


def told(found: dict[str, Any]) -> str:
    """A row in a few words."""
    if found["refused"] is not None:
        return str(found["refused"])
    if found["at"] is None:
        return f"no rate is met: {found['binding']} is missed by requests alone"
    return f"{found['at']:.3g} requests/s a replica"


def described(trace: Trace, path: Path, mapped: Sequence[dict[str, str]], demand: slices.Demand) -> dict[str, Any]:
    """What was read of a log."""
    frame = trace.workload
    assert frame is not None
    span = len(demand.requests) * demand.width
    status = None if trace.measurements is None else trace.measurements.get("status")
    return {
        "file": str(path),
        "format": trace.report.format,
        "map": list(mapped),
        "requests": len(frame),
        "span_s": span,
        "rate": len(frame) / span,
        "prompt": float(frame["prompt"].mean()),
        "output": float(frame["output"].mean()),
        "status": {} if status is None else {str(k): int(v) for k, v in status.value_counts().items()},
        "remarks": list(trace.report.lines()),
    }
