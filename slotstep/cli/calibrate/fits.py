"""`slotstep calibrate from-steps` and `from-log`: step costs from what an engine logged.

Answers go to standard output, all else to standard error, and heavy imports are inside, as in `slotstep.cli.app`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slotstep.cli.calibrate import text
from slotstep.cli.permission import Yes, permitted

if TYPE_CHECKING:
    from calibrate.fit.from_log import LogFit
    from calibrate.fit.initial import Prior
    from calibrate.profiles.profile import Profile
    from sim.cost.forms import Curve
    from slotstep.validation.measured_runs import Run

Out = Annotated[Path | None, typer.Option("--out", metavar="FILE.yaml", help="Write the profile here.")]
About = Annotated[
    list[str] | None,
    typer.Option("--about", metavar="KEY=VALUE", help="What the profile is of, as in device=H100. May be repeated."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Prompts = Annotated[
    int | None,
    typer.Option(
        "--prompts",
        metavar="N",
        min=1,
        help="The client sent the same N prompts in turn; the engine's prefix cache may find one sent before.",
    ),
]
HoldOut = Annotated[float, typer.Option("--hold-out", help="Share of the steps, the last, to predict unseen.")]
Clock = Annotated[
    str | None, typer.Option("--clock", metavar="NAME", help="cpu or wall; cpu where the log has it, if not given.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the group `slotstep calibrate`."""
    app.command()(from_steps)
    app.command()(from_log)


def from_steps(
    steps: Annotated[Path, typer.Argument(help="The log of steps: CSV, parquet or JSON lines.")],
    out: Out = None,
    about: About = None,
    clock: Clock = None,
    form: Annotated[
        str, typer.Option(metavar="NAME", help="roofline, or affine: a plain sum, as on a CPU.")
    ] = "roofline",
    hold_out: HoldOut = 0.25,
    as_json: AsJson = False,
) -> None:
    """Fit a roofline or a sum to a log of steps, by relative non-negative least squares."""
    from calibrate.fit.from_steps import FORMS, fit
    from slotstep.validation import provenance
    from traces.errors import BadInput
    from traces.reading import step_logs as step_logs

    of = provenance.said(about or (), out)
    if clock not in (None, "cpu", "wall"):
        raise BadInput(f"--clock {clock}: expected cpu or wall")
    if form not in FORMS:
        raise BadInput(f"--form {form}: expected {' or '.join(FORMS)}")
    read = step_logs.read(steps, clock)  # type: ignore[arg-type]  # it is one of the two
    try:
        found = fit(read, hold_out, form=form)
    except ValueError as error:
        raise BadInput(f"{steps}: {error}") from None
    if out is not None:
        residuals = {
            f"{part}_{key}": value for part, of_part in found.residuals.items() for key, value in of_part.items()
        }
        made = provenance.profile(
            found.cost,
            of,
            out.stem,
            method=f"relative non-negative least squares on {len(found.errors):,} steps of an engine's own log",
            source=f"a log of {len(read):,} steps",
            residuals={key: abs(value) for key, value in residuals.items()},
            range=text.visited(read),
            not_included=["what happens between steps and outside the engine"],
            details=text.confidence(found.intervals, found.identified.lines()),
        )
        keep(made.text(), out)
    if as_json:
        print_json(
            {
                "cost": text.coefficients(found.cost),
                **text.confidence(found.intervals, found.identified.lines()),
                **found.residuals,
            }
        )
        return
    print(text.step_lines(found))
    show(text.coefficient_table(found.cost, found.intervals, found.identified))


def from_log(
    measurements: Annotated[list[Path], typer.Argument(help="Measured runs, in any format that has measurements.")],
    scenario: Annotated[
        Path, typer.Option("--scenario", metavar="FILE", help="The engine they ran on, and its clients.")
    ],
    out: Out = None,
    about: About = None,
    hold_out: Annotated[
        list[str] | None, typer.Option("--hold-out", metavar="RUN", help="A run to predict unseen. May be repeated.")
    ] = None,
    free: Annotated[
        str | None,
        typer.Option(metavar="TERM,...", help="Fit these terms only; the others are those of the scenario's cost."),
    ] = None,
    first: Annotated[
        int, typer.Option(min=20, help="Most requests of each run to fit; the rest is predicted.")
    ] = 2000,
    prompts: Prompts = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the scenario.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the starts and of the bootstrap.")] = 0,
    as_json: AsJson = False,
    yes: Yes = False,
) -> None:
    """Fit a roofline, or some terms of any cost, to measured requests: to what gives a simulation their latencies.

    Where the engine logged its steps, fit those first (from-steps): they tell more, and hang less on a noisy machine.
    """
    from slotstep.runs import build
    from slotstep.validation import measured_runs, provenance, repeated_prompts

    of = provenance.said(about or (), None if free else out)
    runs = measured_runs.runs(measurements, scenario, permitted(settings, yes), prompts)
    for remark in (*measured_runs.remarks(runs), *repeated_prompts.hints(runs)):
        print(remark, file=sys.stderr)
    for log in measured_runs.logs_beside(measurements):
        print(f"{log} is a log of steps: fit it first, slotstep calibrate from-steps {log}", file=sys.stderr)
    kept = build.profile(runs[0].scenario) if free else None
    if free:
        of = provenance.said(about or (), out, kept.content if kept else None)
    known, start = (None, "the scenario's cost") if free else shape_prior(of)
    found = fitted(runs, hold_out or (), free.split(",") if free else (), first, seed, known)
    said = [*found.lines(), *(known.edges(found.cost) if known else [])]
    if out is not None:
        keep(log_profile(found, said, runs, of, out.stem, kept), out)
    if as_json:
        told = {
            "cost": text.coefficients(found.cost),
            "delay": found.delay,
            "start": start,
            "free": list(found.free),
            "cpu_s": found.cpu_s,
            "repeats": [{"runs": list(each.runs), "spread": dict(each.spread)} for each in found.noise.repeats],
        }
        spread = text.confidence(found.intervals, said)
        print_json(told | spread | {"errors": json.loads(found.errors.to_json(orient="records"))})
        return
    print(f"fitted in {found.cpu_s:.0f} s of CPU time, from {start}; predicted over measured:")
    show(
        text.error_table(found.errors),
        text.coefficient_table(found.cost, found.intervals, found.identified, found.delay),
    )
    for line in [*text.rate_lines(found.cost, of), *said]:
        print(line)


