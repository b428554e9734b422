"""What a plan is asked, from the command line: the log read and sliced, everything checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from slotstep.experiments.capacity.objective import Objective, parse
from slotstep.planning import candidates, slices
from slotstep.planning import prices as price_file
from slotstep.planning.evaluate import Wanted
from slotstep.planning.plan import Plan, described
from traces.errors import BadInput
from traces.reading import registry, roles
from traces.reading.table import Trace
from traces.transforms.throttled import with_throttled

CONTENT = ("blocks", "tokens", "prefix")
"""Columns that say what is in a prompt."""
MOST_GROWTH = 1000.0


def ask(
    log: Path,
    folder: Path,
    *,
    model: str,
    gpus: Sequence[str],
    objectives: Sequence[str],
    prices: Path | None,
    growths: str,
    engines: Sequence[str],
    degrees: Sequence[int],
    dtype: str | None,
    slots: tuple[int, ...],
    budgets: tuple[int, ...],
    policies: tuple[str, ...],
    confidence: float,
    kind: str | None,
    columns: Sequence[str] | None,
    run: str | None,
    replay_throttled: bool,
    say: Callable[[str], None],
) -> Plan:
    """The plan to be found; slices are written into `folder`. `say` prints what was taken for what.

    Raises BadInput for a log that cannot be planned for, and for an option that names what does not exist.
    """
    names, aliases = candidates.gpus(gpus)
    presets = candidates.engines(engines)
    wanted = Wanted(tuple(map(objective, objectives)), policies, slots, budgets, confidence)
    multiples = growing(growths)
    paid = None if prices is None else price_file.read(prices, names)
    compared = candidates.candidates(model, names, presets, content=False, degrees=degrees, dtype=dtype)
    if all(each.refused for each in compared):
        raise BadInput(f"{model}: fits on none of the GPUs: {compared[-1].name}: {compared[-1].refused}")
    for line in aliases:
        say(line)
    trace, mapped = read(log, kind, columns, run, replay_throttled, say)
    frame = trace.workload
    if frame is None or not trace.timed or "output" not in frame or len(frame) < 2:
        raise BadInput(f"{log}: expected requests with arrivals, prompts and outputs; found {trace.kind}")
    content = any(column in frame for column in CONTENT)
    if content:
        compared = candidates.candidates(model, names, presets, content=True, degrees=degrees, dtype=dtype)
    demand = slices.demand(frame)
    chosen = slices.write(trace, slices.choose(frame, demand), folder)
    notes = assumptions(trace, content, chosen, paid is not None)
    return Plan(
        model, described(trace, log, mapped, demand), demand, chosen, compared, wanted, multiples, paid, notes
    )


def objective(text: str) -> Objective:
    """An objective of a latency. Raises BadInput for an attainment, which needs objectives of a scenario."""
    found = parse(text)
    if found.latency is None:
        raise BadInput(
            f"--slo {text!r}: expected a latency, as in 'p99 ttft < 1s'; a log has no objectives of its own"
        )
    return found


def growing(given: str) -> list[float]:
    """Multiples of today's traffic, rising. Raises BadInput for anything else."""
    try:
        found = [float(each) for each in given.split(",")]
    except ValueError:
        found = []
    if not found or found != sorted(set(found)) or not 0 < found[0] <= found[-1] <= MOST_GROWTH:
        raise BadInput(f"--growth {given}: expected rising numbers above 0 separated by commas, as in 1,1.5,2")
    return found


def read(
    log: Path,
    kind: str | None,
    columns: Sequence[str] | None,
    run: str | None,
    replay_throttled: bool,
    say: Callable[[str], None],
) -> tuple[Trace, list[dict[str, str]]]:
    """The log, and the roles of its columns where they were guessed, which are said."""
    pairs = dict(pair.partition("=")[::2] for pair in columns or ())
    if not all(pairs) or not all(pairs.values()):
        raise BadInput("--map: expected ROLE=COLUMN, such as arrival=ts:ms")
    inferred: list[roles.Role] = []
    if kind is None and not pairs:
        try:
            kind = registry.detect(log)
        except BadInput as error:
            if "no known trace format" not in str(error):
                raise
            inferred = roles.infer(log)
            pairs = dict(each.mapped.partition("=")[::2] for each in inferred)
            for each in inferred:
                say(f"{each.role:8} {each.column}: {each.why}")
            say(f"to set it yourself: {' '.join(f'--map {each.mapped}' for each in inferred)}")
    trace = registry.load(log, kind, pairs or None)
    if run is not None:
        trace = trace.run(run)
    if replay_throttled:
        trace = with_throttled(trace)
    for line in trace.report.lines():
        say(line)
    found = [{"role": each.role, "column": each.column, "unit": each.unit, "why": each.why} for each in inferred]
    return trace, found


def assumptions(trace: Trace, content: bool, chosen: Sequence[slices.Slice], priced: bool) -> list[str]:
    """Lines on what the plan rests on."""
    said = [
        "Rates above the log's are made by shortening its gaps; a replica gets its share of the requests at random.",
        f"The engine has its defaults on each GPU, and {candidates.SHARE:.0%} of its memory.",
    ]
    if not content:
        said.append(
            "What a prefix cache would find cannot be told: the log does not say what is in its prompts. None is "
            "used."
        )
    if trace.measurements is not None and "status" in trace.measurements:
        failed = trace.measurements[trace.measurements["status"].isin(("throttled", "failed"))]
        unsent = int((~failed["id"].isin(trace.workload["id"])).sum()) if trace.workload is not None else 0
        if unsent:
            said.append(
                f"{unsent:,} requests were throttled or failed, with an output that is not known. They are left out, "
                "and demand is higher by them; --replay-throttled counts the throttled ones in."
            )
    said += [
        f"{count:,} requests are {reason}." for reason, count in trace.report.changed.items() if "throttled" in reason
    ]
    said.append("No GPU is spare: a replica that fails is not planned for.")
    thinned = [each for each in chosen if each.kept < 1]
    if thinned:
        said.append(
            f"Of the slices {', '.join(f'{each.kept:.0%}' for each in thinned)} of the requests are simulated."
        )
    if priced:
        said.append(
            "A month has 730 hours of GPUs for the peak; its tokens are those of the log's average rate all the time."
        )
    return said