def shape_prior(of: Mapping[str, Any]) -> tuple[Prior | None, str]:
    """What the shapes say of the model and the device that `--about` names, if they are known; and that in words.

    Raises BadInput for a device that has no rate in the dtype.
    """
    from calibrate.fit.initial import prior
    from traces.errors import BadInput

    known = text.known_shapes(of)
    if known is None or known[0].window:
        return None, "a guess"
    model, device = known
    try:
        return prior(
            model, device, of["dtype"], of["tensor_parallel"]
        ), f"what shapes say of {model.name} on {device.name}"
    except ValueError as error:
        raise BadInput(f"--about {error}") from None


def fitted(
    runs: Sequence[Run], kept_back: Sequence[str], free: Sequence[str], first: int, seed: int, known: Prior | None
) -> LogFit:
    """The fit to all runs but those kept back. Raises BadInput for a run or term that there is not."""
    from calibrate.fit.from_log import fit
    from sim.cost.forms import Curve
    from slotstep.runs import build
    from traces.errors import BadInput, nearest

    names = [run.name for run in runs]
    for name in kept_back:
        if name not in names:
            raise BadInput(f"--hold-out {name}: no such run; did you mean {nearest(name, names)}?")
    used, others = ([run for run in runs if (run.name in kept_back) is back] for back in (False, True))
    if not used:
        raise BadInput("--hold-out: every run is kept back; expected at least one to fit")
    start: Curve | None = known.start if known else None
    if free:
        given = build.cost(used[0].scenario)
        if not isinstance(given, Curve):
            raise BadInput("--free: the scenario's cost is a unit, which has no terms; expected any other kind")
        start = given
    try:
        return fit(
            [run.measured_run() for run in used],
            [run.measured_run() for run in others],
            start,
            used[0].delay,
            free,
            known.within if known else None,
            first,
            seed=seed,
            progress=lambda words: print(words, file=sys.stderr, flush=True),
        )
    except ValueError as error:
        raise BadInput(str(error)) from None


def log_profile(
    found: LogFit, said: Sequence[str], runs: Sequence[Run], of: Mapping[str, Any], name: str, kept: Profile | None
) -> str:
    """The text of the profile of a fit to runs; `said` is what these do not tell.

    `kept`: the profile that has the terms which were not fitted, if they are of one.
    """
    from slotstep.validation import provenance

    label = found.errors["part"].str.replace(" ", "_") + "_" + found.errors["metric"].str.removesuffix("_s")
    residuals = found.errors["error"].abs().groupby(label, sort=False).mean().to_dict()
    others, missing = "", list[str]()
    if kept is not None:
        others = f"; all terms but {', '.join(found.free)} are those of profile {kept.name}, {kept.sha256}"
        missing = [each for each in kept.content["not_included"] if "host" not in each or "host" not in found.free]
    turns = {} if runs[0].prompts is None else {"prompts_sent_in_turn": runs[0].prompts}
    used = [run.name for run in runs if run.name in set(found.errors.loc[found.errors["part"] == "fitted", "run"])]
    made = provenance.profile(
        found.cost,
        of,
        name,
        method="fitted to measured requests with the simulator inside the fit; the residuals are the mean size of "
        "the relative errors of mean, median, 90th and 99th percentile",
        source=f"measured runs {', '.join(used)}{others}",
        residuals=residuals,
        range=kept.content["range"] if kept else None,
        not_included=[*missing, "the way between client and engine, which the scenario gives as clients.delay"],
        details={"client_delay_ns": found.delay, **turns, **text.confidence(found.intervals, said)},
    )
    return made.text()


def keep(content: str, out: Path) -> None:
    """Write a file, whole or not at all, and say so."""
    from reports.files import write_text

    write_text(out, content)
    print(f"written to {out}", file=sys.stderr)


def print_json(content: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    print(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False), flush=True)


def show(*tables: Any) -> None:
    """Tables on standard output."""
    from rich.console import Console

    console = Console()
    for table in tables:
        console.print(table)
